//! A process that outlives the turn: its lines go through named pipes, in a directory of its own.
//!
//! The process has both ends of its pipes open, so it sees no end of its input when jp ends, and what it writes waits
//! for the next turn. jp reads only while somebody waits for a line, and leaves what it read too much of beside the
//! pipes.

#[cfg(not(unix))]
mod absent;
#[cfg(unix)]
mod named_pipes;

use std::path::{Path, PathBuf};

#[cfg(not(unix))]
pub(super) use self::absent::Kept;
#[cfg(unix)]
pub(super) use self::named_pipes::Kept;

/// Returns where a process has its pipes; the handle alone could be `..`.
pub(super) fn directory(handles: &Path, tool: &str, handle: &str) -> PathBuf {
    handles.join(format!("{tool}={handle}"))
}
