use jp_conversation::{ChatRequest, Event, EventKind, Stream, ToolCallRequest};
use jp_resource::{BlobRef, Encoding, Resource, Snapshot};

use super::*;
use crate::record;

/// A conversation as the calls of a workspace make it.
#[derive(Default)]
struct Conversation(Vec<EventKind>);

impl Conversation {
    fn attached(mut self, uri: String, content: &str) -> Self {
        let blob = BlobRef::for_content(content.as_bytes(), Encoding::Utf8);
        let resources = vec![Snapshot::from(Resource::new(uri, blob))];
        self.0.push(EventKind::ChatRequest(ChatRequest {
            resources,
            ..ChatRequest::new("look")
        }));
        self
    }

    fn called(mut self, name: &str, response: &ToolResponse) -> Self {
        // As some providers count them.
        let id = "1".to_owned();
        let (arguments, metadata) = (Map::new(), Map::new());
        let call = ToolCallRequest {
            id: id.clone(),
            name: name.to_owned(),
            arguments,
            metadata,
        };
        self.0.push(EventKind::ToolCallRequest(call));
        self.0.push(EventKind::ToolCallResponse(record::to_event(
            &id,
            response.clone(),
        )));
        self
    }

    /// Returns the stream as it comes back from disk.
    fn stream(&self) -> Stream {
        let event = |kind: &EventKind| {
            let event = Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind.clone());
            Event::from_json(&event.to_json().unwrap()).unwrap()
        };
        Stream::from_events(self.0.iter().map(event).collect())
    }
}

const UNREAD: &str = "a.rs was not deleted: git does not have its content, and you have not read all of it, so the content would be lost. Read the whole file with `read_file` first, then call `delete_file` again.";
const CHANGED: &str = "a.rs has changed since you last saw it. Read it again.";

fn writes() -> [(&'static str, Value); 3] {
    [
        ("edit_file", json!({"path": "a.rs", "old": "x", "new": "y"})),
        ("move_file", json!({"path": "a.rs", "to": "b.rs"})),
        ("delete_file", json!({"path": "a.rs"})),
    ]
}

/// Says what the plans of all writes say to a model that had this conversation.
fn refusals(conversation: &Conversation, content: &str) -> [Option<String>; 3] {
    let workspace = Workspace::new(&[("a.rs", content)]);
    workspace.toolbox.files.remember(&conversation.stream());
    writes().map(|(name, arguments)| workspace.plan(name, &arguments).err())
}

#[test]
fn file_that_changed_since_it_was_read_is_not_written() {
    let workspace = Workspace::new(&[("a.rs", "x")]);
    let read = workspace
        .call("read_file", &json!({"path": "a.rs"}))
        .unwrap();
    let conversation = Conversation::default().called("read_file", &read.response);
    assert_eq!(refusals(&conversation, "x"), [None, None, None]);
    assert_eq!(
        refusals(&conversation, "x by another"),
        [(); 3].map(|()| Some(CHANGED.to_owned()))
    );
    workspace.write("a.rs", "x changed in this turn");
    for (name, arguments) in writes() {
        assert_eq!(workspace.told(name, &arguments), CHANGED, "{name}");
    }
    workspace
        .call("read_file", &json!({"path": "a.rs", "first_line": 1}))
        .unwrap();
    assert!(
        workspace
            .told(
                "edit_file",
                &json!({"path": "a.rs", "old": "x", "new": "y"})
            )
            .starts_with("Edited")
    );
}

#[test]
fn file_written_by_the_model_counts_as_seen() {
    let workspace = Workspace::new(&[]);
    let call = |name: &str, arguments: Value| workspace.call(name, &arguments).unwrap().response;
    let conversation = Conversation::default()
        .called(
            "create_file",
            &call("create_file", json!({"path": "b.rs", "content": "one"})),
        )
        .called(
            "edit_file",
            &call(
                "edit_file",
                json!({"path": "b.rs", "old": "one", "new": "x"}),
            ),
        )
        .called(
            "move_file",
            &call("move_file", json!({"path": "b.rs", "to": "a.rs"})),
        );
    assert_eq!(workspace.text("a.rs"), "x");
    assert_eq!(refusals(&conversation, "x"), [None, None, None]);
    assert!(refusals(&conversation, "x2").iter().all(Option::is_some));
}

#[test]
fn file_that_the_model_deleted_or_moved_away_is_as_good_as_never_seen() {
    for (name, arguments) in &writes()[1..] {
        let workspace = Workspace::new(&[("a.rs", "x")]);
        let read = workspace
            .call("read_file", &json!({"path": "a.rs"}))
            .unwrap();
        let done = workspace.call(name, arguments).unwrap();
        let conversation = Conversation::default()
            .called("read_file", &read.response)
            .called(name, &done.response);
        let unread = Some(UNREAD.to_owned());
        assert_eq!(
            refusals(&conversation, "x by another"),
            [None, None, unread],
            "{name}"
        );
    }
}

#[test]
fn only_a_file_that_was_seen_whole_is_deleted() {
    let read = |range: Value| ("read_file", json!({"path": "a.rs"}), range);
    let lines = |first: usize, last: usize| json!({"first_line": first, "last_line": last});
    let edit = |old: &str, new: &str| {
        (
            "edit_file",
            json!({"path": "a.rs"}),
            json!({"old": old, "new": new}),
        )
    };
    let moved = |path: &str, to: &str| ("move_file", json!({"path": path}), json!({"to": to}));
    for (calls, is_deleted) in [
        (vec![read(json!({}))], true),
        (vec![read(lines(1, 100))], true),
        (vec![read(lines(1, 1))], false),
        // Not even both together: what stood between them is not known to have been the same.
        (vec![read(lines(1, 1)), read(lines(2, 2))], false),
        (vec![read(json!({})), read(lines(1, 1))], true),
        (vec![read(json!({})), edit("one", "1")], true),
        (vec![edit("one", "1")], false),
        (vec![edit("one", "1"), read(json!({}))], true),
        (
            vec![
                read(json!({})),
                moved("a.rs", "b.rs"),
                moved("b.rs", "a.rs"),
            ],
            true,
        ),
        (
            vec![
                read(lines(1, 1)),
                moved("a.rs", "b.rs"),
                moved("b.rs", "a.rs"),
            ],
            false,
        ),
    ] {
        let workspace = Workspace::new(&[("a.rs", &format!("one\ntwo\n{}", "more\n".repeat(20)))]);
        let mut conversation = Conversation::default();
        for (name, mut arguments, more) in calls.clone() {
            arguments
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let called = workspace.call(name, &arguments).unwrap();
            conversation = conversation.called(name, &called.response);
        }
        let delete = || {
            workspace
                .plan("delete_file", &json!({"path": "a.rs"}))
                .err()
        };
        let refused = (!is_deleted).then(|| UNREAD.to_owned());
        assert_eq!(delete(), refused, "in the same turn: {calls:?}");
        workspace.toolbox.files.remember(&conversation.stream());
        assert_eq!(delete(), refused, "in a later turn: {calls:?}");
    }
}

#[test]
fn marks_record_the_state_of_a_file() {
    let workspace = Workspace::new(&[("a", "x"), ("seen", "y")]);
    workspace
        .call("read_file", &json!({"path": "seen"}))
        .unwrap();
    let marks = |name: &str, arguments: Value| workspace.call(name, &arguments).unwrap().marks();
    let checksum = Checksum::compute(b"y");
    assert_eq!(
        marks("move_file", json!({"path": "seen", "to": "b"})),
        [json!({"path": "b", "checksum": checksum, "from": "seen"})]
    );
    // What it never saw is not known to it under the new name either.
    assert_eq!(
        marks("move_file", json!({"path": "a", "to": "c"})),
        [json!({"path": "a", "checksum": null})]
    );
    assert_eq!(
        marks("delete_file", json!({"path": "b"})),
        [json!({"path": "b", "checksum": null})]
    );
}

#[test]
fn newest_attached_snapshot_counts_as_seen() {
    let workspace = Workspace::new(&[("a.rs", "x")]);
    let uri = format!("file://{}", workspace.path("a.rs").display());
    let first = Conversation::default().attached(uri.clone(), "old");
    let saw = |conversation: &Conversation| {
        workspace.toolbox.files.remember(&conversation.stream());
        workspace
            .plan("delete_file", &json!({"path": "a.rs"}))
            .err()
    };
    assert_eq!(saw(&first).as_deref(), Some(CHANGED));
    assert_eq!(saw(&first.attached(uri.clone(), "x")), None);
    let elsewhere = Conversation::default().attached("file:///elsewhere/a.rs".to_owned(), "old");
    assert_eq!(
        saw(&elsewhere.attached(format!("{uri}#L1-2"), "part")).as_deref(),
        Some(UNREAD)
    );
}

#[test]
fn marks_of_other_tools_do_not_count() {
    let mark = files::mark("a.rs", Checksum::compute(b"old"));
    let block = ContentBlock::Text {
        text: "old".into(),
        annotations: None,
        meta: Some(mark),
    };
    let response = ToolResponse::new([block]);
    let others = Conversation::default()
        .called("read_file", &ToolResponse::new([]))
        .called("cat", &response);
    assert_eq!(
        refusals(&others, "x"),
        [None, None, Some(UNREAD.to_owned())]
    );
    let own = Conversation::default().called("read_file", &response);
    assert!(refusals(&own, "x").iter().all(Option::is_some));
}
