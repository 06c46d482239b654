//! A process that reads and writes lines.

use std::{
    path::Path,
    process::{Command, ExitStatus},
    time::Duration,
};

use super::{kept::Kept, owned::Owned};
use crate::parse::MAX_PRINTED;

/// The longest line that is read, in bytes.
pub(super) const MAX_LINE: usize = MAX_PRINTED;
/// How much is remembered of what came on stderr, in bytes.
pub(super) const MAX_ERRORS: usize = 16 * 1024;
/// How long to wait for a line before looking whether it is still wanted.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// The same for an end.
pub(super) const SHORT_TICK: Duration = Duration::from_millis(2);
/// How long a process that is asked to end by a signal may take.
pub(super) const GRACE: Duration = Duration::from_millis(250);
/// How long lines may be on their way once the process has ended.
pub(super) const LINGER: Duration = Duration::from_millis(100);

/// A process that reads and writes lines.
#[derive(Debug)]
pub(super) enum Process {
    /// It ends with the turn.
    Owned(Owned),
    /// It stays.
    Kept(Kept),
}

/// What a wait for a line ended with.
#[derive(Debug)]
pub(super) enum Reply {
    /// A line.
    Line(Vec<u8>),
    /// Nothing in time.
    Silence,
    /// Nothing, and nobody wants it any more.
    Moot,
    /// A line of more than [`MAX_LINE`].
    TooLong,
    /// The process ended, or closed its output.
    Gone,
}

impl Process {
    /// Starts a process that ends with the turn.
    pub(super) fn start(command: Command) -> std::io::Result<Self> {
        Owned::start(command).map(Self::Owned)
    }

    /// Starts a process that stays; what it needs is put into the directory, which is made.
    pub(super) fn keep(command: Command, directory: &Path) -> std::io::Result<Self> {
        Kept::start(command, directory).map(Self::Kept)
    }

    /// Returns whether a line was sent that it has not answered.
    pub(super) fn is_owed(&self) -> bool {
        match self {
            Self::Owned(owned) => owned.is_owed,
            Self::Kept(kept) => kept.is_owed,
        }
    }

    /// Sends a line; that the process takes it is not waited for.
    pub(super) fn send(&mut self, line: Vec<u8>) {
        match self {
            Self::Owned(owned) => owned.send(line),
            Self::Kept(kept) => kept.send(line),
        }
    }

    /// Waits for a line, for at most so long.
    pub(super) fn receive(&mut self, timeout: Duration, is_moot: &dyn Fn() -> bool) -> Reply {
        match self {
            Self::Owned(owned) => owned.receive(timeout, is_moot),
            Self::Kept(kept) => kept.receive(timeout, is_moot),
        }
    }

    /// Takes a line that came unasked, or late.
    pub(super) fn receive_ready(&mut self) -> Option<Reply> {
        match self {
            Self::Owned(owned) => owned.receive_ready(),
            Self::Kept(kept) => kept.receive_ready(),
        }
    }

    /// Returns the end of what came on stderr.
    pub(super) fn errors(&self) -> String {
        match self {
            Self::Owned(owned) => owned.errors(),
            Self::Kept(kept) => kept.errors(),
        }
    }

    /// Gives the process a moment to end, makes it, and returns how it ended where that can be told.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Owned(owned) => owned.end(),
            Self::Kept(kept) => kept.end(),
        }
    }
}
