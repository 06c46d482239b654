//! What ends a call of a reader before it is through: the person, or the time that it has.

use std::{
    cell::Cell,
    io::{self, Read},
    time::Instant,
};

use crate::{Tool, line::Line};

/// How long a call may go on.
pub(super) struct Limit<'a> {
    tool: &'a Tool,
    line: &'a Line,
    started: Instant,
    /// Whether it was stopped as its time was over.
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

    /// Returns whether to stop here; who asks stops.
    pub(super) fn is_over(&self) -> bool {
        if self.started.elapsed() >= self.tool.timeout {
            self.is_stopped.set(true);
        }
        self.is_stopped.get() || self.line.is_cancelled()
    }

    /// Says why what was found is not all; the error is that nobody wants it any more.
    pub(super) fn told(&self) -> Result<Option<String>, String> {
        if self.line.is_cancelled() {
            return Err("The call was interrupted.".to_owned());
        }
        Ok(self.is_stopped.get().then(|| {
            let (name, seconds) = (&self.tool.name, self.tool.timeout.as_secs_f64());
            format!(
                "Not finished: the call took more than {seconds} s. Ask for less; the person can allow more with `conversation.tools.{name}.timeout_secs`."
            )
        }))
    }
}

/// What can be read until the call is over.
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
    /// Lets the time be over.
    pub(super) fn run_out(&self) {
        self.is_stopped.set(true);
    }
}
