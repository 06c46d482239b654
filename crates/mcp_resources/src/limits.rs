use std::time::Duration;

/// The limits of a handler's calls.
///
/// ```
/// # use std::time::Duration;
/// # use mcp_resources::{Limits, Registry};
/// Registry::with_limits(Limits::default().time(Duration::from_secs(5)).bytes(1024 * 1024));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The time limit of a call. The default is 30 seconds.
    pub time: Duration,
    /// The most bytes that a call may return, in all contents or completed values together. The default is
    /// 10 MiB.
    pub bytes: usize,
}

impl Limits {
    /// Sets how long one call may run.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets how many bytes one call may return.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            bytes: 10 * 1024 * 1024,
        }
    }
}
