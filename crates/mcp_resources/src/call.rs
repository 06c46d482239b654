//! Runs the author's functions apart from the server, for a limited time, with panics caught.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Boxed<O> = Pin<Box<dyn Future<Output = O> + Send>>;

/// The most calls of one function that may block at a time. A call that never returns keeps its thread, and
/// other functions need some, too.
const MAX_BLOCKED: usize = 32;

/// The most calls of all functions of a registry that may block at a time. It is half of tokio's threads for
/// blocking work, so the program's own work has the rest.
const MAX_ALL_BLOCKED: usize = 256;

/// The places for calls that block. Clones share the places.
#[derive(Debug, Clone)]
pub struct Room(Arc<Semaphore>);

/// A function in the form in which a registry keeps it.
pub enum Call<I, O> {
    /// Runs on a thread where it may block, if there is room.
    Blocking(Arc<dyn Fn(I) -> O + Send + Sync>, Room),
    /// Runs on the server's threads.
    Async(Arc<dyn Fn(I) -> Boxed<O> + Send + Sync>),
}

/// The reason why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    Panic,
    Timeout,
    /// All places are taken by calls that don't end.
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
        Self::Blocking(Arc::new(function), Room::for_function())
    }
}

impl<I: Send + 'static, O: Send + 'static> Call<I, O> {
    /// Runs the function. One that blocks keeps its thread after the time limit, because nothing can end
    /// it.
    pub(crate) async fn run(
        &self,
        input: I,
        limit: Duration,
        all: &Room,
    ) -> Result<O, Interruption> {
        match self.clone() {
            Self::Blocking(function, own) => {
                let place = own.take_place(limit).await?;
                all.run(limit, move || {
                    let _place = place;
                    function(input)
                })
                .await
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
    /// Makes the places of one function.
    pub(crate) fn for_function() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BLOCKED)))
    }

    /// Makes the places that all functions of a registry share.
    pub(crate) fn for_registry() -> Self {
        Self(Arc::new(Semaphore::new(MAX_ALL_BLOCKED)))
    }

    /// Runs work on a thread where it may block. It keeps its thread and its place after the time limit.
    pub(crate) async fn run<O: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> O + Send + 'static,
    ) -> Result<O, Interruption> {
        let place = self.take_place(limit).await?;
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
    async fn take_place(&self, limit: Duration) -> Result<OwnedSemaphorePermit, Interruption> {
        let place = tokio::time::timeout(limit, Arc::clone(&self.0).acquire_owned()).await;
        Ok(place
            .map_err(|_| Interruption::Busy)?
            .expect("the semaphore is never closed"))
    }
}

/// Runs a future, and does not poll it again after a panic.
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
