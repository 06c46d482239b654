//! The end of a command: an exit code, or an error with hints.

use std::process::ExitCode;

use jp_session::error::ErrorKind;
pub(crate) use jp_session::{SessionError, error::chain};

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
