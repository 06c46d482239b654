//! A shell on its own terminal.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::{Command, ExitStatus},
};

use jp_process::{
    Supervisor,
    pipe::{InputQueue, detach, read_chunks},
};
use pty_process::{
    Size,
    blocking::{self, Pts},
};
use rustix::{
    io::ioctl_fionread,
    process::Pid,
    termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr},
};

use super::output::prompts;

/// A shell on its own terminal. Dropping it ends the shell and everything that it started.
pub(super) struct Terminal {
    terminal: File,
    /// The end that the shell has.
    shell_end: OwnedFd,
    shell: Pid,
    program: Supervisor,
    keyboard: InputQueue,
}

impl Terminal {
    /// Starts a shell. What it shows goes to `screen`, until that returns false.
    pub(super) fn open(
        secret: u32,
        screen: impl FnMut(&[u8]) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (pty, pts) = blocking::open().map_err(io::Error::other)?;
        // Wide, so that programs fold few lines.
        pty.resize(Size::new(24, 200)).map_err(io::Error::other)?;
        silence(&pts)?;
        let shell_end = pts.as_fd().try_clone_to_owned()?;
        let shell = blocking::Command::from(shell(secret))
            .spawn(pts)
            .map_err(io::Error::other)?;
        let terminal = File::from(OwnedFd::from(pty));
        let reader = terminal.try_clone()?;
        let opened = Self {
            shell: Pid::from_child(&shell),
            program: Supervisor::lead_session(shell, terminal.try_clone()?.into()),
            keyboard: InputQueue::new(terminal.try_clone()?)?,
            terminal,
            shell_end,
        };
        // On Linux, the read fails once no process has the other end open.
        detach(move || _ = read_chunks(reader, screen))?;
        Ok(opened)
    }

    /// Types bytes without waiting until a program reads them.
    pub(super) fn enter(&self, bytes: &[u8]) {
        self.keyboard.send(bytes.to_vec());
    }

    /// Returns whether the shell itself is in the foreground and everything that was typed is read.
    pub(super) fn is_at_shell(&self) -> bool {
        tcgetpgrp(&self.terminal).is_ok_and(|group| group == self.shell)
            && ioctl_fionread(&self.shell_end).is_ok_and(|unread| unread == 0)
    }

    /// Returns whether the shell has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.program.has_ended()
    }

    /// Ends the shell and everything that it started.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        self.program.terminate();
        self.program.end()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

/// Switches off the echo of typed text.
fn silence(pts: &Pts) -> io::Result<()> {
    let mut modes = tcgetattr(pts)?;
    modes
        .local_modes
        .remove(LocalModes::ECHO | LocalModes::ECHONL);
    Ok(tcsetattr(pts, OptionalActions::Now, &modes)?)
}

fn shell(secret: u32) -> Command {
    let [first, second] = prompts(secret);
    let mut command = match Path::new("/bin/bash").exists() {
        true => {
            let mut bash = Command::new("/bin/bash");
            // `+H` makes `!` an ordinary character. The other options keep the user's files from
            // being read or written.
            bash.args(["--noprofile", "--norc", "--noediting", "+H", "-i"]);
            bash
        }
        false => {
            let mut sh = Command::new("/bin/sh");
            sh.arg("-i");
            sh
        }
    };
    command
        .envs([
            ("TERM", "dumb"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("HISTFILE", ""),
        ])
        .env("PS1", first)
        .env("PS2", second);
    for variable in ["PS0", "PROMPT_COMMAND", "ENV", "BASH_ENV"] {
        command.env_remove(variable);
    }
    command
}
