//! Reads jp's conversations. Those of older versions are converted as in jp.

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
};

use jp_conversation::{Event, EventKind, Stream, ToolCallRequest};
use jp_resource::{BlobRef, Payload, Snapshot};
use jp_storage::{Blobs, Places, read_events};
use jp_tool::StoredBlock;
use serde_json::Value;

use super::Conversation;
use crate::{
    Error,
    recover::{Piece, ROOT, fenced},
};

/// The tool of older versions whose results contain a file or a part of one.
const READ_FILE: &str = "fs_read_file";
const FENCED: &str = "fenced read";
const RESOURCE: &str = "resource";
const SUPERSEDED: &str = "superseded event";
const COMPACTION: &str = "compaction event";
const MISSING: &str = "content missing from the store, counted by its size";

/// Reads an events file, with its content from the store next to it.
pub(super) fn read(path: &Path) -> Result<Conversation, Error> {
    let (stream, warnings) = read_events(path, &Places::new(ROOT))?;
    let mut reading = Reading {
        blobs: open_blobs(path),
        open: HashMap::new(),
        conversation: Conversation {
            warnings,
            ..Conversation::default()
        },
    };
    let events = stream
        .events()
        .iter()
        .cloned()
        .filter_map(|event| reading.convert(event))
        .collect();
    let mut conversation = reading.conversation;
    conversation.streams.push(Stream::from_events(events));
    Ok(conversation)
}

/// Opens `STORE/blobs`, which has the content of `STORE/conversations/ID/events.json`.
fn open_blobs(path: &Path) -> Option<Blobs> {
    let directory = path.canonicalize().ok()?.ancestors().nth(3)?.join("blobs");
    directory.is_dir().then(|| Blobs::open(directory))
}

struct Reading {
    blobs: Option<Blobs>,
    /// Calls that still lack a result, by id. Older conversations use an id several times.
    open: HashMap<String, VecDeque<ToolCallRequest>>,
    conversation: Conversation,
}

impl Reading {
    /// Loads the content of an event. Returns `None` for the recorded run's decisions about
    /// delivery, because the measurement makes its own.
    fn convert(&mut self, mut event: Event) -> Option<Event> {
        match &mut event.kind {
            EventKind::Superseded(_) => {
                self.conversation.count_skipped(SUPERSEDED);
                return None;
            }
            EventKind::Compaction(_) => {
                self.conversation.count_skipped(COMPACTION);
                return None;
            }
            EventKind::ChatRequest(request) => {
                // Calls of an interrupted turn never get a result. Later ids must not match them.
                self.open.clear();
                for resource in &mut request.resources {
                    self.load_snapshot(resource);
                }
            }
            EventKind::ToolCallRequest(call) => {
                self.open
                    .entry(call.id.clone())
                    .or_default()
                    .push_back(call.clone());
            }
            EventKind::ToolCallResponse(response) => {
                let call = self
                    .open
                    .get_mut(&response.id)
                    .and_then(VecDeque::pop_front);
                let blocks = std::mem::take(&mut response.content);
                response.content = blocks
                    .into_iter()
                    .map(|block| self.block(call.as_ref(), block))
                    .collect();
            }
            _ => {}
        }
        Some(event)
    }

    fn block(&mut self, call: Option<&ToolCallRequest>, mut block: StoredBlock) -> StoredBlock {
        match &mut block {
            StoredBlock::Text { text, .. } => {
                self.load_text(text);
                self.conversation.recorded_bytes += size(text, String::len);
                if let Some(call) = call.filter(|call| call.name == READ_FILE)
                    && let Some(text) = text.inline()
                    && let Some(excerpt) =
                        fenced::excerpt(&Value::Object(call.arguments.clone()), text)
                {
                    let piece = Piece::Excerpt(excerpt);
                    return self.conversation.block(FENCED, piece, ROOT);
                }
            }
            StoredBlock::Resource { resource, .. } => {
                self.load_snapshot(resource);
                let bytes = match &resource.formatted {
                    Some(formatted) => size(formatted, String::len),
                    None => size(&resource.content, |content| content.as_bytes().len()),
                };
                self.conversation.recorded_bytes += bytes;
                self.conversation
                    .count_recovered(RESOURCE, usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                self.conversation.recorded_bytes += size(&media.data, Vec::len);
            }
            StoredBlock::Question { .. } | StoredBlock::Unknown(_) => {}
        }
        block
    }

    fn load_snapshot(&mut self, snapshot: &mut Snapshot) {
        if let Payload::Stored(blob) = snapshot.content
            && let Some(content) = self.load(&blob)
        {
            snapshot.content = Payload::Inline(content);
        }
        if let Some(formatted) = &mut snapshot.formatted {
            self.load_text(formatted);
        }
    }

    fn load_text(&mut self, text: &mut Payload<String>) {
        if let Payload::Stored(blob) = text
            && let Some(content) = self.load(blob)
            && let Ok(loaded) = String::from_utf8(content.into_bytes())
        {
            *text = Payload::Inline(loaded);
        }
    }

    /// Reads content from the store; counts it as skipped if it isn't there.
    fn load(&mut self, blob: &BlobRef) -> Option<jp_resource::ResourceContent> {
        let content = self
            .blobs
            .as_ref()
            .and_then(|blobs| blobs.read_content(blob).ok());
        if content.is_none() {
            self.conversation.count_skipped(MISSING);
        }
        content
    }
}

fn size<T>(payload: &Payload<T>, length: impl Fn(&T) -> usize) -> u64 {
    match payload {
        Payload::Inline(value) => length(value) as u64,
        Payload::Stored(blob) => blob.size,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jp_resource::Encoding;

    use super::*;
    use crate::read::{Recovered, outline};

    fn read_text(text: &str) -> Conversation {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.json");
        fs::write(&path, text).unwrap();
        read(&path).unwrap()
    }

    /// The results of two tools in base64, which older versions used.
    const OLDER: &str = r#"[
        {"timestamp": "2026-03-05 19:31:45.7", "type": "chat_request", "content": "go"},
        {"timestamp": "2026-03-05 19:31:46.7", "type": "tool_call_request", "id": "1", "name": "fs_read_file",
         "arguments": {"path": "YS5ycw=="}},
        {"timestamp": "2026-03-05 19:31:47.7", "type": "tool_call_response", "id": "1", "is_error": false,
         "content": "YGBgcnMKYQpiCgpgYGAK"},
        {"timestamp": "2026-03-05 19:31:48.7", "type": "tool_call_request", "id": "2", "name": "fs_grep_files",
         "arguments": {"pattern": "YQ=="}},
        {"timestamp": "2026-03-05 19:31:49.7", "type": "tool_call_response", "id": "2", "is_error": false,
         "content": "YGBgcnMKYQpiCgpgYGAK"}
    ]"#;

    #[test]
    fn only_older_reads_become_resources() {
        let conversation = read_text(OLDER);
        assert_eq!(
            outline(&conversation.streams[0]),
            [
                r#"user "go""#,
                r#"call 1 fs_read_file {"path":"a.rs"}"#,
                "result 1 false",
                r#"  file:///workspace/a.rs "a\nb\n""#,
                r#"call 2 fs_grep_files {"pattern":"a"}"#,
                "result 2 false",
                r#"  text "```rs\na\nb\n\n```\n""#,
            ]
        );
        assert_eq!(conversation.recorded_bytes, 30);
        assert_eq!(
            conversation.recovered[FENCED],
            Recovered {
                resources: 1,
                bytes: 4
            }
        );
    }

    #[test]
    fn delivery_decisions_of_the_run_are_skipped() {
        let with = |kind: &str, fields: serde_json::Value| {
            let mut event = serde_json::json!({"timestamp": "2026-11-21T12:00:00Z", "type": kind});
            event
                .as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            event
        };
        let request = with("chat_request", serde_json::json!({"content": "go"}));
        let superseded = with("superseded", serde_json::json!({"dropped": []}));
        let compaction = with(
            "compaction",
            serde_json::json!({"keep_last": 1, "strip": ["tools"]}),
        );
        let events = serde_json::json!([request, superseded, compaction, request]);
        let conversation = read_text(&events.to_string());
        assert_eq!(
            outline(&conversation.streams[0]),
            [r#"user "go""#, r#"user "go""#]
        );
        assert_eq!(
            (
                conversation.skipped[SUPERSEDED],
                conversation.skipped[COMPACTION]
            ),
            (1, 1)
        );
    }

    #[test]
    fn repeated_ids_pair_each_result_with_its_own_call() {
        let call = |path: &str| {
            let arguments = serde_json::json!({"path": path});
            serde_json::json!({"timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_request", "id": "1",
                "name": "fs_read_file", "arguments": arguments})
        };
        let result = |text: &str| {
            let content = format!("```\n{text}\n```\n");
            serde_json::json!({"timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_response", "id": "1",
                "content": content})
        };
        let events = serde_json::json!([call("a"), call("b"), result("a"), result("b")]);
        let outline = outline(&read_text(&events.to_string()).streams[0]);
        assert_eq!(outline[3], r#"  file:///workspace/a "a""#);
        assert_eq!(outline[5], r#"  file:///workspace/b "b""#);
    }

    #[test]
    fn stored_content_is_loaded_if_it_exists() {
        let store = tempfile::tempdir().unwrap();
        let directory = store.path().join("conversations/17727391057");
        fs::create_dir_all(&directory).unwrap();
        let blobs = Blobs::open(store.path().join("blobs"));
        let batch = blobs.batch();
        let blob = batch.put(b"text\n", Encoding::Utf8).unwrap();
        batch.commit().unwrap();
        let gone = BlobRef::for_content(b"gone", Encoding::Utf8);
        let resource = |blob: BlobRef| {
            serde_json::json!({"type": "resource", "resource":
                {"uri": "workspace:///a", "content": {"$blob": blob.checksum, "size": blob.size, "encoding": "utf8"}}})
        };
        let events = serde_json::json!([
            {"timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_request", "id": "1", "name": "read_file"},
            {"timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_response", "id": "1",
             "content": [resource(blob), resource(gone)]},
        ]);
        let path = directory.join("events.json");
        fs::write(&path, events.to_string()).unwrap();
        let conversation = read(&path).unwrap();
        assert_eq!(
            outline(&conversation.streams[0])[2..],
            [
                r#"  file:///workspace/a "text\n""#,
                r#"  file:///workspace/a "(stored)""#
            ]
        );
        assert_eq!(
            (conversation.recorded_bytes, conversation.skipped[MISSING]),
            (9, 1)
        );
    }

    #[test]
    fn error_names_the_damaged_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.json");
        fs::write(&path, "[\n{\"type\": 1}\n]").unwrap();
        let Err(Error::Events(error)) = read(&path) else {
            panic!()
        };
        assert_eq!(
            error.to_string(),
            format!("read the events in {}", path.display())
        );
    }

    #[test]
    fn every_file_read_of_real_conversations_is_recovered() {
        let data =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/jp-conversations");
        let Ok(found) = crate::find::conversations(&data) else {
            return;
        };
        let mut reads = 0;
        for recording in &found.recordings {
            let conversation = read(&recording.path).unwrap();
            let wanted = conversation.streams[0]
                .events()
                .iter()
                .filter(|event| matches!(&event.kind, EventKind::ToolCallRequest(call) if call.name == READ_FILE))
                .count() as u64;
            let recovered = conversation
                .recovered
                .get(FENCED)
                .copied()
                .unwrap_or_default();
            assert_eq!(recovered.resources, wanted, "{}", recording.path.display());
            reads += wanted;
        }
        assert!(reads > 0);
    }
}
