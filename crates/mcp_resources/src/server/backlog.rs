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

/// How many answers may wait for the client before no more are begun, and how many are begun at once.
const MAX_ANSWERS: usize = 32;

/// How long making an answer keeps others from being begun.
const BEGINNING: Duration = Duration::from_millis(250);

/// How long nothing is read from a client that has no room. What it says may be what others of its requests wait for.
#[cfg(feature = "stdio")]
const PAUSE: Duration = Duration::from_secs(1);

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
    Open,
    Made,
    /// The transport has it, and it is written whatever the client says.
    Sending,
}

/// What a transport tells of its client; where it tells nothing, this is nothing, and there is always room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    requests: usize,
    /// How many answers wait for the client.
    made: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        let beginnings = Semaphore::new(MAX_ANSWERS);
        Self(Arc::new(Shared { requests: Mutex::default(), load: watch::Sender::default(), beginnings }))
    }
}

impl Backlog {
    /// A request came.
    #[cfg(feature = "stdio")]
    pub(super) fn begin(&self, id: RequestId) {
        self.change(|requests| _ = requests.entry(id).or_insert(Stage::Open));
    }

    /// The transport has the answer to a request.
    #[cfg(feature = "stdio")]
    pub(super) fn send(&self, id: &RequestId) {
        self.reach(id, Stage::Sending);
    }

    /// The client has the answer.
    #[cfg(feature = "stdio")]
    pub(super) fn end(&self, id: &RequestId) {
        self.change(|requests| _ = requests.remove(id));
    }

    /// The client wants no answer any more.
    #[cfg(feature = "stdio")]
    pub(super) fn cancel(&self, id: &RequestId) {
        self.change(|requests| {
            if requests.get(id).is_some_and(|stage| *stage != Stage::Sending) {
                requests.remove(id);
            }
        });
    }

    /// Waits until another request may be taken, for a while.
    #[cfg(feature = "stdio")]
    pub(super) async fn room_for_request(&self) {
        let _ = timeout(PAUSE, self.wait(|load| load.requests < MAX_REQUESTS)).await;
    }

    /// Makes an answer once there is room for it. What is `cancelled` waits for none: it ends by itself.
    pub(super) async fn answer<T>(
        &self,
        id: RequestId,
        cancelled: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        if self.0.load.borrow().requests == 0 {
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
        self.reach(&id, Stage::Made);
        answer
    }

    async fn room_for_answer(&self) -> Option<SemaphorePermit<'_>> {
        let beginning = self.0.beginnings.acquire().await.ok();
        self.wait(|load| load.made < MAX_ANSWERS).await;
        beginning
    }

    async fn wait(&self, has_room: impl Fn(&Load) -> bool) {
        if !has_room(&self.0.load.borrow()) {
            // An error would say that nobody can make room any more, but what waits can.
            let _ = self.0.load.subscribe().wait_for(has_room).await;
        }
    }

    fn reach(&self, id: &RequestId, stage: Stage) {
        self.change(|requests| {
            if let Some(reached) = requests.get_mut(id) {
                *reached = stage.max(*reached);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<RequestId, Stage>)) {
        let mut requests = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut requests);
        let made = requests.values().filter(|stage| **stage != Stage::Open).count();
        let load = Load { requests: requests.len(), made };
        self.0.load.send_if_modified(|before| std::mem::replace(before, load) != load);
    }
}
