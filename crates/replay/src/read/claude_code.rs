//! Claude Code's transcripts: a JSON object a line, a message or a part of one in each.
//!
//! An answer's parts are on lines of their own with the message's id, the results of its calls among them: the results
//! are put after the answer, where the model was sent them, and what the person said meanwhile after those. Lines of
//! sub-agents belong to other conversations and are left out, but from a transcript that is a sub-agent's own. A summary
//! that took the place of what was before it starts another stream.

use std::{
    collections::{HashMap, HashSet},
    fs, mem,
    path::Path,
};

use jp_resource::{Payload, Snapshot, decode_base64};
use jp_tool::{ContentBlock, Media, StoredBlock};
use serde_json::{Map, Value};

use super::{Conversation, Events};
use crate::{
    Error,
    recover::{Piece, ROOT, claude_edit, claude_read},
};

const READ: &str = "numbered read";
const SNIPPET: &str = "edit snippet";
const ATTACHED: &str = "attached file";
/// The tool that reads files.
const READ_TOOL: &str = "Read";
/// Those that change files.
const EDIT_TOOLS: [&str; 2] = ["Edit", "Write"];
/// Says of a line that it is a sub-agent's.
const SIDECHAIN: &str = "isSidechain";

/// Returns whether a line holds a message of a conversation; the line may be cut.
pub(super) fn is_message(line: &str) -> bool {
    let Ok(line) = serde_json::from_str::<Value>(line) else {
        let is_side = ["user", "assistant"]
            .iter()
            .any(|side| line.contains(&format!("\"type\":\"{side}\"")));
        return is_side && line.starts_with('{') && line.contains("\"message\":{");
    };
    let is_side = matches!(string(&line, "type"), "user" | "assistant");
    is_side && line.pointer("/message/content").is_some()
}

/// Reads a transcript.
pub(super) fn read(path: &Path) -> Result<Conversation, Error> {
    let bytes = fs::read(path).map_err(|source| Error::io(path, source))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut reading = Reading {
        is_of_agent: is_of_agent(&text),
        ..Reading::default()
    };
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .for_each(|line| reading.line(line));
    reading.end_stream();
    match reading.conversation.streams.is_empty() {
        true => Err(Error::Unknown {
            path: path.to_owned(),
        }),
        false => Ok(reading.conversation),
    }
}

/// Returns whether all messages are those of one sub-agent.
fn is_of_agent(text: &str) -> bool {
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut messages = lines.filter(|line| line.pointer("/message/content").is_some());
    let Some(first) = messages.next() else {
        return false;
    };
    let is_same = |line: Value| {
        is_set(&line, SIDECHAIN) && string(&line, "agentId") == string(&first, "agentId")
    };
    is_set(&first, SIDECHAIN) && messages.all(is_same)
}

fn string<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns what a relative path starts at.
fn directory(line: &Value) -> &str {
    Some(string(line, "cwd"))
        .filter(|path| path.starts_with('/'))
        .unwrap_or(ROOT)
}

fn is_set(line: &Value, name: &str) -> bool {
    line.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[derive(Default)]
struct Reading {
    conversation: Conversation,
    events: Events,
    /// Whether the transcript is a sub-agent's own.
    is_of_agent: bool,
    /// The answer whose lines are being read.
    answer: String,
    /// Its results, and what the person said, until its last line has come.
    results: Vec<(String, Vec<StoredBlock>, bool)>,
    words: Vec<String>,
    /// The files that they attached.
    attached: Vec<Snapshot>,
    calls: HashMap<String, Call>,
    /// A session that was resumed has lines of the one before it again.
    seen: HashSet<String>,
}

struct Call {
    name: String,
    input: Value,
    is_answered: bool,
}

/// Where a result comes from.
struct Origin<'v> {
    tool: String,
    /// What it was called with.
    input: Value,
    /// What the transcript says beside the result.
    record: Option<&'v Value>,
    /// What a relative path starts at.
    directory: &'v str,
}

impl Origin<'_> {
    /// Returns what the transcript says of the file that was read.
    fn file(&self) -> Option<&Value> {
        self.record.and_then(|record| record.get("file"))
    }

    /// Returns what an edit showed of the file.
    fn edit(&self, text: &str) -> Option<Vec<Piece>> {
        self.record
            .and_then(|record| claude_edit::pieces(text, record))
    }
}

impl Reading {
    fn line(&mut self, text: &str) {
        let Ok(line) = serde_json::from_str::<Value>(text) else {
            return self.conversation.count_skipped("line that is no JSON");
        };
        let uuid = string(&line, "uuid");
        let kind = string(&line, "type");
        if is_set(&line, SIDECHAIN) && !self.is_of_agent {
            self.conversation.count_skipped("line of a sub-agent");
        } else if is_set(&line, "isApiErrorMessage") {
            self.conversation.count_skipped("error of the provider");
        } else if !uuid.is_empty() && !self.seen.insert(uuid.to_owned()) {
            self.conversation.count_skipped("repeated line");
        } else if kind == "user" {
            self.user(&line);
        } else if kind == "assistant" {
            self.assistant(&line);
        } else if kind == "attachment" {
            self.attachment(&line);
        } else {
            self.conversation
                .count_skipped(format!("line of the type {kind:?}"));
        }
    }

    fn user(&mut self, line: &Value) {
        if is_set(line, "isCompactSummary") {
            self.end_stream();
        }
        match line.pointer("/message/content") {
            Some(Value::String(words)) => self.words.push(words.clone()),
            Some(Value::Array(blocks)) => {
                blocks.iter().for_each(|block| match string(block, "type") {
                    "text" => self.words.push(string(block, "text").to_owned()),
                    "tool_result" => self.result(block, line),
                    other => self
                        .conversation
                        .count_skipped(format!("block of the type {other:?}")),
                })
            }
            _ => self.conversation.count_skipped("message without content"),
        }
    }

    /// Takes a file that the person attached.
    fn attachment(&mut self, line: &Value) {
        let kind = line
            .pointer("/attachment/type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let file = line
            .pointer("/attachment/content/file")
            .filter(|_| kind == "file");
        let Some(excerpt) = file.and_then(claude_read::attached) else {
            return self
                .conversation
                .count_skipped(format!("attachment of the type {kind:?}"));
        };
        let block = self
            .conversation
            .block(ATTACHED, Piece::Excerpt(excerpt), directory(line));
        if let StoredBlock::Resource { resource, .. } = block {
            self.attached.push(resource);
        }
    }

    fn assistant(&mut self, line: &Value) {
        let id = line
            .pointer("/message/id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if id.is_empty() || id != self.answer {
            self.end_answer();
            self.answer = id.to_owned();
        }
        match line.pointer("/message/content") {
            Some(Value::String(words)) => self.events.message(words),
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| self.part(block)),
            _ => self.conversation.count_skipped("message without content"),
        }
    }

    fn part(&mut self, block: &Value) {
        match string(block, "type") {
            "text" => self.events.message(string(block, "text")),
            "thinking" => self.events.reasoning(string(block, "thinking")),
            "tool_use" => self.call(block),
            other => self
                .conversation
                .count_skipped(format!("block of the type {other:?}")),
        }
    }

    fn call(&mut self, block: &Value) {
        let (id, name) = (string(block, "id"), string(block, "name"));
        let input = block.get("input").cloned().unwrap_or_default();
        let arguments = input.as_object().cloned().unwrap_or_else(Map::new);
        let call = Call {
            name: name.to_owned(),
            input,
            is_answered: false,
        };
        if self.calls.insert(id.to_owned(), call).is_some() {
            return self.conversation.count_skipped("repeated call");
        }
        self.events.call(id, name, arguments);
    }

    fn result(&mut self, block: &Value, line: &Value) {
        let id = string(block, "tool_use_id");
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.is_answered) else {
            return self.conversation.count_skipped("result without a call");
        };
        call.is_answered = true;
        let origin = Origin {
            tool: call.name.clone(),
            input: mem::take(&mut call.input),
            record: line.get("toolUseResult"),
            directory: directory(line),
        };
        let content = match block.get("content") {
            Some(Value::String(text)) => self.text(text, &origin),
            Some(Value::Array(blocks)) => blocks
                .iter()
                .flat_map(|block| self.block(block, &origin))
                .collect(),
            _ => Vec::new(),
        };
        self.results
            .push((id.to_owned(), content, is_set(block, "is_error")));
    }

    fn block(&mut self, block: &Value, origin: &Origin<'_>) -> Vec<StoredBlock> {
        match string(block, "type") {
            "text" => self.text(string(block, "text"), origin),
            "image" => self.image(block).into_iter().collect(),
            other => {
                self.conversation
                    .count_skipped(format!("block of the type {other:?}"));
                Vec::new()
            }
        }
    }

    fn text(&mut self, text: &str, origin: &Origin<'_>) -> Vec<StoredBlock> {
        self.conversation.recorded_bytes += text.len() as u64;
        let (form, pieces) = match &*origin.tool {
            READ_TOOL => (
                READ,
                claude_read::pieces(&origin.input, text, origin.file()),
            ),
            tool if EDIT_TOOLS.contains(&tool) => (SNIPPET, origin.edit(text)),
            _ => ("", None),
        };
        let pieces = pieces.unwrap_or_else(|| vec![Piece::Text(text.to_owned())]);
        pieces
            .into_iter()
            .map(|piece| self.conversation.block(form, piece, origin.directory))
            .collect()
    }

    fn image(&mut self, block: &Value) -> Option<StoredBlock> {
        let source = block.get("source")?;
        let Ok(data) = decode_base64(string(source, "data")) else {
            self.conversation
                .count_skipped("image that can't be decoded");
            return None;
        };
        self.conversation.recorded_bytes += data.len() as u64;
        let mime_type = string(source, "media_type").to_owned();
        let data = Payload::Inline(data);
        Some(ContentBlock::Image(Media {
            data,
            mime_type,
            annotations: None,
            meta: None,
        }))
    }

    /// Adds what came back for the answer, and what the person said meanwhile.
    fn end_answer(&mut self) {
        for (id, content, is_error) in mem::take(&mut self.results) {
            self.events.result(&id, content, is_error);
        }
        let (words, attached) = (
            mem::take(&mut self.words).join("\n\n"),
            mem::take(&mut self.attached),
        );
        if !words.is_empty() || !attached.is_empty() {
            self.events.request(&words, attached);
        }
        self.answer.clear();
    }

    fn end_stream(&mut self) {
        self.end_answer();
        let events = mem::take(&mut self.events);
        if !events.0.is_empty() {
            self.conversation.streams.push(events.into_stream());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read::outline;

    fn read_lines(lines: &[Value]) -> Conversation {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        fs::write(&path, lines.join("\n") + "\n{\"half").unwrap();
        read(&path).unwrap()
    }

    fn user(content: Value) -> Value {
        json!({"type": "user", "cwd": "/p", "message": {"role": "user", "content": content}})
    }

    fn assistant(id: &str, content: Value) -> Value {
        json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": [content]}})
    }

    fn call(id: &str, path: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": path}})
    }

    fn result(id: &str, content: Value) -> Value {
        user(json!([{"type": "tool_result", "tool_use_id": id, "content": content}]))
    }

    #[test]
    fn results_follow_the_whole_answer_and_words_follow_them() {
        let conversation = read_lines(&[
            json!({"type": "summary", "summary": "x"}),
            user(json!("go")),
            assistant("m1", json!({"type": "thinking", "thinking": "hm"})),
            assistant("m1", call("t1", "/p/a")),
            result(
                "t1",
                json!("     1→a\n     2→\n\n<system-reminder>\nx\n</system-reminder>\n"),
            ),
            user(json!([{"type": "text", "text": "wait"}])),
            assistant("m1", call("t2", "b")),
            result("t2", json!([{"type": "text", "text": "1\tb"}])),
            assistant("m2", json!({"type": "text", "text": "done"})),
        ]);
        assert_eq!(
            outline(&conversation.streams[0]),
            [
                r#"user "go""#,
                r#"Reasoning("hm")"#,
                r#"call t1 Read {"file_path":"/p/a"}"#,
                r#"call t2 Read {"file_path":"b"}"#,
                "result t1 false",
                r#"  file:///p/a "a\n""#,
                r#"  text "\n<system-reminder>\nx\n</system-reminder>\n""#,
                "result t2 false",
                r#"  file:///p/b "b""#,
                r#"user "wait""#,
                r#"Message("done")"#,
            ]
        );
        assert_eq!(conversation.recovered[READ].resources, 2);
        let skipped: Vec<_> = conversation.skipped.into_iter().collect();
        assert_eq!(
            skipped,
            [
                ("line of the type \"summary\"".to_owned(), 1),
                ("line that is no JSON".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn files_that_were_attached_go_with_the_words() {
        let file = json!({"filePath": "/p/a", "content": "a\n", "startLine": 1, "numLines": 2, "totalLines": 2});
        let attachment = |kind: &str| {
            let content = json!({"type": "text", "file": file});
            json!({"type": "attachment", "cwd": "/p", "attachment": {"type": kind, "content": content}})
        };
        let conversation = read_lines(&[
            user(json!("see @a")),
            attachment("file"),
            attachment("plan"),
        ]);
        assert_eq!(
            outline(&conversation.streams[0]),
            [r#"user "see @a""#, "  attached file:///p/a"]
        );
        assert_eq!(conversation.recovered[ATTACHED].resources, 1);
        assert_eq!(conversation.skipped["attachment of the type \"plan\""], 1);
    }

    #[test]
    fn edit_shows_lines_of_the_file_that_the_record_has() {
        let edit =
            json!({"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/p/a"}});
        let words =
            "Changed. Here's the result of running `cat -n` on a snippet of the edited file:\n";
        let mut result = result("t1", json!(format!("{words}     2→B")));
        let record = json!({"filePath": "/p/a", "oldString": "b", "newString": "B", "originalFile": "a\nb\n"});
        result["toolUseResult"] = record;
        let conversation = read_lines(&[assistant("m1", edit), result]);
        assert_eq!(
            outline(&conversation.streams[0])[2..],
            [
                format!("  text {words:?}"),
                r#"  file:///p/a#L2 "B\n""#.to_owned()
            ]
        );
        assert_eq!(conversation.recovered[SNIPPET].resources, 1);
    }

    #[test]
    fn other_tools_results_stay_text() {
        let bash =
            json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"file_path": "/p/a"}});
        let conversation = read_lines(&[assistant("m1", bash), result("t1", json!("     1→a"))]);
        assert_eq!(
            outline(&conversation.streams[0])[2..],
            [r#"  text "     1→a""#]
        );
        assert!(conversation.recovered.is_empty());
    }

    #[test]
    fn sub_agents_and_repeated_lines_are_left_out() {
        let mut of_agent = assistant("m1", json!({"type": "text", "text": "mine"}));
        of_agent["isSidechain"] = json!(true);
        let mut line = user(json!("go"));
        line["uuid"] = json!("1");
        let conversation = read_lines(&[line.clone(), of_agent, line, result("none", json!("x"))]);
        assert_eq!(outline(&conversation.streams[0]), [r#"user "go""#]);
        assert_eq!(conversation.skipped.values().sum::<u64>(), 4);
    }

    #[test]
    fn transcript_of_a_sub_agent_is_a_conversation() {
        let of = |agent: &str, words: &str| {
            let mut line = user(json!(words));
            line["isSidechain"] = json!(true);
            line["agentId"] = json!(agent);
            line
        };
        let conversation = read_lines(&[of("a", "look"), of("a", "and again")]);
        assert_eq!(
            outline(&conversation.streams[0]),
            [r#"user "look\n\nand again""#]
        );

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        fs::write(&path, format!("{}\n{}\n", of("a", "look"), of("b", "look"))).unwrap();
        assert!(
            matches!(read(&path), Err(Error::Unknown { .. })),
            "of several agents"
        );
    }

    #[test]
    fn summary_of_what_was_before_starts_another_stream() {
        let mut summary = user(json!("what was before"));
        summary["isCompactSummary"] = json!(true);
        let conversation = read_lines(&[user(json!("go")), summary]);
        let outlines: Vec<_> = conversation.streams.iter().map(outline).collect();
        assert_eq!(outlines, [[r#"user "go""#], [r#"user "what was before""#]]);
    }

    #[test]
    fn file_without_messages_names_itself() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        fs::write(&path, "{\"n\":1}\n").unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("recognise {} as a conversation", path.display())
        );
    }
}
