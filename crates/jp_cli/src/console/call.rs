//! The line that a call gets on the terminal.

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_resource::Payload;
use jp_session::size;
use jp_tool::StoredBlock;
use serde_json::{Map, Value};

/// How much of an argument or an error is shown.
const SHOWN: usize = 120;

/// Describes a call and its outcome in one line; `edited` are the arguments that ran, if the user changed them.
pub(super) fn describe_call(
    call: &ToolCallRequest,
    edited: Option<&Map<String, Value>>,
    response: &ToolCallResponse,
) -> String {
    let argument =
        telling(edited.unwrap_or(&call.arguments)).map(|argument| format!(" {}", shown(&argument)));
    let argument = argument.unwrap_or_default();
    format!(
        "Called {}{argument}: {}",
        shown(&call.name),
        outcome(response)
    )
}

/// Returns the argument that says most of what a call is about.
fn telling(arguments: &Map<String, Value>) -> Option<String> {
    const TELLING: [&str; 4] = ["path", "command", "pattern", "uri"];
    let named = TELLING.into_iter().filter_map(|name| arguments.get(name));
    named.chain(arguments.values()).find_map(text)
}

/// Returns a text, or the words of a list of them.
fn text(value: &Value) -> Option<String> {
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

fn outcome(response: &ToolCallResponse) -> String {
    if !response.is_error {
        return size::bytes(response.content.iter().map(bytes).sum());
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
        .map(legible)
        .find(|line| !line.is_empty());
    first.map_or_else(
        || "error".to_owned(),
        |line| format!("error: {}", shown(&line)),
    )
}

/// Returns the beginning of an error's line, trimmed, with one control character for each run of them.
///
/// A program may print more control characters than are shown, and they would hide the cause behind them.
fn legible(line: &str) -> String {
    let trimmed =
        line.trim_matches(|character: char| character.is_whitespace() || character.is_control());
    let mut was_control = false;
    let is_kept = |character: &char| {
        let is_repeated = was_control && character.is_control();
        was_control = character.is_control();
        !is_repeated
    };
    // One more than is shown marks the line as shortened.
    trimmed.chars().filter(is_kept).take(SHOWN + 1).collect()
}

fn bytes(block: &StoredBlock) -> u64 {
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
        StoredBlock::Question { .. } | StoredBlock::Unknown(_) => 0,
    }
}

/// Returns a text on one line, shortened, with what can't be seen written as its escape.
fn shown(text: &str) -> String {
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

    fn called(name: &str, arguments: Value, response: Value) -> String {
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
    fn line_names_the_argument_that_says_most_and_the_size() {
        let text = result(json!([{"type": "text", "text": "four"}, {"type": "text", "text": "é"}]));
        insta::assert_snapshot!(called("read_file", json!({"start": 1, "path": "src/a.rs"}), text.clone()), @"Called read_file src/a.rs: 6 B");
        insta::assert_snapshot!(called("run_command", json!({"command": ["cargo", "check"]}), text.clone()), @"Called run_command cargo check: 6 B");
        insta::assert_snapshot!(called("note", json!({"n": 1, "title": "x"}), text.clone()), @"Called note x: 6 B");
        insta::assert_snapshot!(called("now", json!({}), text), @"Called now: 6 B");
    }

    #[test]
    fn line_has_the_first_line_of_an_error() {
        let error = json!({"content": "\nno such file: x\nand more", "is_error": true});
        insta::assert_snapshot!(called("read_file", json!({"path": "x"}), error), @"Called read_file x: error: no such file: x");
        let silent = json!({"content": [], "is_error": true});
        insta::assert_snapshot!(called("read_file", json!({"path": "x"}), silent), @"Called read_file x: error");
    }

    #[test]
    fn control_characters_of_an_error_do_not_hide_its_cause() {
        let nulls = "\0".repeat(500);
        let content =
            format!("{nulls}\n{nulls} no such{nulls}\u{1}file: x{nulls}y{nulls}\nand more");
        let error = json!({"content": content, "is_error": true});
        insta::assert_snapshot!(called("huge", json!({}), error), @r"Called huge: error: no such\0file: x\0y");
        let silent = json!({"content": nulls, "is_error": true});
        insta::assert_snapshot!(called("huge", json!({}), silent), @"Called huge: error");
    }

    #[test]
    fn nothing_in_a_line_steers_a_terminal_or_begins_another() {
        let path = format!("a\u{1b}[2J\n\u{202e}b\"{}", "x".repeat(200));
        let line = called("read_file", json!({"path": path}), result(json!("")));
        assert_eq!(
            line,
            format!(
                "Called read_file a\\u{{1b}}[2J\\n\\u{{202e}}b\"{}…: 0 B",
                "x".repeat(111)
            )
        );
    }
}
