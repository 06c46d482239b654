//! The content of a message as an array of parts.

use std::io;

use crate::{
    Error,
    json::{Fragment, JsonText, JsonWriter},
    parts::EPHEMERAL,
};

/// Writes a part that is text.
pub(super) fn write_text_part(
    json: &mut JsonWriter<'_>,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    begin_text_part(json, fill)?;
    Ok(json.end()?)
}

/// Writes a part that is text, except for its end.
fn begin_text_part(
    json: &mut JsonWriter<'_>,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    json.begin_object()?;
    json.field("type", "text")?;
    json.key("text")?;
    Ok(json.string(fill)?)
}

/// The content of a message as an array of parts, or an empty string if there are none.
///
/// A marked message has its mark on the last text, because images and files carry none. The parts that follow a text are
/// held until it is known that no other text comes.
pub(super) struct ContentParts<'j, 'w> {
    json: &'j mut JsonWriter<'w>,
    is_marked: bool,
    state: State,
    /// Parts that follow the open text.
    held: Fragment,
}

enum State {
    /// Nothing is written, not even the bracket.
    Empty,
    /// The last part is a text that has not ended.
    InText,
    /// The last part is complete.
    Between,
}

impl<'j, 'w> ContentParts<'j, 'w> {
    pub(super) fn new(json: &'j mut JsonWriter<'w>, is_marked: bool) -> Self {
        Self {
            json,
            is_marked,
            state: State::Empty,
            held: Fragment::default(),
        }
    }

    /// Writes a part that is text.
    pub(super) fn text(
        &mut self,
        fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.begin_part()?;
        begin_text_part(self.json, fill)?;
        self.state = State::InText;
        Ok(())
    }

    /// Writes a part that is not text.
    pub(super) fn binary(
        &mut self,
        write: impl FnOnce(&mut JsonWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.is_marked && matches!(self.state, State::InText) {
            return write(&mut self.held.writer());
        }
        self.begin_part()?;
        write(self.json)
    }

    /// Ends the array; must be called.
    pub(super) fn end(mut self) -> Result<(), Error> {
        if self.is_marked && matches!(self.state, State::InText) {
            self.json.field("cache_control", &EPHEMERAL)?;
        }
        self.end_text()?;
        match self.state {
            State::Empty => self.json.value("")?,
            State::InText | State::Between => self.json.end()?,
        }
        Ok(())
    }

    /// Ends the text before, and begins the array if this is its first part.
    fn begin_part(&mut self) -> io::Result<()> {
        self.end_text()?;
        if matches!(self.state, State::Empty) {
            self.json.begin_array()?;
        }
        self.state = State::Between;
        Ok(())
    }

    fn end_text(&mut self) -> io::Result<()> {
        if !matches!(self.state, State::InText) {
            return Ok(());
        }
        self.state = State::Between;
        self.json.end()?;
        self.json.append(std::mem::take(&mut self.held))
    }
}
