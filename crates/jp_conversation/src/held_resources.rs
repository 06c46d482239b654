//! Finds the newest versions of resources in a conversation, and the model's knowledge of their sources.
//!
//! [`held_resources`] follows the events in order. An attachment is held from its message on, a result of jp's
//! own tools replaces it, and a notification updates the model's knowledge.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use jp_resource::{
    BlobRef, Checksum, Snapshot,
    uri::{PathStyle, file_uri, split_fragment},
};
use jp_tool::StoredBlock;

use crate::{ChatRequest, EventKind, Notification, Stream};

/// A URI with its MCP server: two servers, or a server and a file, may use the same URI.
pub type Key<'a> = (Option<&'a str>, &'a str);

/// The marks that other crates put into snapshots and results.
pub trait Marks {
    /// Returns the time for which a server considers a snapshot current.
    fn ttl(&self, snapshot: &Snapshot) -> Option<Duration>;

    /// Returns true if one of jp's own tools only reads; `None` if the tool isn't jp's own.
    fn own_tool_reads(&self, name: &str) -> Option<bool>;

    /// Returns the files of the workspace that were written, moved or deleted according to a result.
    fn written_files(&self, block: &StoredBlock) -> Vec<WrittenFile>;
}

/// A file that a tool wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its path below the root of the workspace.
    pub path: String,
    /// The checksum of its content; `None` if it was deleted.
    pub checksum: Option<Checksum>,
}

/// The newest version of a resource in the conversation, and the model's knowledge of its source.
#[derive(Debug)]
pub struct HeldResource<'a> {
    /// The checksum of that version.
    checksum: Checksum,
    /// The size of that version, in bytes.
    pub size: u64,
    name: Option<&'a str>,
    /// The turn of its delivery.
    turn: usize,
    /// The content of the source as far as the model knows; `None` if it was deleted.
    known: Option<Checksum>,
    /// The time until which its server considers it current.
    current_until: Option<Timestamp>,
}

impl<'a> HeldResource<'a> {
    fn new(snapshot: &'a Snapshot, turn: usize, read: Timestamp, marks: &dyn Marks) -> Self {
        let BlobRef { checksum, size, .. } = snapshot.blob_ref();
        let ttl = marks.ttl(snapshot);
        Self {
            checksum,
            size,
            name: snapshot.name.as_deref(),
            turn,
            known: Some(checksum),
            current_until: ttl.and_then(|ttl| read.checked_add(ttl).ok()),
        }
    }

    /// Returns true if its server still considers it current.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.current_until.is_some_and(|until| now < until)
    }

    /// Returns its name, or its URI if it has none.
    pub fn label<'b>(&self, uri: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.name.unwrap_or(uri)
    }

    /// Returns the turn of its delivery.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// Returns the notification for a source with the content `now`; `None` if the model already knows it.
    pub fn change(&self, uri: &str, now: Option<Checksum>) -> Option<Notification> {
        (now != self.known).then(|| Notification {
            uri: uri.to_owned(),
            checksum: self.checksum,
            name: self.name.map(str::to_owned),
            now,
        })
    }
}

/// Finds the held versions of these URIs: attachments, and resources that jp's own tools returned whole.
///
/// Other tools may return a part of a file or change it, so their results don't count. The model knows the
/// content of a file that it wrote, moved or deleted, even if it never received all of it. `root` is the
/// workspace.
pub fn held_resources<'a>(
    stream: &'a Stream,
    uris: impl Iterator<Item = &'a str>,
    root: &Path,
    marks: &dyn Marks,
) -> HashMap<Key<'a>, HeldResource<'a>> {
    let uris: HashSet<&str> = uris.collect();
    if uris.is_empty() {
        return HashMap::new();
    }
    let mut held: HashMap<Key<'_>, HeldResource<'_>> = HashMap::new();
    // The times of reading snapshots that a later message delivered.
    let mut read = HashMap::new();
    let mut calls = HashMap::new();
    let mut turn = 0;
    for event in stream.events() {
        match &event.kind {
            EventKind::ConfigDelta(delta) => {
                let taken = delta
                    .resources
                    .iter()
                    .map(|one| (one.uri.as_str(), one.blob_ref().checksum));
                read.extend(taken.map(|taken| (taken, event.timestamp)));
            }
            EventKind::ChatRequest(request) => {
                turn += 1;
                let resources = request.resources.iter().enumerate();
                for (index, one) in resources.filter(|(_, one)| uris.contains(one.uri.as_str())) {
                    let taken = (one.uri.as_str(), one.blob_ref().checksum);
                    let read = read.remove(&taken).unwrap_or(event.timestamp);
                    held.insert(
                        (server_of(request, index), one.uri.as_str()),
                        HeldResource::new(one, turn, read, marks),
                    );
                }
            }
            EventKind::ToolCallRequest(call) => {
                _ = calls.insert(call.id.as_str(), call.name.as_str());
            }
            EventKind::ToolCallResponse(response) => {
                let tool = calls.get(response.id.as_str()).copied();
                let Some(only_reads) = tool.and_then(|tool| marks.own_tool_reads(tool)) else {
                    continue;
                };
                for block in &response.content {
                    update_shown(&mut held, block, (turn, event.timestamp), marks);
                    if !only_reads {
                        update_written(&mut held, marks.written_files(block), root);
                    }
                }
            }
            EventKind::Notification(notification) => {
                for ((_, uri), held) in &mut held {
                    if *uri == notification.uri && held.checksum == notification.checksum {
                        held.known = notification.now;
                    }
                }
            }
            _ => {}
        }
    }
    held
}

/// Returns the MCP server of a request's resource.
fn server_of(request: &ChatRequest, index: usize) -> Option<&str> {
    let delivered = request
        .delivered
        .iter()
        .find(|delivered| delivered.resources.contains(&index))?;
    delivered.declaration.server()
}

/// Updates the version of a resource that a result contains whole, with the turn and the time of the result.
fn update_shown<'a>(
    held: &mut HashMap<Key<'a>, HeldResource<'a>>,
    block: &'a StoredBlock,
    (turn, read): (usize, Timestamp),
    marks: &dyn Marks,
) {
    let StoredBlock::Resource { resource, .. } = block else {
        return;
    };
    let (uri, None) = split_fragment(&resource.uri) else {
        return;
    };
    let mut known: Vec<_> = held
        .iter_mut()
        .filter(|((_, known), _)| *known == uri)
        .map(|(_, held)| held)
        .collect();
    // If two servers use the URI, the result may be from either.
    if let [held] = &mut known[..] {
        **held = HeldResource {
            name: held.name,
            ..HeldResource::new(resource, turn, read, marks)
        };
    }
}

/// Updates the model's knowledge of the workspace's files that it changed.
fn update_written(
    held: &mut HashMap<Key<'_>, HeldResource<'_>>,
    files: Vec<WrittenFile>,
    root: &Path,
) {
    for file in files {
        let path = root.join(file.path);
        let uri = path
            .to_str()
            .and_then(|path| file_uri(path, PathStyle::native()).ok());
        let Some(written) = uri else { continue };
        for ((server, uri), held) in held.iter_mut() {
            if server.is_none() && *uri == written {
                held.known = file.checksum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Encoding, Payload};
    use serde_json::{Value, json};

    use super::*;
    use crate::Event;

    /// `read` and `write` are jp's own; a text block `wrote PATH CONTENT` says what was written.
    struct TestMarks;

    impl Marks for TestMarks {
        fn ttl(&self, snapshot: &Snapshot) -> Option<Duration> {
            snapshot
                .uri
                .starts_with("note:")
                .then(|| Duration::from_secs(60))
        }

        fn own_tool_reads(&self, name: &str) -> Option<bool> {
            match name {
                "read" => Some(true),
                "write" => Some(false),
                _ => None,
            }
        }

        fn written_files(&self, block: &StoredBlock) -> Vec<WrittenFile> {
            let StoredBlock::Text {
                text: Payload::Inline(text),
                ..
            } = block
            else {
                return Vec::new();
            };
            let words: Vec<&str> = text.split(' ').collect();
            let checksum = words.get(2).map(|content| blob(content).checksum);
            vec![WrittenFile {
                path: words[1].to_owned(),
                checksum,
            }]
        }
    }

    fn blob(content: &str) -> BlobRef {
        BlobRef::for_content(content.as_bytes(), Encoding::Utf8)
    }

    fn snapshot(uri: &str, content: &str) -> Snapshot {
        Snapshot::new(uri, Payload::Stored(blob(content)))
    }

    fn event(second: i64, kind: EventKind) -> Event {
        Event::new(Timestamp::from_second(second).unwrap(), kind)
    }

    fn attached(second: i64, uri: &str, content: &str) -> Event {
        let request = ChatRequest {
            resources: vec![snapshot(uri, content)],
            ..ChatRequest::new("Look.")
        };
        event(second, EventKind::ChatRequest(request))
    }

    fn called(second: i64, tool: &str, content: Value) -> [Event; 2] {
        let call = json!({"id": "1", "name": tool, "arguments": {}});
        let response = json!({"id": "1", "content": content, "is_error": false});
        [
            event(
                second,
                EventKind::ToolCallRequest(serde_json::from_value(call).unwrap()),
            ),
            event(
                second,
                EventKind::ToolCallResponse(serde_json::from_value(response).unwrap()),
            ),
        ]
    }

    /// Returns what the model would be told if the source had `now`.
    fn change(events: Vec<Event>, uri: &str, now: Option<&str>) -> Option<Notification> {
        let stream = Stream::from_events(events);
        let held = held_resources(&stream, [uri].into_iter(), Path::new("/w"), &TestMarks);
        held[&(None, uri)].change(uri, now.map(|content| blob(content).checksum))
    }

    #[test]
    fn model_is_notified_of_unknown_changes() {
        let events = || vec![attached(1, "file:///w/a", "one")];
        assert_eq!(change(events(), "file:///w/a", Some("one")), None);
        let told = change(events(), "file:///w/a", Some("two")).unwrap();
        assert_eq!(told.now, Some(blob("two").checksum));
        assert_eq!(change(events(), "file:///w/a", None).unwrap().now, None);
    }

    #[test]
    fn model_knows_the_file_that_it_wrote() {
        for (tool, is_told) in [("write", false), ("read", true), ("other", true)] {
            let mut events = vec![attached(1, "file:///w/a", "one")];
            events.extend(called(
                2,
                tool,
                json!([{"type": "text", "text": "wrote a two"}]),
            ));
            let told = change(events, "file:///w/a", Some("two"));
            assert_eq!(told.is_some(), is_told, "{tool}");
        }
    }

    #[test]
    fn notification_is_not_repeated() {
        let mut events = vec![attached(1, "file:///w/a", "one")];
        let told = change(events.clone(), "file:///w/a", Some("two")).unwrap();
        events.push(event(2, EventKind::Notification(told)));
        assert_eq!(change(events.clone(), "file:///w/a", Some("two")), None);
        assert!(change(events, "file:///w/a", Some("three")).is_some());
    }

    #[test]
    fn ttl_of_the_server_decides_if_a_resource_is_current() {
        let stream = Stream::from_events(vec![attached(100, "note:a", "one")]);
        let held = held_resources(&stream, ["note:a"].into_iter(), Path::new("/w"), &TestMarks);
        let held = &held[&(None, "note:a")];
        let at = |second| held.is_current(Timestamp::from_second(second).unwrap());
        assert_eq!([at(159), at(160)], [true, false]);
    }
}
