//! Reads lines, each of a bounded length.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::task::yield_now;

use crate::server::budget::MAX_LINE;

/// The time for which the thread polls for input before it sleeps. Most programs send their next request
/// sooner after an answer than a thread wakes up. This makes successive reads twice as fast.
const AWAKE: Duration = Duration::from_micros(60);

/// The lines of a client.
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    /// The part of a line that has come.
    line: Vec<u8>,
    /// True if the line is longer than [`MAX_LINE`]. The rest of it is skipped.
    is_too_long: bool,
}

/// A line without its end.
pub(super) enum Line {
    Bytes(Vec<u8>),
    /// It had more than [`MAX_LINE`] bytes.
    TooLong,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
        }
    }

    /// Returns whether a part of the next line is here.
    pub(super) fn has_input(&self) -> bool {
        !self.input.buffer().is_empty()
    }

    /// Reads the next line, which may be the last and lack its end; `None` at the end of input. A caller
    /// that gives up and calls again loses nothing.
    pub(super) async fn read(&mut self) -> Option<Line> {
        self.stay_awake().await;
        loop {
            // An input that fails has ended.
            let bytes = self.input.fill_buf().await.unwrap_or_default();
            let is_end = bytes.is_empty();
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let (part, count) = match newline {
                Some(newline) => (&bytes[..newline], newline + 1),
                None => (bytes, bytes.len()),
            };
            if self.line.len() + part.len() > MAX_LINE {
                self.is_too_long = true;
                self.line.clear();
            } else if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            self.input.consume(count);
            if newline.is_some() {
                return Some(self.take());
            }
            if is_end {
                return (self.is_too_long || !self.line.is_empty()).then(|| self.take());
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.is_too_long) {
            true => Line::TooLong,
            false => Line::Bytes(line),
        }
    }

    /// Waits for input for up to [`AWAKE`]. Other tasks and threads may run meanwhile.
    async fn stay_awake(&mut self) {
        // The clock of tokio may stand still.
        let start = std::time::Instant::now();
        while start.elapsed() < AWAKE {
            tokio::select! {
                biased;
                _ = self.input.fill_buf() => return,
                () = yield_now() => std::thread::yield_now(),
            }
        }
    }
}
