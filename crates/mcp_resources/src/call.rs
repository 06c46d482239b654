//! Running what others wrote: apart from the server, for a limited time, with panics caught.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

type Boxed<O> = Pin<Box<dyn Future<Output = O> + Send>>;

/// A function, as a registry keeps it.
pub enum Call<I, O> {
    /// Runs on a thread where it may block.
    Blocking(Arc<dyn Fn(I) -> O + Send + Sync>),
    /// Runs where the server runs.
    Async(Arc<dyn Fn(I) -> Boxed<O> + Send + Sync>),
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    Panic,
    Timeout,
}

impl<I, O> Clone for Call<I, O> {
    fn clone(&self) -> Self {
        match self {
            Self::Blocking(function) => Self::Blocking(Arc::clone(function)),
            Self::Async(function) => Self::Async(Arc::clone(function)),
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Call<I, O> {
    /// Runs the function. One that blocks keeps its thread after the time is over: nothing can end it.
    pub(crate) async fn run(&self, input: I, limit: Duration) -> Result<O, Interruption> {
        let outcome = match self.clone() {
            Self::Blocking(function) => {
                let thread = tokio::task::spawn_blocking(move || function(input));
                let result = async { thread.await.map_err(|_| Interruption::Panic) };
                tokio::time::timeout(limit, result).await
            }
            Self::Async(function) => {
                let future = async move { function(input).await };
                tokio::time::timeout(limit, catch_panic(future)).await
            }
        };
        outcome.unwrap_or(Err(Interruption::Timeout))
    }
}

/// Runs a future and polls it no more once it panicked.
pub(crate) async fn catch_panic<O>(future: impl Future<Output = O>) -> Result<O, Interruption> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Interruption::Panic)),
    })
    .await
}

impl<I, O> std::fmt::Debug for Call<I, O> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Blocking(_) => "Blocking",
            Self::Async(_) => "Async",
        })
    }
}
