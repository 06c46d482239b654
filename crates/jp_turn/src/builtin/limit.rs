//! The limit of a reader's call: the user's interruption or its time limit.

use std::{
    cell::Cell,
    io::{self, Read},
    time::Instant,
};

use crate::{
    Tool,
    line::{INTERRUPTED, Line},
};

/// The limit of a call.
pub(super) struct Limit<'a> {
    tool: &'a Tool,
    line: &'a Line,
    started: Instant,
    /// True after the time was over.
    is_stopped: Cell<bool>,
}

impl<'a> Limit<'a> {
    /// Starts the time of a call.
    pub(super) fn new(tool: &'a Tool, line: &'a Line) -> Self {
        Self {
            tool,
            line,
            started: Instant::now(),
            is_stopped: Cell::new(false),
        }
    }

    /// Returns whether the call has to stop. The caller then stops.
    pub(super) fn is_over(&self) -> bool {
        if self.started.elapsed() >= self.tool.timeout {
            self.is_stopped.set(true);
        }
        self.is_stopped.get() || self.line.is_cancelled()
    }

    /// Returns the reason why the result is incomplete, if it is. Fails if the call was cancelled.
    pub(super) fn describe_stop(&self) -> Result<Option<String>, String> {
        if self.line.is_cancelled() {
            return Err(INTERRUPTED.to_owned());
        }
        Ok(self.is_stopped.get().then(|| {
            let (name, seconds) = (&self.tool.name, self.tool.timeout.as_secs_f64());
            format!(
                "Not finished: the call took more than {seconds} s. Ask for less. The user can raise the limit with `conversation.tools.{name}.timeout_secs`."
            )
        }))
    }
}

/// A reader that fails once the call has to stop.
pub(super) struct Limited<'a, R> {
    pub(super) source: R,
    pub(super) limit: &'a Limit<'a>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.limit.is_over() {
            true => Err(io::Error::other("the call is over")),
            false => self.source.read(buffer),
        }
    }
}

#[cfg(test)]
impl Limit<'_> {
    /// Pretends that the time is over.
    pub(super) fn run_out(&self) {
        self.is_stopped.set(true);
    }
}
