//! Reads recorded conversations into streams of jp's events.

mod claude_code;
mod jp;
mod swe_agent;

use std::{collections::BTreeMap, path::Path};

use jp_conversation::{
    ChatRequest, ChatResponse, Event, EventKind, Stream, ToolCallRequest, ToolCallResponse,
};
use jp_resource::Snapshot;
use jp_tool::{ContentBlock, StoredBlock};
use serde_json::{Map, Value};

use crate::{Error, find::Recording, recover::Piece};

/// The program that wrote a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// jp, any version.
    Jp,
    /// SWE-agent: a trajectory.
    SweAgent,
    /// Claude Code: a transcript.
    ClaudeCode,
}

/// A recorded conversation as jp's events.
#[derive(Debug, Default)]
pub struct Conversation {
    /// Its events; several streams if summaries replaced earlier messages.
    pub streams: Vec<Stream>,
    /// The bytes of tool output in the recording.
    pub recorded_bytes: u64,
    /// The recovered resources by the form of the tool output.
    pub recovered: BTreeMap<&'static str, Recovered>,
    /// The number of skipped items by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Problems that didn't prevent reading.
    pub warnings: Vec<String>,
}

/// The size of the recovered resources of one form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The number of resources.
    pub resources: u64,
    /// The bytes of their content.
    pub bytes: u64,
}

/// Reads a recording.
pub fn conversation(recording: &Recording) -> Result<Conversation, Error> {
    match recording.format {
        Format::Jp => jp::read(&recording.path),
        Format::SweAgent => swe_agent::read(&recording.path),
        Format::ClaudeCode => claude_code::read(&recording.path),
    }
}

impl Format {
    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jp => "jp",
            Self::SweAgent => "SWE-agent",
            Self::ClaudeCode => "Claude Code",
        }
    }

    /// Returns the format of conversations in files with this extension.
    pub(crate) fn from_extension(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Some(Self::Jp),
            "traj" => Some(Self::SweAgent),
            "jsonl" => Some(Self::ClaudeCode),
            _ => None,
        }
    }

    /// Finds the format by the start of a file, which may end in the middle of a line.
    pub(crate) fn from_start(start: &str) -> Option<Self> {
        let start = start.trim_start();
        // Of the three, only jp's events are an array.
        if start.starts_with('[') {
            let has_events = start.contains("\"type\"") && start.contains("\"timestamp\"");
            return has_events.then_some(Self::Jp);
        }
        if start
            .lines()
            .take(SEARCHED_LINES)
            .any(claude_code::is_message)
        {
            return Some(Self::ClaudeCode);
        }
        let is_trajectory = ["\"trajectory\":", "\"history\":"]
            .iter()
            .any(|key| start.contains(key));
        (start.starts_with('{') && is_trajectory).then_some(Self::SweAgent)
    }
}

/// The number of lines that are searched for a message of a transcript. Transcripts often start
/// with lines of other kinds, such as summaries.
const SEARCHED_LINES: usize = 100;

impl Conversation {
    fn count_skipped(&mut self, what: impl Into<String>) {
        *self.skipped.entry(what.into()).or_default() += 1;
    }

    /// Makes the block of a piece recovered from `form`: a resource, or text if its path has no URI.
    fn block(&mut self, form: &'static str, piece: Piece, directory: &str) -> StoredBlock {
        match piece {
            Piece::Text(text) => ContentBlock::text(text).into(),
            Piece::Excerpt(excerpt) => {
                let text = excerpt.text.clone();
                let Ok(block) = excerpt.into_block(directory) else {
                    self.count_skipped("path without a URI");
                    return ContentBlock::text(text).into();
                };
                self.count_recovered(form, text.len());
                block
            }
        }
    }

    fn count_recovered(&mut self, form: &'static str, bytes: usize) {
        let recovered = self.recovered.entry(form).or_default();
        recovered.resources += 1;
        recovered.bytes += bytes as u64;
    }
}

/// Returns the string of a JSON object's field, or an empty one.
fn string<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns true if the field of a JSON object is `true`.
fn is_set(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// The events of a stream. They have no timestamps, because a view doesn't depend on them.
#[derive(Default)]
struct Events(Vec<Event>);

impl Events {
    fn push(&mut self, kind: EventKind) {
        self.0.push(Event::new(Default::default(), kind));
    }

    fn request(&mut self, words: &str, resources: Vec<Snapshot>) {
        self.push(EventKind::ChatRequest(ChatRequest {
            resources,
            ..ChatRequest::new(words)
        }));
    }

    fn message(&mut self, words: &str) {
        if !words.is_empty() {
            self.push(EventKind::ChatResponse(ChatResponse::message(words)));
        }
    }

    fn reasoning(&mut self, words: &str) {
        if !words.is_empty() {
            self.push(EventKind::ChatResponse(ChatResponse::reasoning(words)));
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: Map<String, Value>) {
        let (id, name, metadata) = (id.to_owned(), name.to_owned(), Map::new());
        self.push(EventKind::ToolCallRequest(ToolCallRequest {
            id,
            name,
            arguments,
            metadata,
        }));
    }

    fn result(&mut self, id: &str, content: Vec<StoredBlock>, is_error: bool) {
        self.push(EventKind::ToolCallResponse(ToolCallResponse {
            id: id.to_owned(),
            content,
            is_error,
            structured_content: None,
            meta: Map::new(),
        }));
    }

    fn into_stream(self) -> Stream {
        Stream::from_events(self.0)
    }
}

/// Describes the events and the blocks of results, one line each, for tests.
#[cfg(test)]
fn outline(stream: &Stream) -> Vec<String> {
    use jp_conversation::view::inline_text;
    let block = |block: &StoredBlock| match block {
        StoredBlock::Resource { resource, .. } => {
            format!(
                "  {} {:?}",
                resource.uri,
                inline_text(block).unwrap_or("(stored)")
            )
        }
        other => format!("  text {:?}", inline_text(other).unwrap_or("(no text)")),
    };
    let lines = |event: &Event| match &event.kind {
        EventKind::ChatRequest(request) => {
            let attached = request
                .resources
                .iter()
                .map(|resource| format!("  attached {}", resource.uri));
            std::iter::once(format!("user {:?}", request.content))
                .chain(attached)
                .collect()
        }
        EventKind::ChatResponse(response) => vec![format!("{:?}", response.content)],
        EventKind::ToolCallRequest(call) => {
            vec![format!(
                "call {} {} {}",
                call.id,
                call.name,
                Value::Object(call.arguments.clone())
            )]
        }
        EventKind::ToolCallResponse(response) => {
            let head = format!("result {} {}", response.id, response.is_error);
            std::iter::once(head)
                .chain(response.content.iter().map(block))
                .collect()
        }
        other => vec![format!("{other:?}")],
    };
    stream.events().iter().flat_map(lines).collect()
}
