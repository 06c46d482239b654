//! A program together with what it starts, as far as the platform can tell.

use std::{
    io,
    process::{Child, Command},
};

#[cfg(unix)]
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Makes what is started a group of its own: a signal of the terminal does not reach it, and it can be
/// ended as a whole.
#[cfg(unix)]
pub fn separate(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
pub fn separate(_: &mut Command) {}

/// Returns whether the program has ended. It is not reaped, so its id still names the group.
#[cfg(unix)]
pub fn has_ended(child: &mut Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), options) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        found => Ok(found?.is_some()),
    }
}

#[cfg(not(unix))]
pub fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

/// Returns whether the program is stopped: it wanted to read from the terminal, which its group may not.
#[cfg(unix)]
pub fn is_stopped(child: &mut Child) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(Some(_)))
}

#[cfg(not(unix))]
pub fn is_stopped(_: &mut Child) -> bool {
    false
}

/// Asks the program, and all of its group, to end. It must not have been reaped.
#[cfg(unix)]
pub fn terminate(child: &mut Child) {
    // Fails where there is nothing left to ask.
    let _ = kill_process_group(Pid::from_child(child), Signal::TERM);
}

#[cfg(not(unix))]
pub fn terminate(_: &mut Child) {}

/// Ends the program, and all of its group. It must not have been reaped.
#[cfg(unix)]
pub fn kill(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(not(unix))]
pub fn kill(child: &mut Child) {
    let _ = child.kill();
}
