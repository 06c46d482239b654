//! The times that jp waits for programs. Every wait for an end in the workspace uses these.

use std::time::Duration;

/// Time from the end of a program's input, or from the request to stop in its own protocol, to
/// SIGTERM. A server that has work to save needs it; half a second is the most that the end of a
/// command may hold up the prompt without looking stuck.
pub const AFTER_INPUT: Duration = Duration::from_millis(500);
/// Time from SIGTERM (SIGHUP on a terminal) to SIGKILL. git, for one, removes its locks in it.
pub const AFTER_SIGNAL: Duration = Duration::from_millis(250);
/// The time by which a program and its output may outlive each other. A program that has closed its
/// output is about to end, and after its end another process may still hold its output.
pub const OUTPUT_AND_EXIT: Duration = Duration::from_millis(500);
/// The time that the last bytes of a program that has ended may need to come through a pipe. It is
/// used up only if another process holds the pipe.
pub const LAST_BYTES: Duration = Duration::from_millis(200);
/// Pause between two looks at whether a program has ended.
pub const TICK: Duration = Duration::from_millis(2);
