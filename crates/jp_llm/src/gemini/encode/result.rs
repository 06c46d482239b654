//! The result of a tool, as the inside of a `functionResponse`.

use std::io;

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_resource::{Encoding, Payload, ResourceContent};
use jp_tool::StoredBlock;

use super::{GeminiEncoder, IMAGES, takes, write_inline_data};
use crate::{
    Error,
    json::{Fragment, JsonText, JsonWriter},
    parts::{LineBreak, PDF},
    shown::{self, Binary, ShownBlock},
};

/// The binary blocks of a result, `parts` of a `functionResponse`; none at all if nothing is written.
struct ResultParts<'j, 'w> {
    json: &'j mut JsonWriter<'w>,
    count: usize,
}

/// Writes `response` with one field; the API knows `output` and `error`.
pub(super) fn write_output(
    field: &'static str,
    json: &mut JsonWriter<'_>,
    fill: impl FnOnce(&mut JsonText<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    json.key("response")?;
    json.begin_object()?;
    json.key(field)?;
    json.string(fill)?;
    Ok(json.end()?)
}

impl GeminiEncoder<'_> {
    /// Writes `response` with the text of the blocks, and before it `parts` with those that are bytes.
    ///
    /// Text that belongs after bytes has to wait for them, as payloads are loaded once and in order.
    pub(super) fn write_blocks(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let field = if response.is_error { "error" } else { "output" };
        let may_have_parts =
            self.request.capabilities.binary_results && response.content.iter().any(is_binary);
        if !may_have_parts {
            return write_output(field, json, |out| {
                self.write_text(turn, call, response, out, None)
            });
        }
        let mut output = Fragment::default();
        let mut parts = ResultParts { json, count: 0 };
        write_output(field, &mut output.writer(), |text| {
            self.write_text(turn, call, response, text, Some(&mut parts))
        })?;
        parts.end()?;
        Ok(json.append(output)?)
    }

    /// Writes the text of the blocks, each on a line of its own, and the bytes of those that have any.
    fn write_text(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        out: &mut JsonText<'_>,
        mut parts: Option<&mut ResultParts<'_, '_>>,
    ) -> Result<(), Error> {
        let mut line_break = LineBreak::default();
        for block in &response.content {
            let text = match shown::load_block(call, block, self.contents)? {
                ShownBlock::Text(text) => text,
                ShownBlock::Binary(binary) => {
                    self.show_bytes(turn, binary, parts.as_deref_mut())?.into()
                }
            };
            line_break.push(&text, out)?;
        }
        Ok(())
    }

    /// Writes bytes as a part if the model takes them there; returns the line that stands for them.
    fn show_bytes(
        &mut self,
        turn: usize,
        binary: Binary<'_>,
        parts: Option<&mut ResultParts<'_, '_>>,
    ) -> Result<String, Error> {
        let Binary { label, mime, .. } = &binary;
        let is_kind_for_results = IMAGES.contains(&&**mime) || mime == PDF;
        if let Some(parts) =
            parts.filter(|_| is_kind_for_results && takes(self.request.capabilities, mime))
        {
            let number = parts.push(mime, &binary.bytes)?;
            return Ok(format!("[{label} is part {number} of this result: {mime}]"));
        }
        let reason = match self.request.capabilities.binary_results {
            true => format!("{} in tool results", binary.why_not_taken()),
            false => binary.why_not_in_results(),
        };
        Ok(binary.omit_from_result(turn, reason, &mut self.notes))
    }
}

impl ResultParts<'_, '_> {
    /// Writes a part and returns its number, from 1.
    fn push(&mut self, mime: &str, bytes: &[u8]) -> io::Result<usize> {
        if self.count == 0 {
            self.json.key("parts")?;
            self.json.begin_array()?;
        }
        write_inline_data(mime, bytes, self.json)?;
        self.count += 1;
        Ok(self.count)
    }

    fn end(self) -> io::Result<()> {
        if self.count == 0 {
            Ok(())
        } else {
            self.json.end()
        }
    }
}

/// Returns whether a block is bytes. Looks at its type only: nothing is loaded yet.
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
