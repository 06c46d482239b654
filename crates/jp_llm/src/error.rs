use std::{error::Error as StdError, fmt, io, time::Duration};

use serde_json::Value;

use crate::{
    Refusal,
    error_text::{excerpt, message_in},
};

/// Why a request or its answer failed; each message finishes "failed to …".
///
/// None holds a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A URL can't be a server's root.
    #[error("use `{text}` as base_url: {reason}")]
    BaseUrl {
        /// The URL, from the host on where it holds credentials.
        text: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// Stored content can't be read.
    #[error("load {subject} for the request")]
    Load {
        /// The content: a resource's URI or a tool's result.
        subject: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The request can't be written to memory or to a temporary file, or read from there.
    #[error("write the request")]
    Write(#[from] io::Error),
    /// The key can't stand in a header, or the system's certificates can't be read.
    #[error("set up the connection to {server}")]
    Setup {
        /// The server.
        server: Server,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Nothing listens there.
    #[error("reach {server}: connection refused")]
    Refused {
        /// The server.
        server: Server,
    },
    /// The connection could not be made, or ended before the answer began.
    #[error("reach {server}")]
    Unreachable {
        /// The server.
        server: Server,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The server refused the request.
    #[error("get an answer from {server}: {status}: {message}{advice}")]
    Status {
        /// The server.
        server: Server,
        /// The HTTP status.
        status: u16,
        /// The server's own words, shortened, on one line.
        message: String,
        /// The server's advice about trying again.
        advice: Advice,
        /// The meaning, if it is known.
        refusal: Option<Box<Refusal>>,
    },
    /// The answer is no answer, or ended early. What came before stays valid.
    #[error("read the answer of {server}")]
    Stream {
        /// The server.
        server: Server,
        /// The fault of the answer.
        #[source]
        fault: Fault,
    },
}

/// A fault of an answer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The stream ended without an end mark.
    #[error("it ended before it was complete")]
    Truncated,
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
    /// Nothing came for too long.
    #[error("no data arrived for {} s", .limit.as_secs_f64())]
    Idle {
        /// The time that was waited.
        limit: Duration,
    },
    /// No more of the request could be sent for too long.
    #[error("sending the request stalled for {} s, after {taken} of its {len} bytes", .limit.as_secs_f64())]
    NotTaken {
        /// The time that was waited.
        limit: Duration,
        /// Bytes that the connection took.
        taken: u64,
        /// Bytes that the request has.
        len: u64,
    },
    /// It is too large.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// A part of the stream can't be read.
    #[error("it contains invalid data: {excerpt}")]
    Malformed {
        /// The beginning of the part, on one line.
        excerpt: String,
    },
    /// It is something else than a stream.
    #[error("it is {content_type}, not {expected}: {excerpt}")]
    NotAStream {
        /// The media type that the server gives it.
        content_type: String,
        /// The media type of a stream in this format.
        expected: &'static str,
        /// Its beginning, on one line.
        excerpt: String,
    },
    /// It is compressed.
    #[error(
        "it is compressed ({encoding}), although jp did not request that; a proxy may have compressed it"
    )]
    Compressed {
        /// The encoding that the server names.
        encoding: String,
    },
    /// It can't be about the request.
    #[error("it began before the whole request was sent")]
    Early,
    /// The server reported an error in the stream.
    #[error("the server says: {message}")]
    Provider {
        /// The HTTP status that the error would have had, where it says.
        status: Option<u16>,
        /// The server's own words, shortened, on one line.
        message: String,
        /// The meaning, if it is known.
        refusal: Option<Box<Refusal>>,
    },
}

impl Error {
    /// Returns why the server refuses the request for good, where it says so in words that are known.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Status { refusal, .. }
            | Self::Stream {
                fault: Fault::Provider { refusal, .. },
                ..
            } => refusal.as_deref(),
            _ => None,
        }
    }
}

impl Fault {
    /// Makes a fault of an error object in a stream; one without a message is shown as it is.
    pub(crate) fn provider(status: Option<u16>, error: &Value) -> Self {
        let message = message_in(error).map_or_else(|| excerpt(&error.to_string()), excerpt);
        Self::Provider {
            status,
            message,
            refusal: Refusal::read(status, error).map(Box::new),
        }
    }
}

/// A server's advice about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    /// True if it recommends another try (`x-should-retry`).
    pub should_retry: Option<bool>,
    /// The time to wait first (`retry-after-ms`, `retry-after`).
    pub after: Option<Duration>,
}

impl fmt::Display for Advice {
    /// Stands after the server's message, where there is something to say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.after {
            Some(after) => write!(f, " (it asks to wait {:.1} s)", after.as_secs_f64()),
            None => Ok(()),
        }
    }
}

/// The server that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The provider's name.
    pub provider: String,
    /// The server's root.
    pub base_url: String,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.provider, self.base_url)
    }
}

/// Returns an error's message with those of its causes.
pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_small_enough_to_return() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
