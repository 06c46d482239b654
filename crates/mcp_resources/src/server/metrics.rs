//! How often methods are called, and how long they take.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What one method did since the server was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MethodMetrics {
    /// The calls that ended.
    pub calls: u64,
    /// Those among them that ended with an error.
    pub errors: u64,
    /// The time of all calls together.
    pub time: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Metrics {
    methods: Mutex<BTreeMap<&'static str, MethodMetrics>>,
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

    pub(super) fn methods(&self) -> BTreeMap<&'static str, MethodMetrics> {
        self.methods.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
