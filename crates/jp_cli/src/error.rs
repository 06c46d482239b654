//! The end of a command: an exit code, and an error with hints.

use std::{fmt, process::ExitCode};

pub(crate) use jp_session::error::chain;
use jp_session::error::{ErrorKind, SessionError};

/// The exit code of a command. `jp help exit-codes` describes them to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command succeeded.
    Done = 0,
    /// The command failed.
    Failed = 1,
    /// The arguments are wrong.
    Usage = 2,
    /// A budget or a policy refused the command.
    Refused = 3,
    /// The user interrupted the command: 128 + SIGINT, as in shells.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// The failure of a command: a message, and hints with steps that the user can take.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            code: Code::Failed,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: Code::Usage,
            ..Self::new(message)
        }
    }

    /// Creates a failure of an operation of the operating system. The message of an `io::Error` doesn't name the
    /// operation, so `attempt` does: "read the current directory".
    pub(crate) fn from_system(attempt: &str, error: std::io::Error) -> Self {
        SessionError::from_system(attempt, error).into()
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        self.hints
            .iter()
            .try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self {
            code: error.kind.into(),
            message: error.message,
            hints: error.hints,
        }
    }
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.code {
            Code::Done | Code::Failed => ErrorKind::Failed,
            Code::Usage => ErrorKind::Usage,
            Code::Refused => ErrorKind::Refused,
            Code::Interrupted => ErrorKind::Interrupted,
        };
        Self {
            kind,
            message: failure.message,
            hints: failure.hints,
        }
    }
}

impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Failed => Self::Failed,
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Refused => Self::Refused,
            ErrorKind::Interrupted => Self::Interrupted,
        }
    }
}

/// Implements the conversion from each library's error. The list is explicit, so that a bare `io::Error` doesn't convert.
macro_rules! convert_library_errors {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                SessionError::from_library(&error).into()
            }
        })*
    };
}

convert_library_errors!(
    jp_config::Error,
    jp_llm::Error,
    jp_storage::BlobError,
    jp_storage::InitError,
    jp_storage::ReadError,
    jp_storage::StoreError,
    jp_storage::WriteError,
    jp_serve::OpenError,
    serde_json::Error,
);
