//! `jp shell-session`: the process behind the tool `shell`.

use crate::error::{Code, SessionError};
use std::io;

/// Serves a shell until the shell or stdin ends.
pub(crate) fn run() -> Result<Code, SessionError> {
    match jp_turn::serve_shell(io::BufReader::new(io::stdin()), io::stdout()) {
        Ok(()) => Ok(Code::Done),
        // The jp that started this process has ended.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Code::Done),
        Err(error) => Err(SessionError::new(format!(
            "the shell session failed: {error}"
        ))),
    }
}
