//! Results of tools.

use std::borrow::Cow;

use jp_conversation::{ToolCallRequest, ToolCallResponse, view};
use jp_resource::{Encoding, Payload, Snapshot};
use jp_tool::{Media, StoredBlock};

use super::{
    InputPart, ResponsesEncoder, mime_type, write_file_part, write_image_part, write_text_part,
};
use crate::{
    Error,
    json::{JsonText, JsonWriter},
    parts::{ERROR_LINE, LineBreak, essence, result_of},
    shown::{self, Binary, Shown},
};

/// A block of a result as the model gets it.
enum Piece<'a> {
    Text(Cow<'a, str>),
    Media(Cow<'a, [u8]>, String),
    Resource(InputPart, Cow<'a, [u8]>, String, &'a Snapshot),
}

impl ResponsesEncoder<'_> {
    /// Writes a result: a string if it is all text, else an array of parts.
    pub(super) fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        json.begin_object()?;
        json.field("type", "function_call_output")?;
        json.field("call_id", &call.id)?;
        json.key("output")?;
        match response {
            None => json.value(view::text_of_missing_result())?,
            Some(response) if self.has_binary_parts(response) => {
                self.write_result_parts(turn, call, response, json)?;
            }
            Some(response) => {
                json.string(|out| self.write_result(turn, call, response, out))?;
            }
        }
        Ok(json.end()?)
    }

    /// Writes the blocks of a result that is all text, each on a line of its own.
    fn write_result(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        out: &mut JsonText<'_>,
    ) -> Result<(), Error> {
        if response.is_error {
            out.push(ERROR_LINE)?;
        }
        let mut line_break = LineBreak::default();
        for block in &response.content {
            if let Piece::Text(text) = self.load_piece(turn, call, block)? {
                line_break.push(&text, out)?;
            }
        }
        Ok(())
    }

    /// Writes the blocks of a result as parts.
    fn write_result_parts(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        json.begin_array()?;
        if response.is_error {
            write_text_part(false, json, |out| out.push(ERROR_LINE))?;
        }
        for block in &response.content {
            match self.load_piece(turn, call, block)? {
                Piece::Text(text) => write_line_part(&text, json)?,
                Piece::Media(bytes, mime) => write_image_part(&mime, &bytes, false, json)?,
                Piece::Resource(part, bytes, mime, resource) => {
                    write_line_part(&format!("{}:", view::resource_label(resource)), json)?;
                    match part {
                        InputPart::Image => write_image_part(&mime, &bytes, false, json)?,
                        InputPart::File => write_file_part(resource, &mime, &bytes, false, json)?,
                    }
                }
            }
        }
        Ok(json.end()?)
    }

    fn load_piece<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        block: &'a StoredBlock,
    ) -> Result<Piece<'a>, Error> {
        match block {
            StoredBlock::Text { text, .. } => {
                shown::load_result_text(call, block, text, self.contents).map(Piece::Text)
            }
            StoredBlock::Question { question } => Ok(Piece::Text(question.text.as_str().into())),
            StoredBlock::Unknown(block) => Ok(Piece::Text(block.note().into())),
            StoredBlock::Resource { resource, .. } => {
                self.load_resource_piece(turn, block, resource)
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                self.load_media_piece(turn, call, media)
            }
        }
    }

    fn load_resource_piece<'a>(
        &mut self,
        turn: usize,
        block: &StoredBlock,
        resource: &'a Snapshot,
    ) -> Result<Piece<'a>, Error> {
        let bytes = match shown::load_result_resource(block, resource, self.contents)? {
            Shown::Text(text) => {
                return Ok(Piece::Text(view::resource_block(resource, &text).into()));
            }
            Shown::Binary(bytes) => bytes,
        };
        let mime = mime_type(resource);
        Ok(match self.result_part(&mime) {
            Some(part) => Piece::Resource(part, bytes, mime, resource),
            None => self.leave_out(turn, &Binary::from_resource(resource, bytes)),
        })
    }

    fn load_media_piece<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        media: &'a Media<Payload<Vec<u8>>>,
    ) -> Result<Piece<'a>, Error> {
        let mime = essence(&media.mime_type);
        let bytes = shown::load_media(media, &result_of(call), self.contents)?;
        Ok(match self.media_part(&mime) {
            Some(_) => Piece::Media(bytes, mime),
            None => self.leave_out(turn, &Binary::from_media(call, &mime, bytes)),
        })
    }

    /// Notes a binary part of a tool's result, and returns the line that stands for it.
    fn leave_out(&mut self, turn: usize, binary: &Binary<'_>) -> Piece<'static> {
        let reason = match self.capabilities.binary_results {
            true => binary.why_not_taken(),
            false => binary.why_not_in_results(),
        };
        Piece::Text(
            binary
                .omit_from_result(turn, reason, &mut self.notes)
                .into(),
        )
    }

    fn result_part(&self, mime: &str) -> Option<InputPart> {
        self.part_for(mime)
            .filter(|_| self.capabilities.binary_results)
    }

    /// Like [`Self::result_part`], for content without a name: an image can be sent, a file can't.
    fn media_part(&self, mime: &str) -> Option<InputPart> {
        self.result_part(mime)
            .filter(|part| matches!(part, InputPart::Image))
    }

    /// Returns whether any block is sent as bytes. Looks at their types only: nothing is loaded yet.
    fn has_binary_parts(&self, response: &ToolCallResponse) -> bool {
        response.content.iter().any(|block| match block {
            StoredBlock::Resource { resource, .. } if is_binary(resource) => {
                self.result_part(&mime_type(resource)).is_some()
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                self.media_part(&essence(&media.mime_type)).is_some()
            }
            _ => false,
        })
    }
}

fn is_binary(resource: &Snapshot) -> bool {
    let encoding = match &resource.content {
        Payload::Inline(content) => content.encoding(),
        Payload::Stored(blob) => blob.encoding,
    };
    resource.formatted.is_none() && encoding == Encoding::Binary
}

/// Writes text that ends with a newline: what follows in a part of its own would stand on the same line.
fn write_line_part(text: &str, json: &mut JsonWriter<'_>) -> Result<(), Error> {
    write_text_part(false, json, |out| {
        out.push(text)?;
        out.push(if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        })
    })
}
