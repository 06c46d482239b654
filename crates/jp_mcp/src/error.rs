use std::{fmt, io, sync::Arc, time::Duration};

use crate::Revision;

/// The fault of a request or a start, with the server's name.
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
    #[error("it was not ready within {} s", .0.as_secs_f64())]
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
    /// It requires the visit of a page, which the user declined or could not be asked for.
    #[error("it wants you to visit a page first, and the page was not visited")]
    Declined,
    /// It requires visits of these pages.
    #[error("it wants you to visit {} pages first", .0.len())]
    UrlRequired(Vec<serde_json::Value>),
    /// It answered with an HTTP error or a redirect.
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
    /// It returned a cursor twice, so its pages would never end.
    #[error("it returned the cursor {cursor:?} of `{method}` twice")]
    CursorLoop {
        /// The method of the list.
        method: String,
        /// The cursor.
        cursor: String,
    },
    /// It asked too many questions.
    #[error("it asked back {0} times without answering")]
    TooManyRounds(usize),
    /// The login failed.
    #[error("the login failed: {0}")]
    Login(String),
    /// The server supports none of jp's revisions, only these.
    #[error("it supports no MCP revision that jp supports: it named {0:?}; jp supports {supported}", supported = Revision::SUPPORTED.join(", "))]
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

/// A fault of HTTP, in the form for rmcp.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpError(pub(crate) Arc<Fault>);

impl HttpError {
    pub(crate) fn new(fault: Fault) -> Self {
        Self(Arc::new(fault))
    }
}

/// The error of a message that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the server's stdin is closed")]
pub(crate) struct PipeError(#[from] pub(crate) io::Error);
