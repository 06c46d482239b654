use std::io::{self, Write};

use crate::{
    Error,
    json::{JsonText, write_string},
};

/// Makes the provider keep what comes before, and this part.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// Writes a part that is text.
pub(super) fn write_text_part(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    open_text_part(out, fill)?;
    Ok(out.write_all(b"}")?)
}

fn open_text_part(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    out.write_all(br#"{"type":"text","text":"#)?;
    Ok(write_string(out, fill)?)
}

/// The content of a message as an array of parts, or an empty string where there are none.
///
/// A marked message has its mark on the last text: images and files carry none. What follows that text is
/// held until it is known that no other text comes.
pub(super) struct Parts<'w> {
    out: &'w mut dyn Write,
    is_marked: bool,
    state: State,
    /// Parts that follow the open text, each with a comma before.
    held: Vec<u8>,
}

enum State {
    /// Nothing is written, not even the bracket.
    Empty,
    /// The last part is a text that lacks its closing brace.
    InText,
    /// The last part is complete.
    Between,
}

impl<'w> Parts<'w> {
    pub(super) fn new(out: &'w mut dyn Write, is_marked: bool) -> Self {
        Self {
            out,
            is_marked,
            state: State::Empty,
            held: Vec::new(),
        }
    }

    /// Writes a part that is text.
    pub(super) fn text(
        &mut self,
        fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.close_text(b"")?;
        self.begin()?;
        open_text_part(self.out, fill)?;
        self.state = State::InText;
        Ok(())
    }

    /// Writes a part that is no text.
    pub(super) fn binary(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.is_marked && matches!(self.state, State::InText) {
            self.held.push(b',');
            return write(&mut self.held);
        }
        self.close_text(b"")?;
        self.begin()?;
        write(self.out)
    }

    /// Ends the array; must be called.
    pub(super) fn end(mut self) -> Result<(), Error> {
        self.close_text(if self.is_marked { MARK } else { b"" })?;
        let end: &[u8] = if matches!(self.state, State::Empty) {
            b"\"\""
        } else {
            b"]"
        };
        Ok(self.out.write_all(end)?)
    }

    fn begin(&mut self) -> io::Result<()> {
        let is_first = matches!(self.state, State::Empty);
        self.state = State::Between;
        self.out.write_all(if is_first { b"[" } else { b"," })
    }

    fn close_text(&mut self, mark: &[u8]) -> io::Result<()> {
        if !matches!(self.state, State::InText) {
            return Ok(());
        }
        self.state = State::Between;
        self.out.write_all(mark)?;
        self.out.write_all(b"}")?;
        self.out.write_all(&std::mem::take(&mut self.held))
    }
}
