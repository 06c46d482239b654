//! What the command ends with: an exit code, and what a person reads.

use std::{fmt, process::ExitCode};

pub(crate) use jp_session::error::chain;
use jp_session::error::{ErrorKind, SessionError};

/// How the command ended (design 05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Called wrongly.
    Usage = 2,
    /// Refused by a budget or a policy.
    Refused = 3,
    /// Interrupted by the person.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// A failure with what can be done about it.
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

    /// Words an error of the operating system, which never says what was attempted.
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

/// Writes the conversion of each library's error; the list is explicit, as in `jp_session::error`.
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
    crate::wake::WakeError,
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
