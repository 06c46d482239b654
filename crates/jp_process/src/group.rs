//! Process groups: what the platform offers to watch and signal a program with what it started.

use std::{
    io,
    process::{Child, Command},
};

#[cfg(unix)]
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Puts the program into a process group of its own: a signal of the terminal does not reach it,
/// and jp can signal the whole group.
#[cfg(unix)]
pub(crate) fn separate(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
pub(crate) fn separate(_: &mut Command) {}

/// Returns whether the program has ended, without reaping it: its id still names the group.
#[cfg(unix)]
pub(crate) fn has_ended(child: &mut Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), options) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        status => Ok(status?.is_some()),
    }
}

#[cfg(not(unix))]
pub(crate) fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

/// Returns whether the program is stopped: it wanted to read from the terminal, which only the
/// foreground group may.
#[cfg(unix)]
pub(crate) fn is_stopped(child: &mut Child) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(
        waitid(WaitId::Pid(Pid::from_child(child)), options),
        Ok(Some(_))
    )
}

#[cfg(not(unix))]
pub(crate) fn is_stopped(_: &mut Child) -> bool {
    false
}

/// Signals a process group. Its leader must not have been reaped, or the id may be another's.
#[cfg(unix)]
pub(crate) fn signal(leader: Pid, signal: Signal) {
    // Fails if there is no process left in the group.
    let _ = kill_process_group(leader, signal);
}
