//! What became of calls, for a person who watches and for a script.

use jp_conversation::{EventKind, Stream, ToolCallRequest, ToolCallResponse};
use jp_resource::Payload;
use jp_tool::StoredBlock;
use serde_json::{Map, Value, json};

use crate::size;

/// How much of an argument or an error is shown.
const SHOWN: usize = 120;

/// Says in a line what was called and what came of it.
pub(in crate::cmd::query) fn line(call: &ToolCallRequest, response: &ToolCallResponse) -> String {
    let argument = telling(&call.arguments).map(|argument| format!(" {}", shown(&argument)));
    let argument = argument.unwrap_or_default();
    format!("Called {}{argument}: {}", shown(&call.name), outcome(response))
}

/// Returns the newest calls of a conversation, with how each ended.
pub(in crate::cmd::query) fn calls(stream: &Stream, count: usize) -> Vec<Value> {
    let mut calls: Vec<(&ToolCallRequest, Option<bool>)> = Vec::new();
    for event in stream.events() {
        match &event.kind {
            EventKind::ToolCallRequest(call) => calls.push((call, None)),
            EventKind::ToolCallResponse(response) => {
                // Some providers count their ids from 0 in each answer.
                let is_open = |(call, ended): &&mut (&ToolCallRequest, Option<bool>)| {
                    ended.is_none() && call.id == response.id
                };
                if let Some((_, ended)) = calls.iter_mut().find(is_open) {
                    *ended = Some(response.is_error);
                }
            }
            _ => {}
        }
    }
    let newest = calls.split_off(calls.len().saturating_sub(count));
    let document = |(call, is_error): (&ToolCallRequest, Option<bool>)| {
        json!({
            "id": call.id, "tool": call.name, "arguments": call.arguments,
            "is_error": is_error.unwrap_or(true),
        })
    };
    newest.into_iter().map(document).collect()
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
            words.filter(|words| !words.is_empty()).map(|words| words.join(" "))
        }
        _ => None,
    }
}

fn outcome(response: &ToolCallResponse) -> String {
    if !response.is_error {
        return size::bytes(response.content.iter().map(bytes).sum());
    }
    let texts = response.content.iter().filter_map(|block| match block {
        StoredBlock::Text { text: Payload::Inline(text), .. } => Some(text),
        _ => None,
    });
    let first = texts.flat_map(|text| text.lines()).find(|line| !line.trim().is_empty());
    first.map_or_else(|| "error".to_owned(), |line| format!("error: {}", shown(line.trim())))
}

fn bytes(block: &StoredBlock) -> u64 {
    match block {
        StoredBlock::Text { text: Payload::Inline(text), .. } => text.len() as u64,
        StoredBlock::Text { text: Payload::Stored(blob), .. } => blob.size,
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
    if text.chars().nth(SHOWN).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, arguments: Value, response: Value) -> String {
        let call = json!({"id": "1", "name": name, "arguments": arguments});
        let response = json!({"id": "1", "content": response["content"], "is_error": response["is_error"]});
        line(&serde_json::from_value(call).unwrap(), &serde_json::from_value(response).unwrap())
    }

    fn result(content: Value) -> Value {
        json!({"content": content, "is_error": false})
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
    fn nothing_in_a_line_steers_a_terminal_or_begins_another() {
        let path = format!("a\u{1b}[2J\n\u{202e}b\"{}", "x".repeat(200));
        let line = called("read_file", json!({"path": path}), result(json!("")));
        assert_eq!(line, format!("Called read_file a\\u{{1b}}[2J\\n\\u{{202e}}b\"{}…: 0 B", "x".repeat(111)));
    }
}
