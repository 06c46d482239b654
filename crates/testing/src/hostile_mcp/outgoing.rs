//! The messages of the server, some of which are too large to keep in memory.

use std::{
    io::{self, Write},
    process::exit,
    sync::mpsc,
};

use serde_json::Value;

/// The output for answers: stdout, or the HTTP response of the current request.
pub(crate) type Outbox = mpsc::Sender<Outgoing>;

/// Stands for the filling of an [`Outgoing::Filled`] in its message.
pub(crate) const FILLING: &str = "@filling@";
const CHUNK: usize = 1 << 16;

/// One thing to send.
pub(crate) enum Outgoing {
    Message(Value),
    /// A message in which this many `A` take the place of [`FILLING`].
    Filled(Value, usize),
    /// Bytes again and again, up to so many, and no newline behind them.
    Repeated(&'static [u8], usize),
    /// Half a message, then the end of the process.
    Death,
}

impl Outgoing {
    /// True if it is the answer to a request, and so the last message of a response.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Message(message) => message.get("method").is_none(),
            _ => true,
        }
    }

    /// The number of bytes that [`Outgoing::write`] writes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.to_string().len(),
            Self::Filled(message, count) => message.to_string().len() - FILLING.len() + count,
            Self::Repeated(_, count) => *count,
            Self::Death => 1000,
        }
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Message(message) => write!(to, "{message}"),
            Self::Filled(message, count) => {
                let message = message.to_string();
                let (before, after) = message.split_once(FILLING).unwrap_or((&message, ""));
                to.write_all(before.as_bytes())?;
                repeat(to, b"A", *count)?;
                to.write_all(after.as_bytes())
            }
            Self::Repeated(bytes, count) => repeat(to, bytes, *count),
            Self::Death => die(to),
        }
    }
}

fn repeat(to: &mut impl Write, bytes: &[u8], count: usize) -> io::Result<()> {
    let chunk = bytes.repeat(CHUNK / bytes.len());
    let mut left = count;
    while left > 0 {
        let size = left.min(chunk.len());
        to.write_all(&chunk[..size])?;
        left -= size;
    }
    Ok(())
}

fn die(to: &mut impl Write) -> io::Result<()> {
    to.write_all(br#"{"jsonrpc":"2.0","id":"#)?;
    to.flush()?;
    eprintln!("\u{1b}[31mfatal:\u{1b}[0m the disk is full");
    eprintln!("the server gives up");
    exit(3);
}
