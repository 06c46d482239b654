//! `read_more`: reads on where a result was cut.

use jp_resource::Checksum;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value, json};

use super::kind::Builtin;
use crate::{Permission, Preview, Source, Tool, Toolbox, line::Line, plan::Plan};

const SCHEME: &str = "jp://blob/";
/// What the line at the end may take: the whole stays within what is shown of a result.
const ENDING_BYTES: usize = 128;

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The `jp://blob/…` that the cut result names."},
            "offset": {"type": "integer", "minimum": 0, "description": "The byte to read on from."},
        },
        "required": ["uri"],
        "additionalProperties": false,
    });
    let Value::Object(parameters) = parameters else {
        unreachable!("an object was written")
    };
    Tool {
        description:
            "Reads on where the result of a tool was cut. The result names the uri and the offset."
                .to_owned(),
        permission: Permission::Unattended,
        ..Tool::new("read_more", parameters, Source::Builtin(Builtin::ReadMore))
    }
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    _: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let uri = arguments
        .get("uri")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let offset = arguments.get("offset").and_then(Value::as_u64).unwrap_or(0);
    let checksum: Checksum = uri
        .strip_prefix(SCHEME)
        .and_then(|checksum| checksum.parse().ok())
        .ok_or_else(|| {
            format!("{uri:?} is no `{SCHEME}…` URI, as a result that was cut names one.")
        })?;
    let preview = Preview {
        title: format!("read {uri} from byte {offset}"),
        detail: None,
    };
    let act = move |_: &Map<String, Value>, line: &Line| match read(checksum, offset, tool, line) {
        Ok(text) => ToolResponse::new([ContentBlock::text(text)]),
        Err(reason) => ToolResponse::from_error(reason),
    };
    Ok(Plan {
        preview,
        is_sensitive: false,
        act: Box::new(act),
    })
}

fn read(checksum: Checksum, offset: u64, tool: &Tool, line: &Line) -> Result<String, String> {
    let uri = format!("{SCHEME}{checksum}");
    let bytes = line
        .blob(checksum)
        .map_err(|error| format!("{uri} could not be read: {error}."))?;
    let bytes = bytes.ok_or_else(|| {
        format!("No result of this conversation names {uri}. Only what a result was cut from can be read on.")
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("{uri} is no text: it has {} bytes.", error.as_bytes().len()))?;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    Ok(page(
        &text,
        offset,
        tool.max_output_bytes.saturating_sub(ENDING_BYTES),
    ))
}

/// Returns about `bytes` of a text from `offset` on, and where to go on from.
///
/// An offset inside a character is that of the character; at least one is returned.
fn page(text: &str, offset: usize, bytes: usize) -> String {
    let size = text.len();
    if offset >= size {
        return format!("[There is nothing from byte {offset} on: the text has {size} bytes.]");
    }
    let boundary_before = |at: usize| {
        (0..=at)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0)
    };
    let start = boundary_before(offset);
    let first = text[start..].chars().next().map_or(0, char::len_utf8);
    let end = boundary_before(start.saturating_add(bytes).min(size)).max(start + first);
    let page = &text[start..end];
    let newline = if page.ends_with('\n') { "" } else { "\n" };
    let ending = match end == size {
        true => format!("This is the end: the text has {size} bytes."),
        false => format!("Bytes {start} to {end} of {size}; offset {end} reads on."),
    };
    format!("{page}{newline}[{ending}]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_say_where_to_go_on_or_that_they_end() {
        assert_eq!(
            page("one\ntwo\n", 0, 4),
            "one\n[Bytes 0 to 4 of 8; offset 4 reads on.]"
        );
        assert_eq!(
            page("one\ntwo", 4, 100),
            "two\n[This is the end: the text has 7 bytes.]"
        );
    }

    #[test]
    fn offset_beyond_the_end_is_said() {
        for offset in [3, 4, usize::MAX] {
            assert_eq!(
                page("abc", offset, 100),
                format!("[There is nothing from byte {offset} on: the text has 3 bytes.]")
            );
        }
        assert_eq!(
            page("", 0, 100),
            "[There is nothing from byte 0 on: the text has 0 bytes.]"
        );
    }

    #[test]
    fn offset_inside_a_character_is_that_of_the_character() {
        assert_eq!(
            page("aé€b", 2, 2),
            "é\n[Bytes 1 to 3 of 7; offset 3 reads on.]"
        );
        assert_eq!(
            page("aé€b", 3, 0),
            "€\n[Bytes 3 to 6 of 7; offset 6 reads on.]"
        );
    }

    proptest! {
        #[test]
        fn pages_in_a_row_are_the_text(text in "[a-z\né€]{1,200}", bytes in 0usize..50) {
            let (mut offset, mut read) = (0, String::new());
            while offset < text.len() {
                let page = page(&text, offset, bytes);
                let (body, ending) = page.rsplit_once('[').unwrap();
                let next = match ending.split_once("; offset ") {
                    Some((_, next)) => next.split(' ').next().unwrap().parse().unwrap(),
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
