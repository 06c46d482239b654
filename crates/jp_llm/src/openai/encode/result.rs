//! Results of tools.

use std::{borrow::Cow, io::Write};

use jp_conversation::{ToolCallRequest, ToolCallResponse, view};
use jp_resource::{Encoding, Payload, Snapshot};
use jp_tool::{Media, StoredBlock};

use super::{Encoder, Form, type_of, write_file_part, write_image_part, write_text_part};
use crate::{
    Error,
    json::{JsonText, write_string},
    openai::marks::END,
    parts::{ERROR_LINE, LineBreak, Separator, essence, result_of, write_json},
    shown::{self, Binary, Shown},
};

/// A block of a result as the model gets it.
enum Piece<'a> {
    Text(Cow<'a, str>),
    Media(Cow<'a, [u8]>, String),
    Resource(Form, Cow<'a, [u8]>, String, &'a Snapshot),
}

impl Encoder<'_> {
    /// Writes a result: a string where it is all text, else an array of parts.
    pub(super) fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        out.write_all(br#"{"type":"function_call_output","call_id":"#)?;
        write_json(&call.id, out)?;
        out.write_all(br#","output":"#)?;
        match response {
            None => write_json(&view::text_of_missing_result(), out)?,
            Some(response)
                if response
                    .content
                    .iter()
                    .any(|block| self.block_form(block).is_some()) =>
            {
                self.write_result_parts(turn, call, response, out)?;
            }
            Some(response) => {
                write_string(out, |out| self.write_result(turn, call, response, out))?
            }
        }
        Ok(out.write_all(b"}")?)
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
            if let Piece::Text(text) = self.piece(turn, call, block)? {
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
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut separator = Separator::default();
        out.write_all(b"[")?;
        if response.is_error {
            separator.write(out)?;
            write_text_part(END, out, |out| out.push(ERROR_LINE))?;
        }
        for block in &response.content {
            separator.write(out)?;
            match self.piece(turn, call, block)? {
                Piece::Text(text) => write_line_part(&text, out)?,
                Piece::Media(bytes, mime) => write_image_part(&mime, &bytes, END, out)?,
                Piece::Resource(form, bytes, mime, resource) => {
                    write_line_part(&format!("{}:", view::resource_label(resource)), out)?;
                    separator.write(out)?;
                    match form {
                        Form::Image => write_image_part(&mime, &bytes, END, out)?,
                        Form::File => write_file_part(resource, &mime, &bytes, END, out)?,
                    }
                }
            }
        }
        Ok(out.write_all(b"]")?)
    }

    fn piece<'a>(
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
            StoredBlock::Resource { resource, .. } => self.resource_piece(turn, block, resource),
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                self.media_piece(turn, call, media)
            }
        }
    }

    fn resource_piece<'a>(
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
        let mime = type_of(resource);
        Ok(match self.result_form(&mime) {
            Some(form) => Piece::Resource(form, bytes, mime, resource),
            None => self.leave_out(turn, &Binary::of(resource, bytes)),
        })
    }

    fn media_piece<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        media: &'a Media<Payload<Vec<u8>>>,
    ) -> Result<Piece<'a>, Error> {
        let mime = essence(&media.mime_type);
        let bytes: Cow<'_, [u8]> = match &media.data {
            Payload::Inline(bytes) => bytes.into(),
            Payload::Stored(blob) => {
                shown::load_bytes(blob, &result_of(call), self.contents)?.into()
            }
        };
        Ok(match self.media_form(&mime) {
            Some(_) => Piece::Media(bytes, mime),
            None => self.leave_out(turn, &Binary::of_media(call, &mime, bytes)),
        })
    }

    /// Notes a binary part of a tool's result, and returns the line that stands for it.
    fn leave_out(&mut self, turn: usize, binary: &Binary<'_>) -> Piece<'static> {
        let Binary {
            subject,
            label,
            mime,
            bytes,
        } = binary;
        let reason = match self.capabilities.binary_results {
            true => format!("this model does not take {mime}"),
            false => format!("results of tools are text, this is {mime}"),
        };
        let line = format!("[{label} is not shown: {reason}; {} bytes]", bytes.len());
        self.note(turn, subject.clone(), reason, bytes.len());
        Piece::Text(line.into())
    }

    fn result_form(&self, mime: &str) -> Option<Form> {
        self.form(mime).filter(|_| self.capabilities.binary_results)
    }

    /// Like [`Self::result_form`], for what has no name: a picture can be sent, a file can't.
    fn media_form(&self, mime: &str) -> Option<Form> {
        self.result_form(mime)
            .filter(|form| matches!(form, Form::Image))
    }

    /// Returns how a block is sent that is not text, before anything of it is loaded.
    fn block_form(&self, block: &StoredBlock) -> Option<Form> {
        match block {
            StoredBlock::Resource { resource, .. } if is_binary(resource) => {
                self.result_form(&type_of(resource))
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                self.media_form(&essence(&media.mime_type))
            }
            _ => None,
        }
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
fn write_line_part(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    write_text_part(END, out, |out| {
        out.push(text)?;
        out.push(if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        })
    })
}
