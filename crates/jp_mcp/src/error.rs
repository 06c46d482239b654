use std::{fmt, io, sync::Arc, time::Duration};

use crate::Revision;

/// A request that failed, with the server's name.
#[derive(Debug, Clone)]
pub struct ServerError {
    /// The server's name in the configuration.
    pub server: String,
    /// The reason.
    pub fault: Fault,
    /// Its last lines of stderr, if it ended or did not get ready.
    pub stderr: Vec<String>,
}

/// The reason why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// The configuration has no such server.
    #[error("it is not configured")]
    Unknown,
    /// The program can't be started.
    #[error("{program:?} can't be started: {reason}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        reason: String,
    },
    /// It did not finish the handshake in time.
    #[error("it did not get ready within {} s", .0.as_secs_f64())]
    StartTimeout(Duration),
    /// It did not answer in time.
    #[error("it did not answer `{method}` within {} s", timeout.as_secs_f64())]
    Timeout {
        /// The method of the request.
        method: String,
        /// The time that it had.
        timeout: Duration,
    },
    /// It is gone.
    #[error("{0}")]
    Ended(String),
    /// It was gone before the request could be sent.
    #[error("{0}")]
    NotSent(String),
    /// It answered with an error.
    #[error("it answered `{method}` with the error {code}: {message}")]
    Refused {
        /// The method of the request.
        method: String,
        /// The code of JSON-RPC.
        code: i32,
        /// The server's message.
        message: String,
    },
    /// It wants a page to be visited first, and the user refused.
    #[error("it wants a page to be visited first, and it was not")]
    Declined,
    /// It wants these pages to be visited before it answers.
    #[error("it wants {} pages to be visited first", .0.len())]
    UrlRequired(Vec<serde_json::Value>),
    /// It answered with a status of HTTP other than success.
    #[error("{0}")]
    Status(Box<HttpStatus>),
    /// It could not be reached.
    #[error("{0}")]
    Unreachable(String),
    /// It broke the protocol.
    #[error("{0}")]
    Malformed(String),
    /// It sent a message that is too long.
    #[error("it sent a message of more than {0} bytes")]
    MessageTooLong(usize),
    /// It sent text that is too long.
    #[error("it sent {what} of more than {limit} bytes")]
    TooLong {
        /// The text.
        what: String,
        /// Its bound in bytes.
        limit: usize,
    },
    /// It sent too many of something.
    #[error("it sent more than {limit} {what}")]
    TooMany {
        /// The things, in the plural.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// Its pages lead back to one that was read.
    #[error("the pages of `{method}` lead in a circle: the cursor {cursor:?} came twice")]
    CursorLoop {
        /// The method of the list.
        method: String,
        /// The cursor that came twice.
        cursor: String,
    },
    /// It asked back again and again.
    #[error("it asked back {0} times without an answer")]
    TooManyRounds(usize),
    /// The login failed.
    #[error("the login failed: {0}")]
    Login(String),
    /// The server supports none of jp's revisions, only these.
    #[error("it speaks no revision of MCP that jp does: it says {0:?}, and jp speaks {spoken}", spoken = Revision::SPOKEN.join(", "))]
    NoCommonRevision(String),
    /// It does not offer this capability.
    #[error("it has no {0}")]
    Unsupported(&'static str),
    /// The caller cancelled it.
    #[error("interrupted")]
    Interrupted,
}

/// An HTTP answer other than success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpStatus {
    /// The status.
    pub status: u16,
    /// The target of a redirect.
    pub location: Option<String>,
    /// The challenge of a server that wants a login (`WWW-Authenticate`).
    pub challenge: Option<String>,
    /// The beginning of the body.
    pub body: String,
}

impl ServerError {
    pub(crate) fn new(server: &str, fault: impl Into<Fault>) -> Self {
        Self {
            server: server.to_owned(),
            fault: fault.into(),
            stderr: Vec::new(),
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the MCP server `{}`: {}", self.server, self.fault)
    }
}

impl std::error::Error for ServerError {}

impl fmt::Display for HttpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = http::StatusCode::from_u16(self.status).ok();
        let reason = status
            .and_then(|status| status.canonical_reason())
            .unwrap_or_default();
        write!(f, "it answered with the status {} {reason}", self.status)?;
        match &self.location {
            Some(location) => write!(f, ", a redirect to {location}, which is not followed"),
            None if self.body.is_empty() => Ok(()),
            None => write!(f, ": {}", self.body),
        }
    }
}

/// An error of HTTP on its way through rmcp.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpError(pub(crate) Arc<Fault>);

impl HttpError {
    pub(crate) fn new(fault: Fault) -> Self {
        Self(Arc::new(fault))
    }
}

/// Why a line could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the server's stdin is closed")]
pub(crate) struct PipeError(#[from] pub(crate) io::Error);
