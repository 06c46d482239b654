//! What a tool returned, as the inside of a `functionResponse`.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use jp_conversation::{ToolCallRequest, ToolCallResponse, view};
use jp_resource::{Encoding, Payload, ResourceContent};
use jp_tool::{Media, StoredBlock};

use super::{Encoder, IMAGES, takes, write_inline_data};
use crate::{
    Error,
    json::{JsonText, write_string},
    parts::{PDF, Separator, result_of},
    shown::{self, Binary, Shown},
};

/// The binary blocks of a result, `parts` of a `functionResponse`.
struct Parts<'w> {
    out: &'w mut dyn Write,
    separator: Separator,
    count: usize,
}

/// Writes `response` with one field; the API knows `output` and `error`.
pub(super) fn write_output(
    field: &str,
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    write!(out, r#","response":{{"{field}":"#)?;
    write_string(out, fill)?;
    Ok(out.write_all(b"}")?)
}

impl Encoder<'_> {
    /// Writes `response` with the text of the blocks, and before it `parts` with those that are bytes.
    ///
    /// Text that belongs after bytes has to wait for them, as payloads are loaded once and in order.
    pub(super) fn write_blocks(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let field = if response.is_error { "error" } else { "output" };
        let may_have_parts =
            self.request.capabilities.binary_results && response.content.iter().any(is_binary);
        if !may_have_parts {
            return write_output(field, out, |out| {
                self.write_text(turn, call, response, out, None)
            });
        }
        let mut output = Vec::new();
        let mut parts = Parts {
            out: &mut *out,
            separator: Separator::default(),
            count: 0,
        };
        write_output(field, &mut output, |text| {
            self.write_text(turn, call, response, text, Some(&mut parts))
        })?;
        parts.end()?;
        Ok(out.write_all(&output)?)
    }

    /// Writes the text of the blocks, each on a line of its own, and the bytes of those that have any.
    fn write_text(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        out: &mut JsonText<'_>,
        mut parts: Option<&mut Parts<'_>>,
    ) -> Result<(), Error> {
        let mut newline = "";
        for block in &response.content {
            let text = self.block_text(turn, call, block, parts.as_deref_mut())?;
            out.push(newline)?;
            out.push(&text)?;
            newline = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
        }
        Ok(())
    }

    fn block_text<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        block: &'a StoredBlock,
        parts: Option<&mut Parts<'_>>,
    ) -> Result<Cow<'a, str>, Error> {
        match block {
            StoredBlock::Text { text, .. } => {
                shown::load_result_text(call, block, text, self.contents)
            }
            StoredBlock::Resource { resource, .. } => {
                match shown::load_result_resource(block, resource, self.contents)? {
                    Shown::Text(text) => Ok(view::resource_block(resource, &text).into()),
                    Shown::Binary(bytes) => {
                        self.show_bytes(turn, Binary::of(resource, bytes), parts)
                    }
                }
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                let bytes = self.load_media(media, call)?;
                self.show_bytes(turn, Binary::of_media(call, &media.mime_type, bytes), parts)
            }
            StoredBlock::Question { question } => Ok(question.text.as_str().into()),
            StoredBlock::Unknown(block) => Ok(block.note().into()),
        }
    }

    /// Writes bytes as a part where the model takes them there; returns the line that stands for them.
    fn show_bytes(
        &mut self,
        turn: usize,
        binary: Binary<'_>,
        parts: Option<&mut Parts<'_>>,
    ) -> Result<Cow<'static, str>, Error> {
        let Binary {
            subject,
            label,
            mime,
            bytes,
        } = binary;
        let is_kind_for_results = IMAGES.contains(&&*mime) || mime == PDF;
        if let Some(parts) =
            parts.filter(|_| is_kind_for_results && takes(self.request.capabilities, &mime))
        {
            let number = parts.push(&mime, &bytes)?;
            return Ok(format!("[{label} is part {number} of this result: {mime}]").into());
        }
        let reason = match self.request.capabilities.binary_results {
            true => format!("this model does not take {mime} in results of tools"),
            false => format!("results of tools are text, this is {mime}"),
        };
        let line = format!("[{label} is not shown: {reason}; {} bytes]", bytes.len());
        self.note(turn, subject, reason, bytes.len());
        Ok(line.into())
    }

    fn load_media<'a>(
        &mut self,
        media: &'a Media<Payload<Vec<u8>>>,
        call: &ToolCallRequest,
    ) -> Result<Cow<'a, [u8]>, Error> {
        match &media.data {
            Payload::Inline(bytes) => Ok(bytes.into()),
            Payload::Stored(blob) => {
                Ok(shown::load_bytes(blob, &result_of(call), self.contents)?.into())
            }
        }
    }
}

impl Parts<'_> {
    /// Writes a part and returns its number, from 1.
    fn push(&mut self, mime: &str, bytes: &[u8]) -> io::Result<usize> {
        if self.count == 0 {
            self.out.write_all(br#","parts":["#)?;
        }
        self.separator.write(self.out)?;
        write_inline_data(mime, bytes, self.out)?;
        self.count += 1;
        Ok(self.count)
    }

    fn end(self) -> io::Result<()> {
        if self.count == 0 {
            Ok(())
        } else {
            self.out.write_all(b"]")
        }
    }
}

/// Returns whether a block is bytes, told without loading it.
fn is_binary(block: &StoredBlock) -> bool {
    match block {
        StoredBlock::Image(_) | StoredBlock::Audio(_) => true,
        StoredBlock::Resource { resource, .. } if resource.formatted.is_none() => {
            match &resource.content {
                Payload::Inline(content) => matches!(content, ResourceContent::Blob(_)),
                Payload::Stored(blob) => blob.encoding == Encoding::Binary,
            }
        }
        StoredBlock::Resource { .. }
        | StoredBlock::Text { .. }
        | StoredBlock::Question { .. }
        | StoredBlock::Unknown(_) => false,
    }
}
