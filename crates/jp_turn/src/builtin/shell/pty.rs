//! A shell on a terminal of its own.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use jp_process::group;
use pty_process::{
    Size,
    blocking::{self, Pts, Pty},
};
use rustix::{
    io::ioctl_fionread,
    process::{Pid, Signal, kill_process_group},
    termios::{LocalModes, OptionalActions, tcgetattr, tcgetpgrp, tcsetattr},
};

use super::output::prompts;

/// How long what runs may take to end once the terminal is gone.
const FAREWELL: Duration = Duration::from_millis(150);
const TICK: Duration = Duration::from_millis(2);

/// A shell on a terminal of its own; dropping it ends both, and what was started there.
pub(super) struct Terminal {
    pty: Arc<Pty>,
    /// The end that the shell has.
    pts: OwnedFd,
    shell: Child,
    keyboard: Sender<Vec<u8>>,
    is_reaped: bool,
}

impl Terminal {
    /// Starts a shell; what comes from it goes to `screen`, until that says no.
    pub(super) fn open(
        secret: u32,
        screen: impl FnMut(&[u8]) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (pty, pts) = blocking::open().map_err(io::Error::other)?;
        pty.resize(Size::new(24, 200)).map_err(io::Error::other)?;
        silence(&pts)?;
        let kept = pts.as_fd().try_clone_to_owned()?;
        let shell = blocking::Command::from(shell(secret))
            .spawn(pts)
            .map_err(io::Error::other)?;
        let (keyboard, typed) = channel();
        let terminal = Self {
            pty: Arc::new(pty),
            pts: kept,
            shell,
            keyboard,
            is_reaped: false,
        };
        let (reader, writer) = (Arc::clone(&terminal.pty), Arc::clone(&terminal.pty));
        on_thread(move || show(&reader, screen))?;
        on_thread(move || enter(&writer, &typed))?;
        Ok(terminal)
    }

    /// Types, without waiting for anybody to read it.
    pub(super) fn enter(&self, bytes: &[u8]) {
        // Fails once the terminal is gone, which the end of the shell says.
        _ = self.keyboard.send(bytes.to_vec());
    }

    /// Returns whether the shell itself has the terminal, and no program that it runs, and all that was typed is read.
    pub(super) fn is_at_shell(&self) -> bool {
        tcgetpgrp(&*self.pty).is_ok_and(|group| group == Pid::from_child(&self.shell))
            && ioctl_fionread(&self.pts).is_ok_and(|unread| unread == 0)
    }

    /// Returns whether the shell has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.is_reaped || group::has_ended(&mut self.shell).unwrap_or(true)
    }

    /// Ends the shell and what was started from it, as far as that is still in its session.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        if !self.is_reaped {
            self.signal(Signal::HUP);
            let asked = Instant::now();
            while asked.elapsed() < FAREWELL && !self.has_ended() {
                thread::sleep(TICK);
            }
            self.signal(Signal::KILL);
            self.is_reaped = true;
        }
        self.shell.wait().ok()
    }

    /// The shell must not have been reaped: then its id still names the session.
    fn signal(&self, signal: Signal) {
        let shell = Pid::from_child(&self.shell);
        let mut groups = groups_of_session(shell);
        groups.extend(tcgetpgrp(&*self.pty));
        groups.push(shell);
        for group in groups {
            // Fails where there is nothing left to end.
            _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

/// What is typed does not come back.
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
            // `!` in a command is itself, and nothing of the person's is read or written.
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

/// Finds the process groups of a session, where the system has `/proc`.
fn groups_of_session(leader: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let group = |stat: String| {
        // After the name, which may hold anything, come state, parent, group and session.
        let mut fields = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .skip(2)
            .map(str::parse::<i32>);
        let (group, session) = (fields.next()?.ok()?, fields.next()?.ok()?);
        (session == leader.as_raw_pid())
            .then(|| Pid::from_raw(group))
            .flatten()
    };
    let mut groups: Vec<_> = processes
        .flatten()
        .filter_map(|process| fs::read_to_string(process.path().join("stat")).ok())
        .filter_map(group)
        .collect();
    groups.sort_unstable_by_key(|group| group.as_raw_pid());
    groups.dedup();
    groups
}

fn on_thread(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name("terminal".into())
        .spawn(run)
        .map(drop)
}

fn show(mut pty: &Pty, mut screen: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match pty.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Linux fails where nobody has the other end open any more.
            Ok(0) | Err(_) => return,
            Ok(length) if !screen(&buffer[..length]) => return,
            Ok(_) => {}
        }
    }
}

fn enter(mut pty: &Pty, typed: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = typed.recv() {
        if pty.write_all(&bytes).is_err() {
            return;
        }
    }
}
