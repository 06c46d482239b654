//! Conversations on disk: what is written, what survives, what older versions left.

#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says why it is skipped"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use jp_conversation::{ChatRequest, ChatResponse, Delivered, Event, EventKind, ToolCallRequest};
use jp_resource::{Payload, Resource, ResourceContent};
use jp_storage::{Conversation, Located, Store, Workspace, lock::TryLock};
use testing::{assert_contains, assert_ends, assert_starts};

struct Fixture {
    _directory: tempfile::TempDir,
    root: PathBuf,
    workspace: Workspace,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap().join("my project");
    fs::create_dir_all(root.join(".jp")).unwrap();
    let workspace = Workspace::open(
        &root,
        &directory.path().join("data"),
        &directory.path().join("cache"),
    )
    .unwrap();
    Fixture {
        _directory: directory,
        root,
        workspace,
    }
}

fn event(kind: EventKind) -> Event {
    Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind)
}

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn request_with(root: &Path, content: &str) -> Event {
    let uri = jp_resource::uri::file_uri(
        root.join("src/a.rs").to_str().unwrap(),
        jp_resource::uri::PathStyle::native(),
    );
    let resource = Resource::new(
        uri.unwrap(),
        Payload::Inline(ResourceContent::Text(content.to_owned())),
    );
    let declaration = jp_conversation::Declaration::new("file:src/a.rs");
    event(EventKind::ChatRequest(ChatRequest {
        content: "look at this".into(),
        resources: vec![resource],
        delivered: vec![Delivered {
            declaration,
            resources: vec![0],
        }],
        ..ChatRequest::default()
    }))
}

fn started(store: &Store, events: Vec<Event>) -> Located {
    let mut writer = store.start(Some("A title"), now(), &[]).unwrap();
    writer.append(events, store.batch()).unwrap();
    store.find(writer.id()).unwrap().unwrap()
}

fn append(store: &Store, located: &Located, events: Vec<Event>) -> Conversation {
    let TryLock::Acquired(lock) = store.try_lock(located.id).unwrap() else {
        panic!("nobody else writes")
    };
    let conversation = store.read(located).unwrap();
    store
        .writer(&conversation, lock)
        .append(events, store.batch())
        .unwrap();
    store.read(located).unwrap()
}

fn messages(conversation: &Conversation) -> usize {
    let is_message = |event: &&Event| matches!(event.kind, EventKind::ChatResponse(_));
    conversation
        .stream
        .events()
        .iter()
        .filter(is_message)
        .count()
}

#[test]
fn writing_replaces_content_by_blobs() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let arguments = serde_json::json!({"path": fixture.root.join("b"), "text": "x"});
    let call = ToolCallRequest {
        id: "1".into(),
        name: "read".into(),
        arguments: arguments.as_object().cloned().unwrap(),
        metadata: serde_json::Map::new(),
    };
    let located = started(
        &store,
        vec![
            request_with(&fixture.root, "fn main() {}"),
            event(EventKind::ToolCallRequest(call)),
        ],
    );
    let text = fs::read_to_string(located.directory.join("events.json")).unwrap();
    assert!(
        !text.contains(fixture.root.to_str().unwrap()) && !text.contains("my%20project"),
        "{text}"
    );
    assert_contains(
        &text,
        r#""uri":"workspace:///src/a.rs","content":{"$blob":""#,
    );
    assert_contains(
        &text,
        r#""arguments":{"path":"workspace-path:///b","text":"x"}"#,
    );

    let conversation = store.read(&located).unwrap();
    let EventKind::ChatRequest(request) = &conversation.stream.events()[0].kind else {
        panic!("a request")
    };
    assert_ends(&request.resources[0].uri, "/my%20project/src/a.rs");
    let blob = request.resources[0].blob_ref();
    assert_eq!(store.blobs().read(&blob).unwrap(), b"fn main() {}");
    let EventKind::ToolCallRequest(call) = &conversation.stream.events()[1].kind else {
        panic!("a call")
    };
    assert_eq!(call.arguments, arguments.as_object().cloned().unwrap());
}

#[test]
fn next_writer_sets_only_a_torn_end_aside() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let answer = || event(EventKind::ChatResponse(ChatResponse::message("hi")));
    let located = started(&store, vec![answer(), answer()]);
    let path = located.directory.join("events.json");
    let whole = fs::read(&path).unwrap();
    for (cut, warnings) in [(whole.len() - 10, 1), (whole.len() - 3, 0), (40, 1), (1, 0)] {
        fs::write(&path, &whole[..cut]).unwrap();
        let torn = store.read(&located).unwrap();
        assert_eq!(torn.warnings.len(), warnings, "cut at {cut}");
        let kept = messages(&torn);
        let repaired = append(&store, &located, vec![answer()]);
        assert_eq!(
            (messages(&repaired), repaired.warnings.as_slice()),
            (kept + 1, &[][..]),
            "cut at {cut}"
        );
    }
    let aside = fs::read(located.directory.join("events.json.torn-1")).unwrap();
    assert!(whole.windows(aside.len()).any(|window| window == aside) && !aside.is_empty());
}

#[test]
fn missing_bracket_is_repaired_silently() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let answer = || event(EventKind::ChatResponse(ChatResponse::message("hi")));
    let located = started(&store, vec![answer()]);
    let whole = fs::read_to_string(located.events()).unwrap();
    for open in [
        whole.trim_end().trim_end_matches(']'),
        whole.trim_end_matches("\n]\n"),
        "[",
        "[\n",
    ] {
        fs::write(located.events(), open).unwrap();
        let before = store.read(&located).unwrap();
        assert_eq!(before.warnings, [""; 0], "{open}");
        let after = append(&store, &located, vec![answer()]);
        assert_eq!(messages(&after), messages(&before) + 1);
        let files = store.files_of(&located).unwrap();
        assert!(
            !files
                .iter()
                .any(|path| path.to_string_lossy().contains("torn")),
            "{files:?}"
        );
    }
}

#[test]
fn delta_without_a_time_has_the_previous_one() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let request = r#"{"timestamp":"2025-11-21 12:00:00.5","type":"chat_request","content":"x"}"#;
    let newer = r#"{"timestamp":"2026-11-22T12:00:00Z","type":"turn_start"}"#;
    for (text, expected) in [
        (
            "[\n  {\n    \"type\": \"config_delta\"\n  }\n]\n".to_owned(),
            "2026-11-21T12:00:00Z",
        ),
        (
            format!("[{{\"type\":\"config_delta\",\"inherit\":true}},{request}]"),
            "2026-11-21T12:00:00Z",
        ),
        (
            format!("[{request},{{\"type\":\"config_delta\",\"delta\":{{}}}}]"),
            "2025-11-21T12:00:00.5Z",
        ),
        (
            format!("[{newer},{newer},{newer},{{\"type\":\"config_delta\"}}]"),
            "2026-11-22T12:00:00Z",
        ),
    ] {
        fs::write(located.events(), &text).unwrap();
        let before = store.read(&located).unwrap();
        let after = append(&store, &located, vec![event(EventKind::TurnStart)]);
        for conversation in [before, after] {
            let mut events = conversation.stream.events().iter();
            let delta = events
                .find(|event| matches!(event.kind, EventKind::ConfigDelta(_)))
                .unwrap();
            assert_eq!(
                (delta.timestamp.to_string().as_str(), &conversation.warnings),
                (expected, &vec![]),
                "{text}"
            );
        }
    }
}

#[test]
fn whole_messages_of_an_older_version_become_events() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let time = "2025-07-30 10:00:00.5";
    let older = serde_json::json!([
        {"type": "config_delta"},
        {"timestamp": time, "type": "user_message", "message": "Why?"},
        {"timestamp": time, "type": "assistant_message", "content": "I look.", "tool_calls": [{"id": "1", "name": "f", "arguments": {"path": "abcd"}}]},
        {"timestamp": time, "type": "user_message", "message": [{"id": "1", "content": "nothing", "error": false}]},
        {"timestamp": time, "type": "assistant_message", "reasoning": "So", "content": "Because."},
    ]);
    fs::write(located.events(), older.to_string()).unwrap();
    let before = store.read(&located).unwrap();
    let after = append(&store, &located, vec![event(EventKind::TurnStart)]);
    let kinds = |conversation: &Conversation| -> Vec<String> {
        let kind = |event: &Event| {
            let event: serde_json::Value = serde_json::from_str(&event.to_json().unwrap()).unwrap();
            format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["content"].as_str().unwrap_or_default()
            )
        };
        conversation.stream.events().iter().map(kind).collect()
    };
    let expected = [
        "config_delta ",
        "chat_request Why?",
        "chat_response ",
        "tool_call_request ",
        "tool_call_response ",
        "chat_response ",
        "chat_response ",
    ];
    assert_eq!(kinds(&before), expected);
    assert_eq!(kinds(&after)[..expected.len()], expected);
    assert_eq!((before.stream.turns().len(), &after.warnings), (1, &vec![]));
    let EventKind::ToolCallRequest(call) = &after.stream.events()[3].kind else {
        panic!("a call")
    };
    assert_eq!(call.arguments["path"], "abcd");
    fs::write(located.events(), older.to_string()).unwrap();
    assert_eq!(
        fixture.workspace.index().summary(&store, &located).turns,
        Some(1)
    );
}

#[test]
fn damaged_file_is_left_alone() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let path = located.directory.join("events.json");
    for (text, place) in [
        (
            "[\n{\"a\":1}\n{\"b\":2}\n]\n",
            "expected `,` or `]` at line 3, column 1",
        ),
        (
            "[\n{\"timestamp\":\"2026-11-21T12:00:00Z\",\"type\":\"chat_request\",\"content\":7}\n]\n",
            "invalid type: integer `7`, expected a string at line 2, column 69",
        ),
        (
            "[\n{\"timestamp\":\"noon\",\"type\":\"turn_start\"}\n]\n",
            "at line 2, column 1",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let error = store.read(&located).unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(reason.ends_with(place), "{reason}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

/// A time edited by hand, or a merge of an older file and a newer one.
#[test]
fn older_event_among_newer_ones_changes_no_place() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(
        &store,
        vec![
            event(EventKind::TurnStart),
            request_with(&fixture.root, "x"),
            request_with(&fixture.root, "y"),
        ],
    );
    let path = located.directory.join("events.json");
    let written = fs::read_to_string(&path).unwrap();
    let places = |text: &str| text.matches("\"workspace:///src/a.rs\"").count();
    assert_eq!(places(&written), 2, "{written}");
    let lines: Vec<&str> = written.lines().collect();
    for line in [1, 2] {
        let mut lines = lines.clone();
        let edited = lines[line].replace("2026-11-21T12:00:00Z", "2026-11-21 12:00:00.5");
        lines[line] = &edited;
        fs::write(&path, lines.join("\n")).unwrap();
        let before = store.read(&located).unwrap();
        let after = append(&store, &located, vec![event(EventKind::TurnStart)]);
        for conversation in [before, after] {
            let EventKind::ChatRequest(request) = &conversation.stream.events()[1].kind else {
                panic!("it is")
            };
            assert_starts(&request.resources[0].uri, "file:///");
        }
        assert_eq!(places(&fs::read_to_string(&path).unwrap()), 2);
    }
}

#[test]
fn marker_in_an_older_conversation_is_text() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let older = r#"{"timestamp":"2025-11-21 12:00:00.5","type":"tool_call_request","id":"1","name":"read","arguments":{"path":"workspace:///x"}}"#;
    fs::write(located.events(), format!("[\n{older}\n]\n")).unwrap();
    let before = store.read(&located).unwrap();
    let after = append(&store, &located, vec![event(EventKind::TurnStart)]);
    for conversation in [before, after] {
        let EventKind::ToolCallRequest(call) = &conversation.stream.events()[0].kind else {
            panic!("a call")
        };
        assert_eq!(call.arguments["path"], "workspace:///x");
    }
}

#[test]
fn unreadable_names_of_content_are_an_error() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let unreadable =
        r#"{"timestamp":"2026-11-21T12:00:00Z","type":"new","x":"\ud83d","y":{"$blob":{}}}"#;
    fs::write(located.events(), format!("[\n{unreadable}\n]\n")).unwrap();
    assert_eq!(store.read(&located).unwrap().stream.events().len(), 1);
    assert!(store.blobs_of(&located).is_err());
}

#[cfg(unix)]
#[test]
fn events_that_are_a_pipe_are_an_error() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    fs::remove_file(located.events()).unwrap();
    make_pipe(&located.events());
    let reason =
        |error: jp_storage::ReadError| std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        reason(store.read(&located).unwrap_err()),
        "it is a named pipe, not a regular file"
    );
    fs::remove_file(located.events()).unwrap();
    fs::create_dir(located.events()).unwrap();
    assert!(store.read(&located).is_err());
}

#[cfg(unix)]
#[test]
fn workspace_with_a_pipe_opens_without_waiting() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    for path in [located.events(), located.directory.join("metadata.json")] {
        fs::remove_file(&path).unwrap();
        make_pipe(&path);
    }
    let summary = fixture.workspace.index().summary(&store, &located);
    assert_eq!((summary.title, summary.turns), (None, None));
    make_pipe(&fixture.root.join(".jp/.id"));
    let (data, cache) = (fixture.root.join("data"), fixture.root.join("cache"));
    assert!(
        Workspace::open(&fixture.root, &data, &cache)
            .unwrap()
            .id()
            .starts_with("path-")
    );
}

#[cfg(unix)]
fn make_pipe(path: &Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn unknown_parts_survive_an_append() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let path = located.directory.join("events.json");
    let text = "[\n{\"timestamp\":\"2026-11-21T12:00:00Z\",\"type\":\"turn_start\",\"mood\":\"good\"},\n{\"timestamp\":\"2026-11-21T12:00:00Z\",\"type\":\"new\",\"x\":1.0}\n]\n";
    fs::write(&path, text).unwrap();
    append(&store, &located, vec![event(EventKind::TurnStart)]);
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(text.trim_end_matches("\n]\n")), "{after}");
}

#[test]
fn text_without_a_marker_stays_unchanged() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let path = located.directory.join("events.json");
    let call = r#"{"timestamp":"2026-11-21T12:00:00Z","type":"tool_call_request","id":"1","name":"x","arguments":{"a":"use workspace::Foo; jp_workspace:///x"}}"#;
    fs::write(&path, format!("[\n{call}\n]\n")).unwrap();
    let conversation = append(&store, &located, vec![event(EventKind::TurnStart)]);
    assert_eq!(conversation.stream.events()[0].to_json().unwrap(), call);
}

#[test]
fn concurrent_conversations_have_different_ids() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let first = store.start(None, now(), &[]).unwrap();
    let second = store.start(None, now(), &[]).unwrap();
    assert_ne!(first.id(), second.id());
}

#[test]
fn failed_append_leaves_the_file_unchanged() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let before = fs::read(located.directory.join("events.json")).unwrap();
    let TryLock::Acquired(lock) = store.try_lock(located.id).unwrap() else {
        panic!("nobody else writes")
    };
    let mut writer = store.writer(&store.read(&located).unwrap(), lock);
    // A file where a blob's directory would be: content can't be stored.
    fs::write(fixture.root.join(".jp/blobs"), "in the way").unwrap();
    let error = writer
        .append(vec![request_with(&fixture.root, "x")], store.batch())
        .unwrap_err();
    assert!(error.to_string().contains("blobs"), "{error}");
    assert_eq!(
        fs::read(located.directory.join("events.json")).unwrap(),
        before
    );
}

#[test]
fn new_conversation_gets_its_place_after_its_content() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    for is_lost in [false, true] {
        let mut writer = store.start(None, now(), &[]).unwrap();
        let content = format!("content of {is_lost}");
        let request = request_with(&fixture.root, &content);
        let (events, pending) = writer.write(vec![request], store.batch()).unwrap();
        let blob = events[0].blobs()[0];
        assert_eq!(store.blobs().read(&blob).unwrap(), content.as_bytes());
        assert_eq!(store.find(writer.id()).unwrap(), None, "it is not durable");
        if is_lost {
            fs::remove_dir_all(store.blobs().path(&blob.checksum).parent().unwrap()).unwrap();
            let error = pending.finish().unwrap_err();
            assert!(error.to_string().contains("blobs"), "{error}");
        } else {
            pending.finish().unwrap();
            assert_eq!(store.blobs().read(&blob).unwrap(), content.as_bytes());
        }
        assert_eq!(store.find(writer.id()).unwrap().is_some(), !is_lost);
    }
}

fn older() -> Option<PathBuf> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/jp-conversations");
    if directory.is_dir() {
        return Some(directory);
    }
    eprintln!("skipped: {} is not there", directory.display());
    None
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::write(to.join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
    }
}

#[test]
fn rewriting_an_older_conversation_loses_nothing() {
    let Some(source) = older() else { return };
    let fixture = fixture();
    let store = fixture.workspace.store();
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        copy(
            &entry.path(),
            &fixture
                .root
                .join(".jp/conversations")
                .join(entry.file_name()),
        );
    }
    let conversations = store.list().unwrap();
    assert!(conversations.len() >= 5);
    for located in conversations {
        let before = store.read(&located).unwrap();
        assert!(before.metadata.title().is_some() && !before.stream.turns().is_empty());
        let after = append(&store, &located, vec![event(EventKind::TurnStart)]);
        assert_eq!(after.warnings, Vec::<String>::new());
        let count = before.stream.events().len();
        assert_eq!(after.stream.events().len(), count + 1);
        for (old, new) in before.stream.events().iter().zip(after.stream.events()) {
            assert_eq!(old.timestamp, new.timestamp);
            assert_eq!(without_payloads(old), without_payloads(new));
        }
        for blob in store.blobs_of(&located).unwrap() {
            store.blobs().read(&blob).unwrap();
        }
        let text = fs::read_to_string(located.directory.join("events.json")).unwrap();
        assert!(!text.contains("answer_type") && text.lines().count() == count + 3);
    }
}

#[test]
fn messages_of_the_first_versions_become_events_with_the_first_write() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let directory = fixture.root.join(".jp/conversations/17462040864");
    fs::create_dir_all(&directory).unwrap();
    let reply = |content: &str| serde_json::json!({"provider": "anthropic", "content": content});
    let messages = serde_json::json!([
        {"timestamp": "2025-05-02 16:43:28.835976", "message": "What next?", "reply": reply("This.")},
        {"timestamp": "2025-05-02 16:58:34.946924", "message": "Show me", "reply": reply("A diff.")},
    ]);
    let messages = serde_json::to_string_pretty(&messages).unwrap();
    fs::write(directory.join("messages.json"), &messages).unwrap();
    fs::write(
        directory.join("metadata.json"),
        r#"{"last_activated_at":"2025-05-02 16:41:26.4"}"#,
    )
    .unwrap();
    let located = store.list().unwrap().remove(0);
    assert_eq!(
        fixture.workspace.index().summary(&store, &located).turns,
        Some(2)
    );
    let before = store.read(&located).unwrap();
    assert_eq!(
        (before.stream.turns().len(), before.stream.events().len()),
        (2, 4)
    );
    let after = append(&store, &located, vec![event(EventKind::TurnStart)]);
    assert_eq!((after.stream.events().len(), &after.warnings), (5, &vec![]));
    assert!(
        fs::read_to_string(located.events())
            .unwrap()
            .contains(r#""provider":"anthropic""#)
    );
    assert_eq!(
        fs::read_to_string(directory.join("messages.json")).unwrap(),
        messages,
        "it is left alone"
    );
}

#[test]
fn archived_conversation_is_found_by_its_id() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(&store, vec![event(EventKind::TurnStart)]);
    let archive = store.conversations().join(".archive");
    fs::create_dir(&archive).unwrap();
    fs::rename(
        &located.directory,
        archive.join(located.directory.file_name().unwrap()),
    )
    .unwrap();
    assert_eq!(store.list().unwrap(), []);
    let found = store.find(located.id).unwrap().unwrap();
    assert_eq!(store.list_archived().unwrap(), std::slice::from_ref(&found));
    assert!(found.is_archived() && !located.is_archived());
    assert_eq!(store.read(&found).unwrap().stream.events().len(), 1);
    assert_ne!(
        store.start(None, now(), &[]).unwrap().id(),
        located.id,
        "its id is taken"
    );
}

#[test]
fn index_of_an_older_version_is_rebuilt() {
    let fixture = fixture();
    let store = fixture.workspace.store();
    let located = started(
        &store,
        vec![event(EventKind::ChatRequest(ChatRequest::new("go")))],
    );
    let mut index = fixture.workspace.index();
    assert_eq!(index.summary(&store, &located).turns, Some(1));
    index.save(std::slice::from_ref(&located)).unwrap();
    let cache = fixture
        .root
        .parent()
        .unwrap()
        .join("cache/workspaces")
        .join(fixture.workspace.id());
    let mut saved: serde_json::Value =
        serde_json::from_slice(&fs::read(cache.join("index.json")).unwrap()).unwrap();
    for entry in saved.as_object_mut().unwrap().values_mut() {
        entry["state"].as_array_mut().unwrap().truncate(4);
        entry["summary"]["turns"] = serde_json::Value::Null;
    }
    fs::write(cache.join("index.json"), saved.to_string()).unwrap();
    assert_eq!(
        fixture.workspace.index().summary(&store, &located).turns,
        Some(1)
    );
}

/// An event's JSON with inline content replaced by the reference it gets in a store.
fn without_payloads(event: &Event) -> String {
    let mut event = event.clone();
    let name = |bytes: &[u8], encoding| {
        Ok::<_, std::convert::Infallible>(jp_resource::BlobRef::for_content(bytes, encoding))
    };
    event.store_payloads(name).unwrap();
    event.to_json().unwrap()
}
