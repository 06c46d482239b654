//! The lines of a process that ends with the turn: they go through pipes.

use std::{
    io::{self, BufRead as _, BufReader, Read},
    process::Command,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
};

use jp_process::{
    Supervisor,
    pipe::{InputQueue, StderrTail, detach},
};

use super::reply::{LINE_TICK, LineReply, MAX_ERRORS, MAX_LINE};

/// Pipes to and from a process.
#[derive(Debug)]
pub(super) struct PipedLines {
    /// `None` once the process is to see the end of its input.
    input: Option<InputQueue>,
    lines: Receiver<LineReply>,
    stderr: StderrTail,
}

impl PipedLines {
    /// Starts a process.
    pub(super) fn start(mut command: Command) -> io::Result<(Supervisor, Self)> {
        let (program, (stdin, stdout, stderr)) = Supervisor::start_piped(&mut command)?;
        // The process waits if it writes faster than lines are wanted, so memory is bounded.
        let (sender, lines) = sync_channel(1);
        let pipes = Self {
            input: Some(InputQueue::new(stdin)?),
            lines,
            stderr: StderrTail::new(stderr, MAX_ERRORS)?,
        };
        detach(move || read_lines(stdout, &sender))?;
        Ok((program, pipes))
    }

    pub(super) fn send(&self, line: Vec<u8>) {
        if let Some(input) = &self.input {
            input.send(line);
        }
    }

    /// Waits a moment for a line.
    pub(super) fn await_line(&self) -> Option<LineReply> {
        match self.lines.recv_timeout(LINE_TICK) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Disconnected) => Some(LineReply::Gone),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    pub(super) fn receive_ready(&self) -> Option<LineReply> {
        self.lines.try_recv().ok()
    }

    pub(super) fn errors(&self, has_ended: bool) -> String {
        match has_ended {
            true => self.stderr.final_text(),
            false => self.stderr.text(),
        }
    }

    pub(super) fn close_input(&mut self) {
        self.input = None;
    }
}

fn read_lines(stdout: impl Read, to: &SyncSender<LineReply>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        // One byte more than allowed shows that a line is too long.
        let mut limited = stdout.by_ref().take(MAX_LINE as u64 + 1);
        match limited.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(length) if length > MAX_LINE => {
                _ = to.send(LineReply::TooLong);
                return;
            }
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) if to.send(LineReply::Line(line)).is_err() => return,
            Ok(_) => {}
        }
    }
}
