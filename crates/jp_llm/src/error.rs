use std::{error::Error as StdError, fmt, io, time::Duration};

use serde_json::Value;

use crate::{Refusal, http::message_in, retry::Advice};

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
        /// What is wrong with it.
        reason: String,
    },
    /// Stored content can't be read.
    #[error("load {subject} for the request")]
    Load {
        /// The content: a resource's URI or a tool's result.
        subject: String,
        /// Why.
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
        /// Why.
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
        /// Why.
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
        /// What the server says about trying again.
        advice: Advice,
        /// What it means, where that is known.
        refusal: Option<Box<Refusal>>,
    },
    /// The answer is no answer, or ended early. What came before stays valid.
    #[error("read the answer of {server}")]
    Stream {
        /// The server.
        server: Server,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
}

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The stream ended without an end mark.
    #[error("it ended before it was complete")]
    Truncated,
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
    /// Nothing came for too long.
    #[error("nothing came for {} s", .limit.as_secs_f64())]
    Idle {
        /// How long was waited.
        limit: Duration,
    },
    /// No more of the request could be sent for too long.
    #[error("no more of the request could be sent for {} s, after {taken} of its {len} bytes", .limit.as_secs_f64())]
    NotTaken {
        /// How long was waited.
        limit: Duration,
        /// How many bytes the connection took.
        taken: u64,
        /// How many bytes the request has.
        len: u64,
    },
    /// It is too large.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// A part of the stream can't be read.
    #[error("it holds what is no part of an answer: {excerpt}")]
    Malformed {
        /// The beginning of the part, on one line.
        excerpt: String,
    },
    /// It is something else than a stream.
    #[error("it is {content_type}, not {expected}: {excerpt}")]
    NotAStream {
        /// What the server calls it.
        content_type: String,
        /// What a stream of the format is called.
        expected: &'static str,
        /// Its beginning, on one line.
        excerpt: String,
    },
    /// It is compressed.
    #[error("it is compressed ({encoding}), which was not asked for: a proxy may do that")]
    Compressed {
        /// How, as the server calls it.
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
        /// What it means, where that is known.
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
            refusal: Refusal::of(status, error).map(Box::new),
        }
    }
}

/// Which server an error is about.
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

/// Makes one short line of a server's text: white space runs are one space, other control
/// characters are left out.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 300;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut printable = words.chars().filter(|character| !character.is_control());
    let mut short: String = printable.by_ref().take(CHARACTERS).collect();
    if printable.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_one_short_line_without_control_characters() {
        assert_eq!(excerpt(" a\r\n\tb\u{1b}[31m\u{0} c\u{85}"), "a b[31m c");
        assert_eq!(excerpt(&"ä".repeat(301)), "ä".repeat(300) + "…");
        assert_eq!(excerpt(&"ä".repeat(300)), "ä".repeat(300));
    }

    #[test]
    fn errors_are_small_enough_to_return() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }
}
