//! A process that reads and writes lines.

use std::{
    io,
    path::Path,
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use jp_process::{Supervisor, grace};

#[cfg(unix)]
use super::named_pipes::{self, NamedPipes};
use super::{pending::Pending, piped_lines::PipedLines, reply::LineReply};

/// A process that reads and writes lines.
#[derive(Debug)]
pub(super) struct LineProcess {
    program: Supervisor,
    lines: LinePipes,
    /// True if the process has not answered the last line.
    is_owed: bool,
}

/// The way that lines take; it decides how long the process lives.
#[derive(Debug)]
enum LinePipes {
    /// It ends with the turn.
    Piped(PipedLines),
    /// It stays.
    #[cfg(unix)]
    Named(NamedPipes),
}

/// A process that an earlier turn left: itself and what it waits for, or the last of its stderr if
/// it has ended.
pub(super) type Adopted = Result<(LineProcess, Option<Pending>), String>;

impl LineProcess {
    /// Starts a process that ends with the turn.
    pub(super) fn start(command: Command) -> io::Result<Self> {
        let (program, lines) = PipedLines::start(command)?;
        Ok(Self {
            program,
            lines: LinePipes::Piped(lines),
            is_owed: false,
        })
    }

    /// Starts a process that stays; its pipes and state are put into `directory`, which is made.
    #[cfg(unix)]
    pub(super) fn start_lasting(command: Command, directory: &Path) -> io::Result<Self> {
        let (program, lines) = NamedPipes::start(command, directory)?;
        Ok(Self {
            program,
            lines: LinePipes::Named(lines),
            is_owed: false,
        })
    }

    #[cfg(not(unix))]
    pub(super) fn start_lasting(_: Command, _: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Finds the processes that earlier turns left, by tool and handle.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "nothing is left"))]
    pub(super) fn find_all(handles: &Path) -> Vec<((String, String), Adopted)> {
        let all = named_pipes::find_all(handles).into_iter();
        all.map(|(key, left)| (key, left.map(Self::adopt)))
            .collect()
    }

    fn adopt(left: named_pipes::Left) -> (Self, Option<Pending>) {
        let process = Self {
            program: left.program,
            lines: LinePipes::Named(left.pipes),
            is_owed: left.is_owed,
        };
        (process, left.pending)
    }

    /// Returns whether a line was sent that the process has not answered.
    pub(super) fn is_owed(&self) -> bool {
        self.is_owed
    }

    /// Writes down what a later turn has to know, if there is one for it.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "no process stays"))]
    pub(super) fn save(&self, pending: Option<&Pending>) {
        match &self.lines {
            LinePipes::Piped(_) => {}
            #[cfg(unix)]
            LinePipes::Named(pipes) => pipes.save(self.program.identity(), self.is_owed, pending),
        }
    }

    /// Sends a line without waiting until the process reads it.
    pub(super) fn send(&mut self, line: Vec<u8>) {
        match &self.lines {
            LinePipes::Piped(pipes) => pipes.send(line),
            #[cfg(unix)]
            LinePipes::Named(pipes) => pipes.send(line),
        }
        self.is_owed = true;
    }

    /// Waits for a line, for at most `timeout`.
    pub(super) fn receive(&mut self, timeout: Duration, is_moot: &dyn Fn() -> bool) -> LineReply {
        let started = Instant::now();
        let mut ended: Option<Instant> = None;
        loop {
            let reply = match &mut self.lines {
                LinePipes::Piped(pipes) => pipes.await_line(),
                #[cfg(unix)]
                LinePipes::Named(pipes) => pipes.await_line(),
            };
            if let Some(reply) = reply {
                return self.take(reply);
            }
            if ended.is_none() && self.program.has_ended() {
                ended = Some(Instant::now());
            }
            // Another process may hold its output open for as long as it likes.
            if ended.is_some_and(|ended| ended.elapsed() >= grace::LAST_BYTES) {
                return LineReply::Gone;
            }
            if is_moot() {
                return LineReply::Moot;
            }
            if started.elapsed() >= timeout {
                return LineReply::Silence;
            }
        }
    }

    /// Takes a line that is there already: it came unasked, or late.
    pub(super) fn receive_ready(&mut self) -> Option<LineReply> {
        let reply = match &mut self.lines {
            LinePipes::Piped(pipes) => pipes.receive_ready(),
            #[cfg(unix)]
            LinePipes::Named(pipes) => pipes.receive_ready(),
        };
        reply.map(|reply| self.take(reply))
    }

    fn take(&mut self, reply: LineReply) -> LineReply {
        if matches!(reply, LineReply::Line(_) | LineReply::TooLong) {
            self.is_owed = false;
        }
        reply
    }

    /// Returns the end of what came on stderr.
    pub(super) fn errors(&mut self) -> String {
        match &self.lines {
            LinePipes::Piped(pipes) => pipes.errors(self.program.has_ended()),
            #[cfg(unix)]
            LinePipes::Named(pipes) => pipes.errors(),
        }
    }

    /// Ends the process, and returns its status if this turn started it.
    pub(super) fn end(&mut self) -> Option<ExitStatus> {
        self.begin_end();
        let status = self.program.end();
        #[cfg(unix)]
        if let LinePipes::Named(pipes) = &mut self.lines {
            pipes.forget();
        }
        status
    }

    /// Ends the processes that don't outlive the turn, in the time that one takes.
    pub(super) fn end_with_turn(processes: impl IntoIterator<Item = Self>) {
        let mut processes: Vec<_> = processes
            .into_iter()
            .filter(|process| matches!(process.lines, LinePipes::Piped(_)))
            .collect();
        processes.iter_mut().for_each(Self::begin_end);
        Supervisor::end_all(processes.iter_mut().map(|process| &mut process.program));
    }

    fn begin_end(&mut self) {
        self.program.begin_end();
        match &mut self.lines {
            LinePipes::Piped(pipes) => pipes.close_input(),
            #[cfg(unix)]
            LinePipes::Named(_) => {}
        }
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        if matches!(self.lines, LinePipes::Piped(_)) {
            self.end();
        }
    }
}
