//! Decides if and when a request is sent again.
//!
//! The failure decides first: an answer that never began because of the network or of a busy server is worth another try, a
//! refused request is not. [`next_delay`] then returns the delay, from numbers alone; the loop is in
//! [`Client::send`](crate::Client::send).

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use reqwest::header::HeaderMap;

pub use crate::error::Advice;
use crate::{Error, Fault, error::with_causes};

/// The limits of trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Most retries.
    pub max_retries: u32,
    /// Longest time in all, from the first failure, if the server names no time.
    pub budget: Duration,
    /// The delay before the first retry; each later one is twice as long.
    pub base_delay: Duration,
    /// The longest such delay.
    pub max_delay: Duration,
    /// The longest time that a server may ask to wait; beyond it there is no retry.
    pub max_server_delay: Duration,
}

impl Default for Policy {
    /// Five retries within about 30 s, or up to 5 minutes apart if the server says so.
    fn default() -> Self {
        Self {
            max_retries: 5,
            budget: Duration::from_secs(30),
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(8),
            max_server_delay: Duration::from_secs(300),
        }
    }
}

/// A notice of a retry, before its delay.
#[derive(Debug)]
pub struct RetryNotice<'a> {
    /// The number of the retry, from 1.
    pub attempt: u32,
    /// The delay before it.
    pub delay: Duration,
    /// The failure.
    pub reason: &'a Error,
}

impl RetryNotice<'_> {
    /// Returns what failed with its causes, after "failed to".
    #[must_use]
    pub fn describe_failure(&self) -> String {
        with_causes(self.reason)
    }
}

impl fmt::Display for RetryNotice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, seconds) = (self.describe_failure(), self.delay.as_secs_f64());
        write!(
            f,
            "failed to {reason}; retry {} in {seconds:.1} s",
            self.attempt
        )
    }
}

/// Returns the delay before the next retry, or `None` to give up.
///
/// `retries` were made so far, `elapsed` has passed since the first failure, `server` is the time
/// the server names, `jitter` is from 0 to 1 and takes up to a quarter off a delay of our own: so
/// each is longer than the one before.
#[must_use]
pub fn next_delay(
    policy: &Policy,
    retries: u32,
    elapsed: Duration,
    server: Option<Duration>,
    jitter: f64,
) -> Option<Duration> {
    if retries >= policy.max_retries {
        return None;
    }
    // The server knows best. Its time is not part of the budget, which is for our own guesses.
    if let Some(server) = server {
        return (server <= policy.max_server_delay).then_some(server);
    }
    let doubled = policy
        .base_delay
        .saturating_mul(2u32.saturating_pow(retries));
    let delay = doubled
        .min(policy.max_delay)
        .mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 4.0);
    (elapsed + delay <= policy.budget).then_some(delay)
}

impl Policy {
    /// Narrows the policy to what an error deserves; `None` if it deserves no retry.
    ///
    /// A refused connection to this machine means that nobody is there: one quick retry covers a
    /// server that is just starting over.
    pub(crate) fn for_error(self, error: &Error, is_loopback: bool) -> Option<Self> {
        match error {
            Error::Refused { .. } if is_loopback => Some(Self {
                max_retries: self.max_retries.min(1),
                ..self
            }),
            error => is_transient(error).then_some(self),
        }
    }
}

fn is_transient(error: &Error) -> bool {
    match error {
        // The same request would be refused again, whatever the status.
        error if error.refusal().is_some() => false,
        Error::Refused { .. } | Error::Unreachable { .. } => true,
        Error::Status { status, advice, .. } => {
            advice.should_retry.unwrap_or(is_transient_status(*status))
        }
        Error::Stream { fault, .. } => match fault {
            Fault::Truncated | Fault::Broken(_) => true,
            Fault::Provider { status, .. } => status.is_some_and(is_transient_status),
            Fault::Idle { .. }
            | Fault::NotTaken { .. }
            | Fault::TooLarge { .. }
            | Fault::Malformed { .. }
            | Fault::NotAStream { .. }
            | Fault::Compressed { .. }
            | Fault::Early => false,
        },
        Error::BaseUrl { .. } | Error::Load { .. } | Error::Write(_) | Error::Setup { .. } => false,
    }
}

fn is_transient_status(status: u16) -> bool {
    // Timeout, lock conflict, rate limit, and all errors of the server itself. OpenAI's and
    // Anthropic's own clients retry these.
    matches!(status, 408 | 409 | 429 | 500..=599)
}

impl Error {
    /// Returns the time that the server asks to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { advice, .. } => advice.after,
            _ => None,
        }
    }
}

impl Advice {
    /// Reads the headers of a response; `now` turns a date into a delay.
    pub(crate) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Self {
        let milliseconds = header(headers, "retry-after-ms").and_then(|text| seconds(text, 1e-3));
        let after = header(headers, "retry-after")
            .and_then(|text| seconds(text, 1.0).or_else(|| until(text, now)));
        Self {
            should_retry: header(headers, "x-should-retry").and_then(|text| text.parse().ok()),
            // The finer one counts if a server sends both.
            after: milliseconds.or(after),
        }
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// Reads an HTTP date (RFC 9110 §5.6.7); one that has passed means now.
fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn delays(server: Option<Duration>, jitter: f64) -> Vec<u64> {
        let policy = Policy::default();
        let next = |retries| next_delay(&policy, retries, Duration::ZERO, server, jitter);
        (0..)
            .map_while(next)
            .map(|delay| delay.as_millis() as u64)
            .collect()
    }

    #[test]
    fn delays_grow_whatever_the_jitter() {
        assert_eq!(delays(None, 0.0), [500, 1000, 2000, 4000, 8000]);
        assert_eq!(delays(None, 1.0), [375, 750, 1500, 3000, 6000]);
    }

    #[test]
    fn server_names_the_delay_up_to_five_minutes() {
        assert_eq!(delays(Some(ms(1500)), 1.0), [1500; 5]);
        assert_eq!(delays(Some(ms(300_000)), 1.0), [300_000; 5]);
        assert_eq!(delays(Some(ms(300_001)), 1.0), [0; 0]);
    }

    #[test]
    fn budget_ends_retries_unless_the_server_names_a_time() {
        let next = |server| next_delay(&Policy::default(), 0, ms(29_900), server, 0.0);
        assert_eq!(next(None), None);
        assert_eq!(next(Some(ms(60_000))), Some(ms(60_000)));
    }

    #[test]
    fn headers_are_read_in_every_form() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |headers: &[(&'static str, &str)]| {
            let pairs = headers.iter().map(|(name, value)| {
                (
                    name.parse::<reqwest::header::HeaderName>().unwrap(),
                    value.parse().unwrap(),
                )
            });
            let advice = Advice::from_headers(&pairs.collect(), now);
            (advice.should_retry, advice.after)
        };
        assert_eq!(read(&[]), (None, None));
        assert_eq!(
            read(&[("retry-after", "2"), ("x-should-retry", "false")]),
            (Some(false), Some(ms(2000)))
        );
        assert_eq!(
            read(&[("retry-after", "2"), ("retry-after-ms", "15")]),
            (None, Some(ms(15)))
        );
        assert_eq!(
            read(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]),
            (None, Some(ms(10_000)))
        );
        assert_eq!(
            read(&[("retry-after", "Sun, 06 Nov 1994 08:49:27 GMT")]),
            (None, Some(ms(0)))
        );
        for nonsense in ["-1", "NaN", "inf", "1e300", "soon", ""] {
            assert_eq!(
                read(&[("retry-after", nonsense)]),
                (None, None),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn statuses_that_pass_are_retried_unless_the_server_says_otherwise() {
        let retried = |status, should_retry| {
            let server = Server {
                provider: String::new(),
                base_url: String::new(),
            };
            let advice = Advice {
                should_retry,
                after: None,
            };
            is_transient(&Error::Status {
                server,
                status,
                message: String::new(),
                advice,
                refusal: None,
            })
        };
        let transient: Vec<u16> = (300..600).filter(|status| retried(*status, None)).collect();
        assert_eq!(
            transient,
            [408, 409, 429]
                .into_iter()
                .chain(500..600)
                .collect::<Vec<_>>()
        );
        assert!(retried(400, Some(true)));
        assert!(!retried(503, Some(false)));
    }
}
