//! The real binary at a terminal of its own, and somebody who types there.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A command that runs at a terminal; ended with the value.
pub struct Terminal {
    process: Child,
    keyboard: File,
    screen: Arc<Screen>,
    /// The length of the output that was already expected.
    seen: usize,
}

/// The output of the terminal.
#[derive(Default)]
struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Default)]
struct Shown {
    bytes: Vec<u8>,
    /// True if no process has the terminal open.
    is_over: bool,
}

/// The time limit for expected output.
const PATIENCE: Duration = Duration::from_secs(20);

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Terminal {
    /// Runs a command whose stdin, stdout and stderr are the terminal.
    pub fn run(command: Command) -> Self {
        let (terminal, side) = pty_process::blocking::open().unwrap();
        Self::start(
            terminal,
            pty_process::blocking::Command::from(command)
                .spawn(side)
                .unwrap(),
        )
    }

    /// Runs a command whose stdin is a pipe that brings `input`.
    pub fn piped(command: Command, input: &str) -> Self {
        let (terminal, side) = pty_process::blocking::open().unwrap();
        let command = pty_process::blocking::Command::from(command).stdin(Stdio::piped());
        let mut process = command.spawn(side).unwrap();
        process
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        Self::start(terminal, process)
    }

    /// Runs a command whose stdout goes into a file.
    pub fn writing_to(command: Command, file: File) -> Self {
        let (terminal, side) = pty_process::blocking::open().unwrap();
        let command = pty_process::blocking::Command::from(command).stdout(file);
        Self::start(terminal, command.spawn(side).unwrap())
    }

    fn start(terminal: pty_process::blocking::Pty, process: Child) -> Self {
        let keyboard = File::from(OwnedFd::from(terminal));
        let screen = Arc::<Screen>::default();
        let (from, to) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        thread::spawn(move || show(from, &to));
        Self {
            process,
            keyboard,
            screen,
            seen: 0,
        }
    }

    /// Waits until the terminal shows a text, after what was expected before.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        let found = self.wait_for(|shown, seen| {
            let position = shown.bytes[seen..]
                .windows(text.len())
                .position(|it| it == text.as_bytes());
            position.map(|position| seen + position + text.len())
        });
        match found {
            Some(end) => self.seen = end,
            None => panic!(
                "{text:?} does not come after byte {} of:\n{}",
                self.seen,
                self.output()
            ),
        }
    }

    /// Types.
    pub fn send(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the text and types the answer to it.
    #[track_caller]
    pub fn answer(&mut self, text: &str, answer: &str) {
        self.expect(text);
        self.send(answer);
    }

    /// Waits for the text, and for the end of the command, which must succeed.
    #[track_caller]
    pub fn finish(&mut self, text: &str) {
        self.expect(text);
        assert_eq!(self.wait(), 0, "{}", self.output());
    }

    /// Waits until nothing has the terminal any more; returns the exit code of the command.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        if self
            .wait_for(|shown, _| shown.is_over.then_some(()))
            .is_none()
        {
            panic!("the command goes on:\n{}", self.output());
        }
        self.process.wait().unwrap().code().unwrap_or(-1)
    }

    /// Returns all that the terminal has shown, with what was typed.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.screen.shown.lock().unwrap().bytes).into_owned()
    }

    /// Returns how the terminal treats what is typed and shown.
    pub fn modes(&self) -> String {
        let settings = rustix::termios::tcgetattr(&self.keyboard).unwrap();
        format!(
            "{:?} {:?} {:?}",
            settings.local_modes, settings.input_modes, settings.output_modes
        )
    }

    /// Returns what `find` finds in what is shown, as soon as it does; `None` where that will not be.
    fn wait_for<T>(&self, find: impl Fn(&Shown, usize) -> Option<T>) -> Option<T> {
        let until = Instant::now() + PATIENCE;
        let mut shown = self.screen.shown.lock().unwrap();
        loop {
            if let Some(found) = find(&shown, self.seen) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || shown.is_over {
                return None;
            }
            shown = self.screen.changed.wait_timeout(shown, left).unwrap().0;
        }
    }
}

/// Keeps what comes, until nothing has the terminal open: reading fails then.
fn show(mut terminal: File, screen: &Screen) {
    let mut piece = [0; 4096];
    loop {
        let count = terminal.read(&mut piece).unwrap_or(0);
        let mut shown = screen.shown.lock().unwrap();
        shown.bytes.extend_from_slice(&piece[..count]);
        shown.is_over = count == 0;
        screen.changed.notify_all();
        if count == 0 {
            return;
        }
    }
}
