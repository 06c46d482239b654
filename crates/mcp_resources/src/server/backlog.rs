//! What one client has asked and not got yet, so that one that does not read can't have a server gather answers.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// How many requests of a client are taken before it gets an answer. Those that wait for changes count.
#[cfg(feature = "stdio")]
const MAX_REQUESTS: usize = 1024;

/// How many answers are made at once, or wait for the client.
const MAX_ANSWERS: usize = 32;

/// How long making an answer may keep others waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// The requests of one client that are not answered. Clones are the same.
///
/// What counts is what a transport tells; where it tells nothing, an answer that is made waits for nobody.
#[derive(Debug, Clone)]
pub(super) struct Backlog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The place of each answer that is made.
    requests: Mutex<HashMap<RequestId, Option<OwnedSemaphorePermit>>>,
    /// How many there are.
    count: watch::Sender<usize>,
    answers: Arc<Semaphore>,
}

impl Default for Backlog {
    fn default() -> Self {
        let answers = Arc::new(Semaphore::new(MAX_ANSWERS));
        Self(Arc::new(Shared { requests: Mutex::default(), count: watch::Sender::default(), answers }))
    }
}

impl Backlog {
    /// A request came.
    #[cfg(feature = "stdio")]
    pub(super) fn begin(&self, id: RequestId) {
        self.change(|requests| _ = requests.entry(id).or_default());
    }

    /// The client has the answer, or wants none any more.
    #[cfg(feature = "stdio")]
    pub(super) fn end(&self, id: &RequestId) {
        self.change(|requests| _ = requests.remove(id));
    }

    /// Waits until another request may be taken.
    #[cfg(feature = "stdio")]
    pub(super) async fn room_for_request(&self) {
        // An error would say that nobody can make room any more, but what waits can.
        let _ = self.0.count.subscribe().wait_for(|count| *count < MAX_REQUESTS).await;
    }

    /// Makes an answer once there is room for it, which it keeps until the client has it. One that takes long keeps
    /// nobody waiting.
    pub(super) async fn answer<T>(&self, id: &RequestId, work: impl Future<Output = T>) -> T {
        let place = Arc::clone(&self.0.answers).acquire_owned().await.ok();
        let mut work = pin!(work);
        if let Ok(answer) = timeout(PATIENCE, &mut work).await {
            self.change(|requests| {
                if let Some(kept) = requests.get_mut(id) {
                    *kept = place;
                }
            });
            return answer;
        }
        drop(place);
        work.await
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<RequestId, Option<OwnedSemaphorePermit>>)) {
        let mut requests = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut requests);
        let now = requests.len();
        self.0.count.send_if_modified(|count| std::mem::replace(count, now) != now);
    }
}
