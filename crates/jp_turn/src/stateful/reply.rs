//! A line from a process, and the bounds of waiting for it.

use std::time::Duration;

use crate::parse::MAX_PRINTED;

/// The longest line that is read, in bytes: as much as a tool that runs once may print.
pub(super) const MAX_LINE: usize = MAX_PRINTED;
/// Bytes of stderr that are remembered, the last ones: enough for the traceback of an interpreter.
pub(super) const MAX_ERRORS: usize = 16 * 1024;
/// The time to wait for a line before checking for a cancellation: short enough that Ctrl-C feels
/// immediate.
pub(super) const LINE_TICK: Duration = Duration::from_millis(20);

/// The end of a wait for a line.
#[derive(Debug)]
pub(super) enum LineReply {
    /// A line came.
    Line(Vec<u8>),
    /// Nothing came in time.
    Silence,
    /// The call was cancelled.
    Moot,
    /// The line has more than [`MAX_LINE`] bytes.
    TooLong,
    /// The process ended or closed its output.
    Gone,
}
