//! Reads Claude Code's transcripts, which have a JSON object with a message or a part of one on each
//! line.
//!
//! The parts of an answer have the same message id and a line each, and the results of its calls
//! come between them. The model received the results after the whole answer, so they follow it
//! here. Messages that the user sent meanwhile come after the results.
//!
//! Lines of sub-agents belong to other conversations and are skipped, unless all of the transcript
//! is from one sub-agent. A summary that replaced the messages before it starts another stream.

use std::{
    collections::{HashMap, HashSet},
    fs, mem,
    path::Path,
};

use jp_resource::{Payload, Snapshot, decode_base64};
use jp_tool::{ContentBlock, Media, StoredBlock};
use serde_json::Value;

use super::{Conversation, Events, is_set, string};
use crate::{
    Error,
    recover::{Piece, ROOT, claude_edit, claude_read},
};

const READ: &str = "numbered read";
const SNIPPET: &str = "edit snippet";
const ATTACHED: &str = "attached file";
/// The tool that reads files.
const READ_TOOL: &str = "Read";
/// The tools that change files.
const EDIT_TOOLS: [&str; 2] = ["Edit", "Write"];
/// The field that marks a line of a sub-agent.
const SIDECHAIN: &str = "isSidechain";

/// Returns true if a line has a message of a conversation. The line may be cut at its end.
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
        is_of_sub_agent: is_of_sub_agent(&text),
        ..Reading::default()
    };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        reading.add_line(line);
    }
    reading.end_stream();
    match reading.conversation.streams.is_empty() {
        true => Err(Error::Unknown {
            path: path.to_owned(),
        }),
        false => Ok(reading.conversation),
    }
}

/// Returns true if all messages are from one sub-agent.
fn is_of_sub_agent(text: &str) -> bool {
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut messages = lines.filter(|line| line.pointer("/message/content").is_some());
    let Some(first) = messages.next() else {
        return false;
    };
    is_set(&first, SIDECHAIN)
        && messages.all(|line| {
            is_set(&line, SIDECHAIN) && string(&line, "agentId") == string(&first, "agentId")
        })
}

/// Returns the directory of relative paths.
fn directory(line: &Value) -> &str {
    Some(string(line, "cwd"))
        .filter(|path| path.starts_with('/'))
        .unwrap_or(ROOT)
}

#[derive(Default)]
struct Reading {
    conversation: Conversation,
    events: Events,
    /// True if the transcript is a sub-agent's.
    is_of_sub_agent: bool,
    /// The message id of the answer that is being read.
    answer: String,
    /// The results of its calls, held back until its last line: id, content, `is_error`.
    results: Vec<(String, Vec<StoredBlock>, bool)>,
    /// The user's messages since the answer started.
    words: Vec<String>,
    /// The files that the user attached to them.
    attached: Vec<Snapshot>,
    calls: HashMap<String, Call>,
    /// The ids of lines. A resumed session repeats lines of the one before it.
    seen: HashSet<String>,
}

struct Call {
    name: String,
    input: Value,
    is_answered: bool,
}

/// The call that a result belongs to.
struct Origin<'v> {
    tool: String,
    /// The input of the call.
    input: Value,
    /// The transcript's object about the result.
    record: Option<&'v Value>,
    /// The directory of relative paths.
    directory: &'v str,
}

impl Origin<'_> {
    /// Splits a result's text into pieces if the tool's output can be proved. Also returns the name
    /// of the output's form.
    fn recover(&self, text: &str) -> Option<(&'static str, Vec<Piece>)> {
        match &*self.tool {
            READ_TOOL => {
                let file = self.record.and_then(|record| record.get("file"));
                Some((READ, claude_read::pieces(&self.input, text, file)?))
            }
            tool if EDIT_TOOLS.contains(&tool) => {
                Some((SNIPPET, claude_edit::pieces(text, self.record?)?))
            }
            _ => None,
        }
    }
}

impl Reading {
    fn add_line(&mut self, text: &str) {
        let Ok(line) = serde_json::from_str::<Value>(text) else {
            return self.conversation.count_skipped("line that isn't JSON");
        };
        let uuid = string(&line, "uuid");
        let kind = string(&line, "type");
        if is_set(&line, SIDECHAIN) && !self.is_of_sub_agent {
            self.conversation.count_skipped("line of a sub-agent");
        } else if is_set(&line, "isApiErrorMessage") {
            self.conversation.count_skipped("error of the provider");
        } else if !uuid.is_empty() && !self.seen.insert(uuid.to_owned()) {
            self.conversation.count_skipped("repeated line");
        } else if kind == "user" {
            self.add_user_line(&line);
        } else if kind == "assistant" {
            self.add_answer_line(&line);
        } else if kind == "attachment" {
            self.add_attachment(&line);
        } else {
            self.conversation
                .count_skipped(format!("line of the type {kind:?}"));
        }
    }

    fn count_skipped_block(&mut self, kind: &str) {
        self.conversation
            .count_skipped(format!("block of the type {kind:?}"));
    }

    fn add_user_line(&mut self, line: &Value) {
        if is_set(line, "isCompactSummary") {
            self.end_stream();
        }
        match line.pointer("/message/content") {
            Some(Value::String(words)) => self.words.push(words.clone()),
            Some(Value::Array(blocks)) => {
                blocks.iter().for_each(|block| match string(block, "type") {
                    "text" => self.words.push(string(block, "text").to_owned()),
                    "tool_result" => self.add_result(block, line),
                    other => self.count_skipped_block(other),
                })
            }
            _ => self.conversation.count_skipped("message without content"),
        }
    }

    /// Adds a file that the user attached.
    fn add_attachment(&mut self, line: &Value) {
        let kind = line
            .pointer("/attachment/type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let file = line
            .pointer("/attachment/content/file")
            .filter(|_| kind == "file");
        let Some(excerpt) = file.and_then(claude_read::attached_file) else {
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

    fn add_answer_line(&mut self, line: &Value) {
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
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| self.add_part(block)),
            _ => self.conversation.count_skipped("message without content"),
        }
    }

    fn add_part(&mut self, block: &Value) {
        match string(block, "type") {
            "text" => self.events.message(string(block, "text")),
            "thinking" => self.events.reasoning(string(block, "thinking")),
            "tool_use" => self.add_call(block),
            other => self.count_skipped_block(other),
        }
    }

    fn add_call(&mut self, block: &Value) {
        let (id, name) = (string(block, "id"), string(block, "name"));
        let input = block.get("input").cloned().unwrap_or_default();
        let arguments = input.as_object().cloned().unwrap_or_default();
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

    fn add_result(&mut self, block: &Value, line: &Value) {
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
            Some(Value::String(text)) => self.text_blocks(text, &origin),
            Some(Value::Array(blocks)) => blocks
                .iter()
                .flat_map(|block| self.result_blocks(block, &origin))
                .collect(),
            _ => Vec::new(),
        };
        self.results
            .push((id.to_owned(), content, is_set(block, "is_error")));
    }

    fn result_blocks(&mut self, block: &Value, origin: &Origin<'_>) -> Vec<StoredBlock> {
        match string(block, "type") {
            "text" => self.text_blocks(string(block, "text"), origin),
            "image" => self.image(block).into_iter().collect(),
            other => {
                self.count_skipped_block(other);
                Vec::new()
            }
        }
    }

    fn text_blocks(&mut self, text: &str, origin: &Origin<'_>) -> Vec<StoredBlock> {
        self.conversation.recorded_bytes += text.len() as u64;
        let Some((form, pieces)) = origin.recover(text) else {
            return vec![ContentBlock::text(text).into()];
        };
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

    /// Adds the results of the answer's calls, then the user's messages since it started.
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
    fn results_follow_the_whole_answer() {
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
                ("line that isn't JSON".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn attached_files_belong_to_the_message() {
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
    fn edit_shows_lines_of_the_recorded_file() {
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
    fn lines_of_other_conversations_are_skipped() {
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
        let line = |agent: &str, words: &str| {
            let mut line = user(json!(words));
            line["isSidechain"] = json!(true);
            line["agentId"] = json!(agent);
            line
        };
        let conversation = read_lines(&[line("a", "look"), line("a", "and again")]);
        assert_eq!(
            outline(&conversation.streams[0]),
            [r#"user "look\n\nand again""#]
        );

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.jsonl");
        let lines = format!("{}\n{}\n", line("a", "look"), line("b", "look"));
        fs::write(&path, lines).unwrap();
        assert!(
            matches!(read(&path), Err(Error::Unknown { .. })),
            "two sub-agents"
        );
    }

    #[test]
    fn summary_starts_another_stream() {
        let mut summary = user(json!("what was before"));
        summary["isCompactSummary"] = json!(true);
        let conversation = read_lines(&[user(json!("go")), summary]);
        let outlines: Vec<_> = conversation.streams.iter().map(outline).collect();
        assert_eq!(outlines, [[r#"user "go""#], [r#"user "what was before""#]]);
    }

    #[test]
    fn error_names_a_file_without_messages() {
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
