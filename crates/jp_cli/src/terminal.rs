//! The user's terminal: prompts, and programs that need the terminal.

mod quote;

use std::{
    io,
    process::{Command, ExitStatus},
};

use jp_session::person::Answer;

use self::input::Input;
pub(crate) use self::quote::{Extent, quote, quote_for_user, shorten};
use crate::{
    output::{Output, Tone},
    signals::SignalListener,
};

/// A terminal at which a user can answer.
pub(crate) struct Terminal<'a> {
    input: Input,
    output: &'a Output,
    signals: &'a SignalListener,
    /// The command line of the user's editor.
    pub(crate) editor: Option<&'a str>,
}

/// The reaction to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A line, without its line end.
    Line(String),
    /// The end of the input (Ctrl-D).
    Nothing,
    /// Ctrl-C, or another signal that ends the command.
    Interrupted,
}

impl<'a> Terminal<'a> {
    /// Opens the terminal; returns `None` if no user can answer.
    ///
    /// Prompts go to stderr, which must be a terminal. The answers come from stdin if it is a terminal, else from the
    /// terminal that the command was started from, as in `git diff | jp q …`.
    pub(crate) fn open(
        stdin_is_terminal: bool,
        stderr_is_terminal: bool,
        output: &'a Output,
        signals: impl FnOnce() -> &'a SignalListener,
        editor: Option<&'a str>,
    ) -> Option<Self> {
        if !stderr_is_terminal {
            return None;
        }
        let input = Input::open(stdin_is_terminal)?;
        Some(Self {
            input,
            output,
            signals: signals(),
            editor,
        })
    }

    /// Returns the width of the terminal in columns.
    pub(crate) fn columns(&self) -> usize {
        /// The width of a terminal that does not report one.
        const USUAL: usize = 80;
        input::columns()
            .filter(|columns| *columns > 0)
            .unwrap_or(USUAL)
    }

    /// Shows a line.
    pub(crate) fn tell(&self, tone: Tone, line: &str) {
        self.output.tell(tone, line);
    }

    /// Asks for a line. Drops all input from before the prompt, which the user typed for something else.
    pub(crate) fn ask(&self, prompt: &str) -> Typed {
        self.input.forget();
        self.output.ask(prompt);
        let typed = self.input.read(self.signals.interrupt.flag());
        if !matches!(typed, Typed::Line(_)) {
            // The cursor is still behind the prompt.
            self.tell(Tone::Plain, "");
        }
        typed
    }

    /// Asks a question to answer with yes or no. Anything but a yes is a no.
    pub(crate) fn confirm(&self, question: &str) -> Answer {
        match self.ask(&format!("{question} [y/N]")) {
            Typed::Line(line) => match line.trim().to_lowercase().as_str() {
                "y" | "yes" => Answer::Yes,
                _ => Answer::No,
            },
            Typed::Nothing => Answer::No,
            Typed::Interrupted => Answer::Interrupted,
        }
    }

    /// Runs a program that has the terminal until it ends.
    pub(crate) fn lend(&self, command: &mut Command) -> io::Result<ExitStatus> {
        self.input.lend(command)?;
        self.signals.lend(|| command.status())
    }
}

#[cfg(unix)]
mod input {
    use std::{
        fs::File,
        io::{self, Read as _},
        os::fd::AsFd as _,
        process::Command,
        sync::atomic::{AtomicBool, Ordering::Acquire},
    };

    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::Errno,
        termios::{QueueSelector, tcflush},
    };

    use super::Typed;

    /// The terminal as a source of input.
    pub(super) struct Input(File);

    /// The time to wait for input before checking for a signal: 50 ms, which a user doesn't notice.
    const TICK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };

    /// Returns the width of the terminal that prompts go to.
    pub(super) fn columns() -> Option<usize> {
        rustix::termios::tcgetwinsize(io::stderr())
            .ok()
            .map(|size| usize::from(size.ws_col))
    }

    impl Input {
        pub(super) fn open(stdin_is_terminal: bool) -> Option<Self> {
            let file = if stdin_is_terminal {
                io::stdin().as_fd().try_clone_to_owned().map(File::from)
            } else {
                File::open("/dev/tty")
            };
            file.ok().map(Self)
        }

        /// Drops input that is not read yet.
        pub(super) fn forget(&self) {
            // Fails if the terminal is gone; then there is nothing to read either.
            _ = tcflush(&self.0, QueueSelector::IFlush);
        }

        /// Reads a line. The terminal is in its line mode: it handles editing keys and passes on whole lines.
        pub(super) fn read(&self, is_interrupted: &AtomicBool) -> Typed {
            let mut line = Vec::new();
            while !line.ends_with(b"\n") {
                if is_interrupted.load(Acquire) {
                    return Typed::Interrupted;
                }
                match self.read_piece(&mut line) {
                    // Ctrl-D on an empty line. After text it only ends the line.
                    Ok(Some(0)) if line.is_empty() => return Typed::Nothing,
                    Ok(Some(0)) => break,
                    Ok(_) => {}
                    Err(_) => return Typed::Nothing,
                }
            }
            // A terminal in another encoding must not end the command.
            let line = String::from_utf8_lossy(&line);
            Typed::Line(line.trim_end_matches(['\r', '\n']).to_owned())
        }

        /// Reads the available input; returns `None` if there was none for one [`TICK`].
        fn read_piece(&self, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&TICK)) {
                Ok(0) | Err(Errno::INTR) => return Ok(None),
                ready => ready?,
            };
            let mut piece = [0; 4096];
            match (&self.0).read(&mut piece) {
                Ok(count) => {
                    line.extend_from_slice(&piece[..count]);
                    Ok(Some(count))
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                    ) =>
                {
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }

        /// Connects a program's stdin to the terminal, and its stdout to the place of prompts.
        pub(super) fn lend(&self, command: &mut Command) -> io::Result<()> {
            command
                .stdin(self.0.try_clone()?)
                .stdout(io::stderr().as_fd().try_clone_to_owned()?);
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod input {
    use std::{io, process::Command, sync::atomic::AtomicBool};

    use super::Typed;

    /// Standard input.
    pub(super) struct Input;

    /// Returns `None`: the width is known only on Unix.
    pub(super) fn columns() -> Option<usize> {
        None
    }

    impl Input {
        pub(super) fn open(stdin_is_terminal: bool) -> Option<Self> {
            stdin_is_terminal.then_some(Self)
        }

        pub(super) fn forget(&self) {}

        pub(super) fn read(&self, _is_interrupted: &AtomicBool) -> Typed {
            let mut line = String::new();
            match io::stdin().read_line(&mut line) {
                Ok(count) if count > 0 => {
                    Typed::Line(line.trim_end_matches(['\r', '\n']).to_owned())
                }
                _ => Typed::Nothing,
            }
        }

        pub(super) fn lend(&self, _command: &mut Command) -> io::Result<()> {
            Ok(())
        }
    }
}
