//! Counts calls of methods, and their time.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts a server's calls, for [`Server::metrics`](crate::Server::metrics). Clones are the same metrics.
///
/// ```no_run
/// use mcp_resources::{Metrics, Registry, Server};
///
/// let metrics = Metrics::default();
/// let server = Server::new("notes", "1.0.0", Registry::new()).metrics(&metrics);
/// std::thread::spawn(move || loop {
///     std::thread::sleep(std::time::Duration::from_secs(60));
///     eprintln!("{:?}", metrics.methods());
/// });
/// server.run_stdio()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    methods: Arc<Mutex<BTreeMap<&'static str, MethodMetrics>>>,
}

/// The calls of one method since the metrics were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodMetrics {
    /// The number of ended calls.
    pub calls: u64,
    /// The number of them that ended with an error.
    pub errors: u64,
    /// The time of all of them together.
    pub time: Duration,
}

impl Metrics {
    pub(super) async fn measure<T, E>(
        &self,
        method: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let start = Instant::now();
        let result = work.await;
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = methods.entry(method).or_default();
        metrics.calls += 1;
        metrics.errors += u64::from(result.is_err());
        metrics.time += start.elapsed();
        result
    }

    /// Returns the metrics of each method that was called: the requests of `resources`, `completion`, `tools`,
    /// `prompts`, `logging`, `tasks` and `skills`. A read or a completion that the client cancelled counts as an
    /// error.
    pub fn methods(&self) -> BTreeMap<&'static str, MethodMetrics> {
        self.methods
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
