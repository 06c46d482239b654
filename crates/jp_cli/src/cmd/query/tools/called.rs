//! What became of calls, for a person who watches and for a script.

use jp_conversation::{EventKind, Stream, ToolCallRequest, ToolCallResponse};
use jp_resource::Payload;
use jp_tool::StoredBlock;
use jp_turn::Verdict;
use serde_json::{Map, Value, json};

use crate::{cmd::query::Asked, size};

/// How much of an argument or an error is shown.
const SHOWN: usize = 120;

/// The outcome of a call in this turn, apart from its result.
#[derive(Debug)]
pub(in crate::cmd::query) struct EndedCall {
    /// What was decided about it; nothing if it failed before that.
    verdict: Option<Verdict>,
    /// The same, as the JSON document names it.
    decided: Option<Decided>,
    /// The arguments that it ran with, if the person changed them.
    edited: Option<Map<String, Value>>,
}

/// The decision about a call, as the JSON document names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decided {
    decision: &'static str,
    reason: &'static str,
}

/// What the command line and the workspace have to do with a tool's permission.
#[derive(Debug, Clone, Copy, Default)]
struct Circumstances {
    /// `--yes` stands for the person.
    is_yes: bool,
    /// Without `--yes` the tool would ask.
    is_raised: bool,
    /// The tool asks because the workspace is not trusted with it.
    is_untrusted: bool,
}

impl EndedCall {
    pub(in crate::cmd::query) fn new(
        call: &ToolCallRequest,
        verdict: Option<Verdict>,
        edited: Option<&Map<String, Value>>,
        asked: &Asked<'_>,
    ) -> Self {
        let circumstances = Circumstances {
            is_yes: asked.context.global.yes,
            is_raised: asked.tools.raised.contains(&call.name),
            is_untrusted: asked.tools.untrusted.contains(&call.name),
        };
        let decided = verdict.map(|verdict| decided(verdict, circumstances));
        Self {
            verdict,
            decided,
            edited: edited.cloned(),
        }
    }

    /// Returns whether the call was refused because there was no terminal to ask on.
    pub(in crate::cmd::query) fn is_refused_unasked(&self) -> bool {
        self.verdict == Some(Verdict::RefusedUnasked)
    }
}

/// Returns the JSON names for a verdict.
fn decided(verdict: Verdict, circumstances: Circumstances) -> Decided {
    let Circumstances {
        is_yes,
        is_raised,
        is_untrusted,
    } = circumstances;
    let (decision, reason) = match verdict {
        Verdict::AllowedUnasked if is_raised => ("allowed", "yes"),
        Verdict::AllowedUnasked => ("allowed", "run"),
        Verdict::AllowedByPerson if is_yes => ("allowed", "yes"),
        Verdict::AllowedByPerson => ("allowed", "user"),
        Verdict::Denied => ("refused", "run"),
        Verdict::RefusedByPerson => ("refused", "user"),
        Verdict::RefusedUnasked if is_untrusted => ("refused", "untrusted"),
        Verdict::RefusedUnasked => ("refused", "no_terminal"),
    };
    Decided { decision, reason }
}

/// Describes a call and its outcome in one line; `edited` are the arguments that ran, if the user changed them.
pub(in crate::cmd::query) fn line(
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

/// Returns the newest calls of a conversation, with how each ended; `ended` are those of this turn.
pub(in crate::cmd::query) fn calls(
    stream: &Stream,
    count: usize,
    ended: &[EndedCall],
) -> Vec<Value> {
    let is_response =
        |event: &&jp_conversation::Event| matches!(event.kind, EventKind::ToolCallResponse(_));
    let before = stream
        .events()
        .iter()
        .filter(is_response)
        .count()
        .saturating_sub(ended.len());
    let mut calls: Vec<NewestCall<'_>> = Vec::new();
    let mut responses = 0;
    for event in stream.events() {
        match &event.kind {
            EventKind::ToolCallRequest(call) => calls.push(NewestCall {
                call,
                is_error: None,
                ended: None,
            }),
            EventKind::ToolCallResponse(response) => {
                responses += 1;
                // Some providers count their ids from 0 in each answer.
                let is_open = |known: &&mut NewestCall<'_>| {
                    known.is_error.is_none() && known.call.id == response.id
                };
                if let Some(known) = calls.iter_mut().find(is_open) {
                    known.is_error = Some(response.is_error);
                    known.ended = (responses - 1_usize)
                        .checked_sub(before)
                        .and_then(|index| ended.get(index));
                }
            }
            _ => {}
        }
    }
    calls
        .split_off(calls.len().saturating_sub(count))
        .iter()
        .map(NewestCall::document)
        .collect()
}

/// A call as the conversation has it.
struct NewestCall<'a> {
    call: &'a ToolCallRequest,
    /// How it ended, once it has.
    is_error: Option<bool>,
    ended: Option<&'a EndedCall>,
}

impl NewestCall<'_> {
    fn document(&self) -> Value {
        let Self {
            call,
            is_error,
            ended,
        } = self;
        let decided = ended.and_then(|ended| ended.decided);
        let edited = ended.and_then(|ended| ended.edited.as_ref());
        json!({
            "id": call.id, "tool": call.name, "arguments": edited.unwrap_or(&call.arguments),
            "is_error": is_error.unwrap_or(true), "decision": decided.map(|decided| decided.decision),
            "reason": decided.map(|decided| decided.reason),
        })
    }
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
    use super::*;

    fn called(name: &str, arguments: Value, response: Value) -> String {
        let call = json!({"id": "1", "name": name, "arguments": arguments});
        let response =
            json!({"id": "1", "content": response["content"], "is_error": response["is_error"]});
        line(
            &serde_json::from_value(call).unwrap(),
            None,
            &serde_json::from_value(response).unwrap(),
        )
    }

    #[test]
    fn reason_names_what_decided() {
        let words = |verdict, circumstances| {
            let Decided { decision, reason } = decided(verdict, circumstances);
            (decision, reason)
        };
        let none = Circumstances::default();
        let yes = Circumstances {
            is_yes: true,
            ..none
        };
        let raised = Circumstances {
            is_raised: true,
            ..yes
        };
        let untrusted = Circumstances {
            is_untrusted: true,
            ..none
        };
        for (verdict, circumstances, expected) in [
            (Verdict::AllowedUnasked, none, ("allowed", "run")),
            (Verdict::AllowedUnasked, yes, ("allowed", "run")),
            (Verdict::AllowedUnasked, raised, ("allowed", "yes")),
            (Verdict::AllowedByPerson, none, ("allowed", "user")),
            (Verdict::AllowedByPerson, yes, ("allowed", "yes")),
            (Verdict::Denied, yes, ("refused", "run")),
            (Verdict::RefusedByPerson, untrusted, ("refused", "user")),
            (Verdict::RefusedUnasked, none, ("refused", "no_terminal")),
            (Verdict::RefusedUnasked, untrusted, ("refused", "untrusted")),
        ] {
            assert_eq!(
                words(verdict, circumstances),
                expected,
                "{verdict:?} {circumstances:?}"
            );
        }
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
