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

/// How many bytes the messages may have that something is done for, before no more are taken.
#[cfg(feature = "stdio")]
const MAX_BYTES: usize = 64 * 1024 * 1024;

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
    #[cfg_attr(not(feature = "stdio"), expect(dead_code, reason = "only a transport of ours knows"))]
    Open,
    Made,
}

/// What a transport tells of its client; where it tells nothing, this is nothing, and there is always room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    /// Requests that wait for changes, until their streams end.
    listening: usize,
    /// Other messages that something is still done for, also requests that were cancelled.
    running: usize,
    /// How many bytes all these messages have.
    bytes: usize,
    /// How many requests have an answer that the transport does not have.
    made: usize,
    /// Lines that are being written.
    sending: usize,
}

/// A request to answer.
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) counted: Option<Counted>,
}

/// A message that something is done for until the last clone is dropped: rmcp hands it on with the message.
#[derive(Debug, Clone)]
pub(super) struct Counted(#[expect(dead_code, reason = "it is dropped")] Arc<Count>);

#[derive(Debug)]
struct Count {
    backlog: Backlog,
    is_listening: bool,
    bytes: usize,
}

/// A line that is being written, whatever the client says; once this is dropped, it is no more.
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
            stage.or(Some(Stage::Open))
        });
        if is_new { Ok(()) } else { Err("a request with this id has no answer yet".to_owned()) }
    }

    /// Counts a message of so many bytes for as long as something is done for it.
    #[cfg(feature = "stdio")]
    pub(super) fn count(&self, is_listening: bool, bytes: usize) -> Counted {
        let count = Count { backlog: self.clone(), is_listening, bytes };
        self.0.load.send_modify(|load| load.count(&count, usize::wrapping_add));
        Counted(Arc::new(count))
    }

    /// The transport has a line to write, which may be the answer to a request.
    #[cfg(feature = "stdio")]
    pub(super) fn send(&self, answered: Option<&RequestId>) -> Sending {
        self.0.load.send_modify(|load| load.sending += 1);
        if let Some(id) = answered {
            self.change(id, |_| None);
        }
        Sending(self.clone())
    }

    /// The client wants no answer any more.
    #[cfg(feature = "stdio")]
    pub(super) fn cancel(&self, id: &RequestId) {
        self.change(id, |_| None);
    }

    /// Waits until another message may be taken.
    #[cfg(feature = "stdio")]
    pub(super) async fn room_for_request(&self) {
        let is_few = |load: &Load| load.running + load.made + load.sending < MAX_REQUESTS;
        self.wait(|load| is_few(load) && load.bytes < MAX_BYTES).await;
    }

    /// Makes an answer once there is room for it. What is `cancelled` waits for none: it ends by itself.
    pub(super) async fn answer<T>(
        &self,
        Asked { id, counted }: Asked,
        cancelled: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        // Until the answer is made, whatever becomes of the context that it was in.
        let Some(_counted) = counted else { return work.await };
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
        let is_made = |stage| usize::from(stage == Some(Stage::Made));
        self.0.load.send_modify(|load| load.made = load.made + is_made(after) - is_made(before));
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.backlog.0.load.send_modify(|load| load.count(self, usize::wrapping_sub));
    }
}

#[cfg(feature = "stdio")]
impl Drop for Sending {
    fn drop(&mut self) {
        self.0.0.load.send_modify(|load| load.sending -= 1);
    }
}

impl Load {
    fn count(&mut self, count: &Count, change: fn(usize, usize) -> usize) {
        let messages = if count.is_listening { &mut self.listening } else { &mut self.running };
        *messages = change(*messages, 1);
        self.bytes = change(self.bytes, count.bytes);
    }
}

#[cfg(all(test, feature = "stdio"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is asked, cancelled, made, done and written, in whatever order: once all is over nothing is left.
        #[test]
        fn load_is_what_is_open(steps in prop::collection::vec((0..6, 0..4_i64), 0..60)) {
            let backlog = Backlog::default();
            let (mut counted, mut writing) = (Vec::new(), Vec::new());
            for (step, number) in steps {
                let id = RequestId::Number(number);
                match step {
                    0 | 1 => {
                        if backlog.begin(&id, step == 0).is_ok() {
                            counted.push((step == 0, number, backlog.count(step == 0, number as usize)));
                        }
                    }
                    2 => backlog.cancel(&id),
                    3 => backlog.change(&id, |stage| stage.map(|stage| stage.max(Stage::Made))),
                    4 if writing.len() < 3 => writing.push(backlog.send((number > 0).then_some(&id))),
                    4 => drop(writing.remove(0)),
                    _ => counted.truncate(number as usize),
                }
                let listening = counted.iter().filter(|(is_listening, ..)| *is_listening).count();
                let requests = backlog.0.requests.lock().unwrap();
                let expected = Load {
                    listening,
                    running: counted.len() - listening,
                    bytes: counted.iter().map(|(_, bytes, _)| *bytes as usize).sum(),
                    made: requests.values().filter(|stage| **stage == Stage::Made).count(),
                    sending: writing.len(),
                };
                prop_assert_eq!(*backlog.0.load.borrow(), expected);
            }
            drop((counted, writing));
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
        let writing = backlog.send(Some(&id));
        backlog.begin(&id, false).unwrap();
        drop(writing);
        backlog.begin(&id, false).unwrap_err();
    }
}
