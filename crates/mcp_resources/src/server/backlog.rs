//! What one client has asked and not got yet, so that one that does not read can't have a server gather answers.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;

/// How many requests are taken before the client gets an answer.
#[cfg(feature = "stdio")]
const MAX_REQUESTS: usize = 1024;

/// How many requests may wait for changes.
#[cfg(feature = "stdio")]
const MAX_LISTENING: usize = 4096;

/// How many answers may wait for the client before no more are begun, and how many are begun at once.
const MAX_ANSWERS: usize = 32;

/// How long making an answer keeps others from being begun.
const BEGINNING: Duration = Duration::from_millis(250);

/// The requests of one client that are not answered. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Backlog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    requests: Mutex<HashMap<RequestId, Stage>>,
    load: watch::Sender<Load>,
    beginnings: Semaphore,
}

/// How far the answer to a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It has one when the client likes: it waits for changes.
    Listening,
    Open,
    Made,
}

/// What a transport tells of its client; where it tells nothing, this is nothing, and there is always room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    /// Requests that wait for changes.
    listening: usize,
    /// Other messages that something is still done for, also requests that were cancelled.
    running: usize,
    /// Those that have an answer.
    made: usize,
    /// Answers that are being written. What asked for them is over.
    sending: usize,
}

/// What is done for a message, until the last clone is dropped: rmcp hands it on with the message.
#[cfg(feature = "stdio")]
#[derive(Debug, Clone)]
pub(super) struct Running(#[expect(dead_code, reason = "it is dropped")] Arc<Run>);

#[cfg(feature = "stdio")]
#[derive(Debug)]
struct Run(Backlog);

/// An answer that is being written, whatever the client says; once this is dropped, it is no more.
#[cfg(feature = "stdio")]
#[derive(Debug)]
pub(super) struct Sending(Backlog);

impl Default for Backlog {
    fn default() -> Self {
        let beginnings = Semaphore::new(MAX_ANSWERS);
        Self(Arc::new(Shared { requests: Mutex::default(), load: watch::Sender::default(), beginnings }))
    }
}

impl Backlog {
    /// A request came.
    ///
    /// # Errors
    ///
    /// Why it can't be taken.
    #[cfg(feature = "stdio")]
    pub(super) fn begin(&self, id: &RequestId, is_listening: bool) -> Result<(), String> {
        let listening = self.0.load.borrow().listening;
        if is_listening && listening >= MAX_LISTENING {
            return Err(format!("{listening} streams are open; cancel one first"));
        }
        let mut is_new = false;
        self.change(id, |stage| {
            is_new = stage.is_none();
            stage.or(Some(if is_listening { Stage::Listening } else { Stage::Open }))
        });
        if is_new { Ok(()) } else { Err("a request with this id has no answer yet".to_owned()) }
    }

    /// Counts what is done for a message.
    #[cfg(feature = "stdio")]
    pub(super) fn run(&self) -> Running {
        self.0.load.send_modify(|load| load.running += 1);
        Running(Arc::new(Run(self.clone())))
    }

    /// The transport has the answer to a request.
    #[cfg(feature = "stdio")]
    pub(super) fn send(&self, id: &RequestId) -> Sending {
        self.0.load.send_modify(|load| load.sending += 1);
        self.change(id, |_| None);
        Sending(self.clone())
    }

    /// The client wants no answer any more.
    #[cfg(feature = "stdio")]
    pub(super) fn cancel(&self, id: &RequestId) {
        self.change(id, |_| None);
    }

    /// Waits until another request may be taken.
    #[cfg(feature = "stdio")]
    pub(super) async fn room_for_request(&self) {
        self.wait(|load| load.running + load.made + load.sending < MAX_REQUESTS).await;
    }

    /// Makes an answer once there is room for it. What is `cancelled` waits for none: it ends by itself.
    pub(super) async fn answer<T>(
        &self,
        id: RequestId,
        cancelled: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        if self.0.load.borrow().running == 0 {
            return work.await;
        }
        let beginning = tokio::select! {
            beginning = self.room_for_answer() => beginning,
            () = cancelled => None,
        };
        let soon = timeout(BEGINNING, &mut work).await;
        drop(beginning);
        let answer = match soon {
            Ok(answer) => answer,
            Err(_) => work.await,
        };
        self.change(&id, |stage| stage.map(|stage| stage.max(Stage::Made)));
        answer
    }

    async fn room_for_answer(&self) -> Option<SemaphorePermit<'_>> {
        let beginning = self.0.beginnings.acquire().await.ok();
        self.wait(|load| load.made + load.sending < MAX_ANSWERS).await;
        beginning
    }

    async fn wait(&self, has_room: impl Fn(&Load) -> bool) {
        if !has_room(&self.0.load.borrow()) {
            // An error would say that nobody can make room any more, but what waits can.
            let _ = self.0.load.subscribe().wait_for(has_room).await;
        }
    }

    fn change(&self, id: &RequestId, change: impl FnOnce(Option<Stage>) -> Option<Stage>) {
        let mut requests = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let before = requests.get(id).copied();
        let after = change(before);
        if after == before {
            return;
        }
        match after {
            Some(stage) => _ = requests.insert(id.clone(), stage),
            None => _ = requests.remove(id),
        }
        self.0.load.send_modify(|load| {
            load.count(before, usize::wrapping_sub);
            load.count(after, usize::wrapping_add);
        });
    }
}

#[cfg(feature = "stdio")]
impl Drop for Run {
    fn drop(&mut self) {
        self.0.0.load.send_modify(|load| load.running -= 1);
    }
}

#[cfg(feature = "stdio")]
impl Drop for Sending {
    fn drop(&mut self) {
        self.0.0.load.send_modify(|load| load.sending -= 1);
    }
}

impl Load {
    fn count(&mut self, stage: Option<Stage>, change: fn(usize, usize) -> usize) {
        match stage {
            None | Some(Stage::Open) => (),
            Some(Stage::Listening) => self.listening = change(self.listening, 1),
            Some(Stage::Made) => self.made = change(self.made, 1),
        }
    }
}

#[cfg(all(test, feature = "stdio"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is asked, cancelled, made and written, in whatever order: once all is over nothing is left.
        #[test]
        fn load_is_what_is_open(steps in prop::collection::vec((0..5, 0..4_i64), 0..60)) {
            let backlog = Backlog::default();
            let mut writing = Vec::new();
            for (step, id) in steps {
                let id = RequestId::Number(id);
                match step {
                    0 | 1 => _ = backlog.begin(&id, step == 0),
                    2 => backlog.cancel(&id),
                    3 => backlog.change(&id, |stage| stage.map(|stage| stage.max(Stage::Made))),
                    _ if writing.len() < 3 => writing.push(backlog.send(&id)),
                    _ => drop(writing.remove(0)),
                }
                let load = *backlog.0.load.borrow();
                let requests = backlog.0.requests.lock().unwrap();
                let of = |wanted| requests.values().filter(|stage| **stage == wanted).count();
                let expected = (of(Stage::Listening), of(Stage::Made), writing.len());
                prop_assert_eq!((load.listening, load.made, load.sending), expected);
            }
            drop(writing);
            (0..4).for_each(|id| backlog.cancel(&RequestId::Number(id)));
            prop_assert_eq!(*backlog.0.load.borrow(), Load::default());
        }
    }

    #[test]
    fn id_is_free_once_its_answer_is_being_written() {
        let backlog = Backlog::default();
        let id = RequestId::Number(1);
        backlog.begin(&id, false).unwrap();
        backlog.begin(&id, false).unwrap_err();
        backlog.begin(&id, true).unwrap_err();
        let writing = backlog.send(&id);
        backlog.begin(&id, false).unwrap();
        drop(writing);
        backlog.begin(&id, false).unwrap_err();
    }
}
