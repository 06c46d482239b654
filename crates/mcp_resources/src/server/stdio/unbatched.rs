//! Lines with one message each, of lines that may be batches.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

use crate::server::batch;

/// How long a line may be that is looked into; a longer one is passed on as it is.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// Input whose batches are split in their messages if the client's revision has them; all else is passed on as it is, but
/// notifications and responses before the first request, which are left out.
pub(super) struct Unbatched<R> {
    input: BufReader<R>,
    place: Place,
    /// Whether there was a request yet.
    is_started: bool,
    /// Whether the client may send batches, once it has initialized.
    has_batches: Option<bool>,
    /// A line that is looked into.
    line: Vec<u8>,
    /// What is ready to be read, and how much of it was read.
    ready: Vec<u8>,
    read: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before a line, or in the white space that it starts with.
    Start,
    /// In a line that is passed on.
    Passed,
    /// In a line that is looked into when it is complete.
    Held,
}

impl Place {
    /// Where a line is that starts with this byte.
    fn of(byte: u8, has_batches: Option<bool>) -> Self {
        match (byte, has_batches) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => Self::Start,
            (b'[', _) | (_, None) => Self::Held,
            (_, Some(_)) => Self::Passed,
        }
    }
}

impl<R: AsyncRead> Unbatched<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            place: Place::Start,
            is_started: false,
            has_batches: None,
            line: Vec::new(),
            ready: Vec::new(),
            read: 0,
        }
    }

    /// Makes ready what the line says.
    fn look_into_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.is_started = self.is_started || !batch::asks_nothing(&line);
        if !self.is_started {
            // rmcp would end for it, and there is nothing yet that it could tell of.
            return;
        }
        self.has_batches = self.has_batches.or_else(|| batch::initializes(&line));
        let messages = batch::messages(&line).filter(|_| self.has_batches == Some(true));
        self.ready = match messages {
            Some(messages) => {
                messages.iter().map(|message| format!("{message}\n")).collect::<String>().into_bytes()
            }
            None => line,
        };
        self.read = 0;
    }

    /// Gives what is ready; says whether there was anything.
    fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let rest = &self.ready[self.read..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.read += count;
        count > 0
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Unbatched<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while buffer.remaining() > 0 && !this.give(buffer) {
            let bytes = ready!(Pin::new(&mut this.input).poll_fill_buf(context))?;
            let Some(first) = bytes.first() else { break };
            if this.place == Place::Start {
                this.place = Place::of(*first, this.has_batches);
            }
            let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or(bytes);
            let count = match this.place {
                Place::Start => 1,
                Place::Passed => line.len().min(buffer.remaining()),
                Place::Held => line.len(),
            };
            let part = &line[..count];
            let is_held = this.place == Place::Held;
            let is_complete = part.ends_with(b"\n");
            match is_held {
                true => this.line.extend_from_slice(part),
                false => buffer.put_slice(part),
            }
            Pin::new(&mut this.input).consume(count);
            if is_complete {
                this.place = Place::Start;
            }
            match is_held {
                true if is_complete => this.look_into_line(),
                true if this.line.len() > MAX_LINE => {
                    this.place = Place::Passed;
                    this.ready = std::mem::take(&mut this.line);
                    this.read = 0;
                }
                true => (),
                false => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
