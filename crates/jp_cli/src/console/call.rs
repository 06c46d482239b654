//! Describes a call of a tool in one line.

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_resource::Payload;
use jp_session::size;
use jp_tool::StoredBlock;
use serde_json::{Map, Value};

/// Longest part of an argument or an error that is shown, in characters: about one row and a half.
const SHOWN: usize = 120;

/// Describes a call and its outcome in one line; `edited` are the arguments that ran, if the user changed them.
pub(super) fn describe_call(
    call: &ToolCallRequest,
    edited: Option<&Map<String, Value>>,
    response: &ToolCallResponse,
) -> String {
    let argument = choose_argument(edited.unwrap_or(&call.arguments))
        .map(|argument| format!(" {}", shorten(&argument)));
    format!(
        "Called {}{}: {}",
        shorten(&call.name),
        argument.unwrap_or_default(),
        describe_outcome(response)
    )
}

/// Returns the argument that identifies a call best: a well-known one, else the first that has a text.
fn choose_argument(arguments: &Map<String, Value>) -> Option<String> {
    const WELL_KNOWN: [&str; 4] = ["path", "command", "pattern", "uri"];
    let named = WELL_KNOWN
        .into_iter()
        .filter_map(|name| arguments.get(name));
    named.chain(arguments.values()).find_map(to_text)
}

/// Returns the text of a string, or of a list of strings such as a command line.
fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
            words
                .filter(|words| !words.is_empty())
                .map(|words| words.join(" "))
        }
        _ => None,
    }
}

/// Describes a response: by its size, or by the first line of its error.
fn describe_outcome(response: &ToolCallResponse) -> String {
    if !response.is_error {
        return size::bytes(response.content.iter().map(size_in_bytes).sum());
    }
    let texts = response.content.iter().filter_map(|block| match block {
        StoredBlock::Text {
            text: Payload::Inline(text),
            ..
        } => Some(text),
        _ => None,
    });
    let first = texts
        .flat_map(|text| text.lines())
        .map(clean_error_line)
        .find(|line| !line.is_empty());
    first.map_or_else(
        || "error".to_owned(),
        |line| format!("error: {}", shorten(&line)),
    )
}

/// Returns the beginning of an error's line, trimmed, with one control character for each run of them.
///
/// Otherwise a long run of control characters could push the cause of the error out of the shown part.
fn clean_error_line(line: &str) -> String {
    let trimmed =
        line.trim_matches(|character: char| character.is_whitespace() || character.is_control());
    let mut was_control = false;
    let is_kept = |character: &char| {
        let is_repeated = was_control && character.is_control();
        was_control = character.is_control();
        !is_repeated
    };
    // The extra character makes `shorten` mark the line as shortened.
    trimmed.chars().filter(is_kept).take(SHOWN + 1).collect()
}

fn size_in_bytes(block: &StoredBlock) -> u64 {
    match block {
        StoredBlock::Text {
            text: Payload::Inline(text),
            ..
        } => text.len() as u64,
        StoredBlock::Text {
            text: Payload::Stored(blob),
            ..
        } => blob.size,
        StoredBlock::Resource { resource, .. } => match &resource.content {
            Payload::Inline(content) => content.as_bytes().len() as u64,
            Payload::Stored(blob) => blob.size,
        },
        StoredBlock::Image(media) | StoredBlock::Audio(media) => match &media.data {
            Payload::Inline(data) => data.len() as u64,
            Payload::Stored(blob) => blob.size,
        },
        // Questions are not results, and the content of an unknown block is unknown.
        StoredBlock::Question { .. } | StoredBlock::Unknown(_) => 0,
    }
}

/// Shortens a text to one line and escapes its invisible characters. Quotes and backslashes stay readable.
fn shorten(text: &str) -> String {
    let visible = |character: char| match character {
        '\'' | '"' | '\\' => character.to_string(),
        character => character.escape_debug().to_string(),
    };
    let shown: String = text.chars().take(SHOWN).map(visible).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown + "…"
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(content: Value) -> Value {
        json!({"content": content, "is_error": false})
    }

    fn describe(name: &str, arguments: Value, response: Value) -> String {
        let call = json!({"id": "1", "name": name, "arguments": arguments});
        let response =
            json!({"id": "1", "content": response["content"], "is_error": response["is_error"]});
        describe_call(
            &serde_json::from_value(call).unwrap(),
            None,
            &serde_json::from_value(response).unwrap(),
        )
    }

    #[test]
    fn line_has_the_best_argument_then_the_size() {
        let text = result(json!([{"type": "text", "text": "four"}, {"type": "text", "text": "é"}]));
        insta::assert_snapshot!(describe("read_file", json!({"start": 1, "path": "src/a.rs"}), text.clone()), @"Called read_file src/a.rs: 6 B");
        insta::assert_snapshot!(describe("run_command", json!({"command": ["cargo", "check"]}), text.clone()), @"Called run_command cargo check: 6 B");
        insta::assert_snapshot!(describe("note", json!({"n": 1, "title": "x"}), text.clone()), @"Called note x: 6 B");
        insta::assert_snapshot!(describe("now", json!({}), text), @"Called now: 6 B");
    }

    #[test]
    fn line_has_the_first_line_of_an_error() {
        let error = json!({"content": "\nno such file: x\nand more", "is_error": true});
        insta::assert_snapshot!(describe("read_file", json!({"path": "x"}), error), @"Called read_file x: error: no such file: x");
        let silent = json!({"content": [], "is_error": true});
        insta::assert_snapshot!(describe("read_file", json!({"path": "x"}), silent), @"Called read_file x: error");
    }

    #[test]
    fn control_characters_of_an_error_do_not_hide_its_cause() {
        let nulls = "\0".repeat(500);
        let content =
            format!("{nulls}\n{nulls} no such{nulls}\u{1}file: x{nulls}y{nulls}\nand more");
        let error = json!({"content": content, "is_error": true});
        insta::assert_snapshot!(describe("huge", json!({}), error), @r"Called huge: error: no such\0file: x\0y");
        let silent = json!({"content": nulls, "is_error": true});
        insta::assert_snapshot!(describe("huge", json!({}), silent), @"Called huge: error");
    }

    #[test]
    fn control_characters_of_an_argument_are_escaped() {
        let path = format!("a\u{1b}[2J\n\u{202e}b\"{}", "x".repeat(200));
        let line = describe("read_file", json!({"path": path}), result(json!("")));
        assert_eq!(
            line,
            format!(
                "Called read_file a\\u{{1b}}[2J\\n\\u{{202e}}b\"{}…: 0 B",
                "x".repeat(111)
            )
        );
    }
}
