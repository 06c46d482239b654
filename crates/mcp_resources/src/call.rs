//! Running what others wrote: apart from the server, for a limited time, with panics caught.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Boxed<O> = Pin<Box<dyn Future<Output = O> + Send>>;

/// How many calls of one function may block at once: one that never returns keeps its thread, and what else is
/// registered has to have some left.
const MAX_BLOCKED: usize = 32;

/// How many calls of all functions of a registry may block at once: half of the threads that tokio has for what blocks,
/// so that some are left for what is no handler.
const MAX_ALL_BLOCKED: usize = 256;

/// The places of calls that block. Clones are the same places.
#[derive(Debug, Clone)]
pub struct Room(Arc<Semaphore>);

/// A function, as a registry keeps it.
pub enum Call<I, O> {
    /// Runs on a thread where it may block, where there is room.
    Blocking(Arc<dyn Fn(I) -> O + Send + Sync>, Room),
    /// Runs where the server runs.
    Async(Arc<dyn Fn(I) -> Boxed<O> + Send + Sync>),
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    Panic,
    Timeout,
    /// As many calls as may be are on their way and don't end.
    Busy,
}

impl<I, O> Clone for Call<I, O> {
    fn clone(&self) -> Self {
        match self {
            Self::Blocking(function, room) => Self::Blocking(Arc::clone(function), room.clone()),
            Self::Async(function) => Self::Async(Arc::clone(function)),
        }
    }
}

impl<I, O> Call<I, O> {
    /// Makes a call of a function that may block.
    pub(crate) fn blocking(function: impl Fn(I) -> O + Send + Sync + 'static) -> Self {
        Self::Blocking(Arc::new(function), Room::of_one())
    }
}

impl<I: Send + 'static, O: Send + 'static> Call<I, O> {
    /// Runs the function. One that blocks keeps its thread after the time is over: nothing can end it.
    pub(crate) async fn run(
        &self,
        input: I,
        limit: Duration,
        all: &Room,
    ) -> Result<O, Interruption> {
        match self.clone() {
            Self::Blocking(function, own) => {
                let place = own.place(limit).await?;
                let work = move || {
                    let _place = place;
                    function(input)
                };
                all.run(limit, work).await
            }
            Self::Async(function) => {
                let future = async move { function(input).await };
                let outcome = tokio::time::timeout(limit, catch_panic(future)).await;
                outcome.unwrap_or(Err(Interruption::Timeout))
            }
        }
    }
}

impl Room {
    /// Makes that of one function.
    pub(crate) fn of_one() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BLOCKED)))
    }

    /// Makes that of all functions of a registry.
    pub(crate) fn of_all() -> Self {
        Self(Arc::new(Semaphore::new(MAX_ALL_BLOCKED)))
    }

    /// Runs what may block, on a thread where it may. It keeps its thread and its place after the time is over.
    pub(crate) async fn run<O: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> O + Send + 'static,
    ) -> Result<O, Interruption> {
        let place = self.place(limit).await?;
        let thread = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        match tokio::time::timeout(limit, thread).await {
            Ok(result) => result.map_err(|_| Interruption::Panic),
            Err(_) => Err(Interruption::Timeout),
        }
    }

    /// Waits for a place.
    async fn place(&self, limit: Duration) -> Result<OwnedSemaphorePermit, Interruption> {
        let place = tokio::time::timeout(limit, Arc::clone(&self.0).acquire_owned()).await;
        Ok(place
            .map_err(|_| Interruption::Busy)?
            .expect("nobody closes it"))
    }
}

/// Runs a future and polls it no more once it panicked.
pub(crate) async fn catch_panic<O>(future: impl Future<Output = O>) -> Result<O, Interruption> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Interruption::Panic)),
        }
    })
    .await
}

impl<I, O> std::fmt::Debug for Call<I, O> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Blocking(..) => "Blocking",
            Self::Async(_) => "Async",
        })
    }
}
