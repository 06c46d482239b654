//! `read_more`: continues a result that was shortened.

use jp_resource::Checksum;
use jp_tool::ContentBlock;
use serde_json::{Map, Value, json};

use super::{action::plan_action, declare::declare, kind::Builtin};
use crate::{Preview, Tool, line::Line, plan::Plan};

const SCHEME: &str = "jp://blob/";
/// The bytes reserved for the last line, so that the page with it is not shortened again.
const ENDING_BYTES: usize = 128;

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The `jp://blob/…` URI that the shortened result names."},
            "offset": {"type": "integer", "minimum": 0, "description": "The byte to continue from."},
        },
        "required": ["uri"],
        "additionalProperties": false,
    });
    let description =
        "Continues a tool result that was shortened. The result names the `uri` and the `offset`.";
    declare(Builtin::ReadMore, description, parameters)
}

pub(super) fn plan<'a>(tool: &'a Tool, arguments: &Map<String, Value>) -> Result<Plan<'a>, String> {
    let uri = arguments
        .get("uri")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let offset = arguments.get("offset").and_then(Value::as_u64).unwrap_or(0);
    let checksum: Checksum = uri
        .strip_prefix(SCHEME)
        .and_then(|checksum| checksum.parse().ok())
        .ok_or_else(|| {
            format!(
                "{uri:?} is not a `{SCHEME}…` URI. Use the URI that the shortened result names."
            )
        })?;
    let preview = Preview::from_title(format!("read {uri} from byte {offset}"));
    Ok(plan_action(preview, false, move |line| {
        read(checksum, offset, tool, line).map(|text| vec![ContentBlock::text(text)])
    }))
}

fn read(checksum: Checksum, offset: u64, tool: &Tool, line: &Line) -> Result<String, String> {
    let uri = format!("{SCHEME}{checksum}");
    let bytes = line
        .blob(checksum)
        .map_err(|error| format!("{uri} could not be read: {error}."))?;
    let bytes = bytes.ok_or_else(|| {
        format!("No result of this conversation names {uri}. `read_more` only continues results that were shortened.")
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        format!(
            "{uri} is not UTF-8 text. It has {} bytes.",
            error.as_bytes().len()
        )
    })?;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    Ok(write_page(
        &text,
        offset,
        tool.max_output_bytes.saturating_sub(ENDING_BYTES),
    ))
}

/// Returns the last position up to `at` at which a text can be split.
fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Returns about `bytes` of a text from `offset` on, and a line with the offset to continue at.
///
/// An offset inside a character counts as the character's own. The page has at least one character.
fn write_page(text: &str, offset: usize, bytes: usize) -> String {
    let size = text.len();
    if offset >= size {
        return format!("[Offset {offset} is past the end: the text has {size} bytes.]");
    }
    let start = boundary_before(text, offset);
    let first = text[start..].chars().next().map_or(0, char::len_utf8);
    let end = boundary_before(text, start.saturating_add(bytes).min(size)).max(start + first);
    let page = &text[start..end];
    let newline = if page.ends_with('\n') { "" } else { "\n" };
    let ending = match end == size {
        true => format!("This is the end: the text has {size} bytes."),
        false => format!("Bytes {start} to {end} of {size}; continue at offset {end}."),
    };
    format!("{page}{newline}[{ending}]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn page_ends_with_the_next_offset() {
        assert_eq!(
            write_page("one\ntwo\n", 0, 4),
            "one\n[Bytes 0 to 4 of 8; continue at offset 4.]"
        );
        assert_eq!(
            write_page("one\ntwo", 4, 100),
            "two\n[This is the end: the text has 7 bytes.]"
        );
    }

    #[test]
    fn offset_beyond_the_end_is_reported() {
        for offset in [3, 4, usize::MAX] {
            assert_eq!(
                write_page("abc", offset, 100),
                format!("[Offset {offset} is past the end: the text has 3 bytes.]")
            );
        }
        assert_eq!(
            write_page("", 0, 100),
            "[Offset 0 is past the end: the text has 0 bytes.]"
        );
    }

    #[test]
    fn offset_inside_a_character_is_that_of_the_character() {
        assert_eq!(
            write_page("aé€b", 2, 2),
            "é\n[Bytes 1 to 3 of 7; continue at offset 3.]"
        );
        assert_eq!(
            write_page("aé€b", 3, 0),
            "€\n[Bytes 3 to 6 of 7; continue at offset 6.]"
        );
    }

    proptest! {
        #[test]
        fn pages_in_a_row_are_the_text(text in "[a-z\né€]{1,200}", bytes in 0usize..50) {
            let (mut offset, mut read) = (0, String::new());
            while offset < text.len() {
                let page = write_page(&text, offset, bytes);
                let (body, ending) = page.rsplit_once('[').unwrap();
                let next = match ending.split_once("continue at offset ") {
                    Some((_, next)) => next.split('.').next().unwrap().parse().unwrap(),
                    None => text.len(),
                };
                prop_assert!(next > offset);
                read.push_str(&body[..next - offset]);
                offset = next;
            }
            prop_assert_eq!(read, text);
        }
    }
}
