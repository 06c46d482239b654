//! What a conversation holds of resources, and what the model knows of their sources.
//!
//! [`held_resources`] follows the events in order: an attachment is held from its message on, a
//! result of jp's own tools replaces it, and a notification changes what the model knows.

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

/// What other crates know of a stream: the marks that they put into snapshots and results.
pub trait Marks {
    /// Returns how long a server takes a snapshot for current.
    fn ttl(&self, snapshot: &Snapshot) -> Option<Duration>;

    /// Returns whether a tool of jp's own only reads; `None` if it isn't jp's own.
    fn own_tool_reads(&self, name: &str) -> Option<bool>;

    /// Returns the files of the workspace that a result says were written, moved or deleted.
    fn written_files(&self, block: &StoredBlock) -> Vec<WrittenFile>;
}

/// A file that a tool wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its path below the root of the workspace.
    pub path: String,
    /// What it holds now; `None` if it is gone.
    pub checksum: Option<Checksum>,
}

/// What the conversation holds of a resource, and what the model knows.
#[derive(Debug)]
pub struct HeldResource<'a> {
    /// The newest version that it holds.
    checksum: Checksum,
    /// The size of that version, in bytes.
    pub size: u64,
    name: Option<&'a str>,
    /// The turn that it came with.
    turn: usize,
    /// What the model knows its source to have; `None` if it is gone.
    known: Option<Checksum>,
    /// Until when the server that gave it takes it for current.
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

    /// Returns whether the server that gave it takes it for current.
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

    /// Returns the turn that it came with.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// Returns what to tell the model if its source has `now`, unless the model knows that.
    pub fn change(&self, uri: &str, now: Option<Checksum>) -> Option<Notification> {
        (now != self.known).then(|| Notification {
            uri: uri.to_owned(),
            checksum: self.checksum,
            name: self.name.map(str::to_owned),
            now,
        })
    }
}

/// Finds what the conversation holds of resources: what was attached, and what jp's own tools returned whole.
///
/// Other tools may return a part of a file, or change it, so their results don't count. The model knows
/// a file that it wrote, moved or deleted, though it wasn't shown all of it. `root` is the workspace.
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
    // When snapshots were read that a message took later.
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
                if let Some(only_reads) = tool.and_then(|tool| marks.own_tool_reads(tool)) {
                    let taken = Taken {
                        turn,
                        read: event.timestamp,
                    };
                    for block in &response.content {
                        take_in_shown(&mut held, block, taken, marks);
                        if !only_reads {
                            take_in_written(&mut held, marks.written_files(block), root);
                        }
                    }
                }
            }
            EventKind::Notification(notification) => {
                let its = held.iter_mut().filter(|((_, uri), held)| {
                    *uri == notification.uri && held.checksum == notification.checksum
                });
                its.for_each(|(_, held)| held.known = notification.now);
            }
            _ => {}
        }
    }
    held
}

/// Returns the MCP server that a resource of a request is of.
fn server_of(request: &ChatRequest, index: usize) -> Option<&str> {
    let gave = request
        .delivered
        .iter()
        .find(|delivered| delivered.resources.contains(&index))?;
    gave.declaration.server()
}

/// When something was read.
#[derive(Debug, Clone, Copy)]
struct Taken {
    turn: usize,
    read: Timestamp,
}

/// Takes in what the model was shown whole.
fn take_in_shown<'a>(
    held: &mut HashMap<Key<'a>, HeldResource<'a>>,
    block: &'a StoredBlock,
    taken: Taken,
    marks: &dyn Marks,
) {
    let StoredBlock::Resource { resource, .. } = block else {
        return;
    };
    let (uri, None) = split_fragment(&resource.uri) else {
        return;
    };
    let mut its: Vec<_> = held
        .iter_mut()
        .filter(|((_, known), _)| *known == uri)
        .map(|(_, held)| held)
        .collect();
    // If two servers use the URI, it may be either's.
    if let [held] = &mut its[..] {
        **held = HeldResource {
            name: held.name,
            ..HeldResource::new(resource, taken.turn, taken.read, marks)
        };
    }
}

/// Takes in what the model did to files of the workspace.
fn take_in_written(
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
        let its = held
            .iter_mut()
            .filter(|((server, uri), _)| server.is_none() && *uri == written);
        its.for_each(|(_, held)| held.known = file.checksum);
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
    fn model_is_told_of_what_it_does_not_know() {
        let events = || vec![attached(1, "file:///w/a", "one")];
        assert_eq!(change(events(), "file:///w/a", Some("one")), None);
        let told = change(events(), "file:///w/a", Some("two")).unwrap();
        assert_eq!(told.now, Some(blob("two").checksum));
        assert_eq!(change(events(), "file:///w/a", None).unwrap().now, None);
    }

    #[test]
    fn file_that_the_model_wrote_is_known_to_it() {
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
    fn server_decides_how_long_a_resource_is_current() {
        let stream = Stream::from_events(vec![attached(100, "note:a", "one")]);
        let held = held_resources(&stream, ["note:a"].into_iter(), Path::new("/w"), &TestMarks);
        let held = &held[&(None, "note:a")];
        let at = |second| held.is_current(Timestamp::from_second(second).unwrap());
        assert_eq!([at(159), at(160)], [true, false]);
    }
}
