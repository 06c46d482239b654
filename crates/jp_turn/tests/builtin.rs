//! jp's own tools as a turn runs them: a scripted model calls, a user agrees or is not asked.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{error::Error, fs, future, path::Path, sync::Arc};

use jp_conversation::{Event, EventKind, Stream, ToolCallResponse};
use jp_llm::{BaseUrl, Body, Client, Endpoint};
use jp_resource::Checksum;
use jp_turn::{
    Builtin, Decision, Files, Host, Outcome, PermissionRequest, Surroundings, Toolbox, Turn,
    TurnEvent, run,
};
use serde_json::{Value, json};
use testing::{Reply, Server, block_on, calling_as};

/// Agrees to everything and writes down what it was asked.
#[derive(Default)]
struct Agreeing {
    asked: Vec<PermissionRequest>,
    recorded: Vec<EventKind>,
    notices: Vec<String>,
}

impl Host for Agreeing {
    fn take(&mut self, event: TurnEvent<'_>) {
        match event {
            TurnEvent::Record(kinds) => self.recorded.extend(kinds),
            TurnEvent::Permit(request, reply) => {
                self.asked.push(request);
                reply.send(Decision::Allow).unwrap();
            }
            TurnEvent::Notice(notice) => self.notices.push(notice.to_owned()),
            _ => {}
        }
    }

    fn body(&mut self, _: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
        let (body, ()) = Body::new(|_| Ok(()))?;
        Ok(body)
    }

    fn blob(
        &mut self,
        checksum: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        match *checksum == Checksum::compute(b"damaged") {
            true => Err("read /home/jean/project/.jp/blobs/ab: it does not decompress".into()),
            false => Ok(None),
        }
    }
}

impl Agreeing {
    fn results(&self) -> Vec<&ToolCallResponse> {
        let results = self.recorded.iter().filter_map(|kind| match kind {
            EventKind::ToolCallResponse(response) => Some(response),
            _ => None,
        });
        results.collect()
    }

    fn stream(&self) -> Stream {
        let event =
            |kind: &EventKind| Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind.clone());
        Stream::from_events(self.recorded.iter().map(event).collect())
    }
}

/// Runs a turn in which the model makes these calls, one after the other; it knows what was said
/// `before`.
fn turn(root: &Path, before: &Stream, calls: &[(&str, Value)]) -> Agreeing {
    let mut replies: Vec<_> = calls
        .iter()
        .map(|(name, arguments)| calling_as("", &[("1".to_owned(), name, arguments)]))
        .collect();
    replies.push(Reply::words(&["Done."]));
    let server = Server::new(replies);
    let client = Client::new(Endpoint::new(
        "llamacpp",
        BaseUrl::parse(server.url()).unwrap(),
        "m",
    ))
    .unwrap();
    let files = Files::open(root, &[]).unwrap();
    files.remember(before);
    let tools = Builtin::ALL.map(Builtin::tool).into();
    let surroundings = Surroundings {
        root: root.to_owned(),
        ..Surroundings::default()
    };
    let toolbox = &Arc::new(Toolbox::new(tools, surroundings, files));
    let mut host = Agreeing::default();
    let turn = Turn {
        client: &client,
        toolbox,
        model: "llamacpp/m",
        check: None,
        max_rounds: Turn::MAX_ROUNDS,
    };
    let outcome = block_on(run(turn, future::pending(), &mut host));
    assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    host
}

#[test]
fn only_writers_ask_for_permission() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.rs"), "fn a() {}\n").unwrap();
    fs::write(root.path().join(".env"), "KEY=1\n").unwrap();
    let calls = [
        ("list_files", json!({})),
        ("search_files", json!({"pattern": "fn"})),
        ("read_file", json!({"path": "a.rs"})),
        ("read_file", json!({"path": ".env"})),
        (
            "edit_file",
            json!({"path": "a.rs", "old": "a()", "new": "b()"}),
        ),
        ("create_file", json!({"path": "b.rs", "content": "x\n"})),
        ("move_file", json!({"path": "b.rs", "to": "c.rs"})),
        ("delete_file", json!({"path": "c.rs"})),
    ];
    let host = turn(root.path(), &Stream::default(), &calls);
    assert!(
        host.results().iter().all(|result| !result.is_error),
        "{:?}",
        host.results()
    );
    assert_eq!(host.results().len(), calls.len());
    let asked = |request: &PermissionRequest| {
        format!(
            "{}\n{}",
            request.preview.title,
            request.preview.detail.as_deref().unwrap_or_default()
        )
    };
    insta::assert_snapshot!(host.asked.iter().map(asked).collect::<String>(), @"
    read .env
    edit a.rs
    --- a.rs
    +++ a.rs
    @@ -1 +1 @@
    -fn a() {}
    +fn b() {}
    create b.rs
    --- b.rs
    +++ b.rs
    @@ -0,0 +1 @@
    +x
    move b.rs to c.rs
    delete c.rs (2 bytes, 1 line)
    ");
    assert_eq!(
        fs::read_to_string(root.path().join("a.rs")).unwrap(),
        "fn b() {}\n"
    );
}

#[test]
fn error_for_unreadable_content_hides_its_path() {
    let root = tempfile::tempdir().unwrap();
    let uri = format!("jp://blob/{}", Checksum::compute(b"damaged"));
    let host = turn(
        root.path(),
        &Stream::default(),
        &[("read_more", json!({"uri": uri}))],
    );
    let result = serde_json::to_value(&host.results()[0].content).unwrap();
    assert_eq!(
        result[0]["text"],
        format!("{uri} could not be read: its content is missing or damaged.")
    );
    assert!(
        host.notices[0].contains("/home/jean/project/.jp/blobs/ab"),
        "{:?}",
        host.notices
    );
}

#[test]
fn file_that_changed_between_two_turns_is_not_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.rs");
    fs::write(&path, "fn a() {}\n").unwrap();
    let first = turn(
        root.path(),
        &Stream::default(),
        &[("read_file", json!({"path": "a.rs"}))],
    );
    fs::write(&path, "fn a() { mine() }\n").unwrap();
    let edit = [(
        "edit_file",
        json!({"path": "a.rs", "old": "a()", "new": "b()"}),
    )];
    let second = turn(root.path(), &first.stream(), &edit);
    assert!(second.asked.is_empty());
    let result = serde_json::to_value(&second.results()[0].content).unwrap();
    assert_eq!(
        result[0]["text"],
        "a.rs has changed since you last saw it. Read it again."
    );
    let third = turn(root.path(), &Stream::default(), &edit);
    assert_eq!(third.asked.len(), 1, "who never saw it may edit it");
    assert_eq!(fs::read_to_string(&path).unwrap(), "fn b() { mine() }\n");
}
