//! Queries without a terminal: a session, a scripted user, and a model on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use jp_session::{
    ErrorKind, Interrupt, Notice, Options, Person, Session, SessionError, Surroundings,
    person::{Answer, Question, Shown},
    query::{self, QueryRequest, Recipient},
};
use jp_turn::Decision;
use serde_json::json;
use testing::{Sandbox, answer, calling, playing, results};

/// A scripted user: gives every call the same permission, and logs the session's questions and output.
#[derive(Debug, Default)]
struct Script {
    /// The permission for each call; without one, no one can be asked.
    permission: Option<Decision>,
    log: Mutex<Vec<String>>,
}

impl Script {
    fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Person for Script {
    fn ask(&self, question: Question<'_>) -> Option<Answer> {
        let permission = self.permission.clone()?;
        Some(match question {
            Question::Presence => Answer::Yes,
            Question::Permission { request, .. } => {
                self.note(format!("asked for {}", request.tool));
                Answer::Decision(permission)
            }
            _ => Answer::Nothing,
        })
    }

    fn tell(&self, notice: Notice) {
        self.note(format!("told {notice:?}"));
    }

    fn show(&self, shown: Shown<'_>) -> Result<(), SessionError> {
        match shown {
            Shown::Text(text) => self.note(format!("text {text}")),
            Shown::Call { request, .. } => self.note(format!("called {}", request.name)),
            Shown::End => self.note("end".to_owned()),
            _ => {}
        }
        Ok(())
    }
}

fn open(sandbox: &Sandbox, person: &Arc<Script>, interrupt: Interrupt) -> Session {
    let below = |path: &str| sandbox.path(&format!("~/{path}"));
    let surroundings = Surroundings {
        current_dir: sandbox.path(""),
        home: Some(below("")),
        config: Some(below(".config")),
        data: below(".local/share/jp"),
        cache: below(".cache/jp"),
        bear_database: None,
        displays: jp_attachment::Displays::default(),
        executable: "jp".into(),
        secret_variables: Vec::new(),
        terminal_session: None,
    };
    let person: Arc<dyn Person> = Arc::clone(person) as _;
    let listen = Box::new(move || interrupt.clone());
    let session = Session::open(Options::default(), surroundings, person, listen).unwrap();
    session.with_clock(|| Timestamp::from_second(1_800_000_000).unwrap())
}

fn session(sandbox: &Sandbox, person: &Arc<Script>) -> Session {
    open(sandbox, person, Interrupt::new().0)
}

fn words(words: &str) -> QueryRequest {
    QueryRequest {
        words: words.to_owned(),
        ..QueryRequest::default()
    }
}

#[test]
fn answer_is_shown_as_it_arrives() {
    let (sandbox, _server) = Sandbox::with_answer("It is a fox.");
    let person = Arc::new(Script::default());
    let session = session(&sandbox, &person);
    let report = query::run(&session, words("What is it?")).unwrap();
    assert_eq!(report.answer(), "It is a fox.");
    assert_eq!((report.turn(), report.model()), (1, "llamacpp/m"));
    assert_eq!(person.log(), ["text It is a fox.", "end"]);
    assert_eq!(report.into_answered().unwrap(), None);
}

#[test]
fn answer_is_recorded_at_the_time_of_the_sessions_clock() {
    let (sandbox, _server) = Sandbox::with_answer("It is a fox.");
    let session = session(&sandbox, &Arc::default());
    query::run(&session, words("What is it?")).unwrap();
    let events = sandbox.events();
    let last = events.iter().find(|event| event["type"] == "chat_response");
    assert_eq!(last.unwrap()["message"], "It is a fox.");
    assert!(
        events
            .iter()
            .all(|event| event["timestamp"].to_string().contains("2027-01-15")),
        "{events:?}"
    );
}

#[test]
fn second_query_continues_the_conversation() {
    let (sandbox, _server) = Sandbox::with_answer("It is a fox.");
    let session = session(&sandbox, &Arc::default());
    let report = query::run(&session, words("What is it?")).unwrap();
    let again = QueryRequest {
        to: Recipient::Existing(report.conversation().unwrap().to_owned()),
        ..words("And now?")
    };
    assert_eq!(query::run(&session, again).unwrap().turn(), 2);
}

#[test]
fn call_is_refused_without_anyone_to_ask() {
    let (report_refused, files) = call_with(None);
    assert!(report_refused);
    assert_eq!(files, 0);
}

#[test]
fn call_runs_if_the_user_allows_it() {
    let (report_refused, files) = call_with(Some(Decision::Allow));
    assert!(!report_refused);
    assert_eq!(files, 1);
}

/// Plays a model that creates a file. Returns whether jp refused the call without asking, and the number of files.
fn call_with(permission: Option<Decision>) -> (bool, usize) {
    let call = ("create_file", json!({"path": "a.txt", "content": "fox"}));
    let server = playing(vec![calling(&[call]), answer("Done.")]);
    let sandbox = Sandbox::new().with_server(&server);
    let is_asked = permission.is_some();
    let person = Arc::new(Script {
        permission,
        ..Script::default()
    });
    let session = session(&sandbox, &person);
    let request = QueryRequest {
        tool: vec!["create_file".to_owned()],
        ..words("Write it.")
    };
    let report = query::run(&session, request).unwrap();
    assert_eq!(report.answer(), "Done.");
    assert_eq!(results(&server).len(), 1);
    let asked = person.log().contains(&"asked for create_file".to_owned());
    assert_eq!(asked, is_asked, "{:?}", person.log());
    let is_there = sandbox.path("a.txt").exists();
    (report.has_refusal_unasked(), usize::from(is_there))
}

#[test]
fn interrupted_query_keeps_the_message() {
    let (sandbox, server) = Sandbox::with_answer("Never.");
    let (interrupt, trigger) = Interrupt::new();
    trigger.fire();
    let session = open(&sandbox, &Arc::default(), interrupt);
    let error = query::run(&session, words("Well?"))
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
    assert!(error.hints[0].contains("the message is kept"), "{error}");
    assert_eq!(server.received().len(), 0);
    let events = sandbox.events();
    assert!(events.iter().any(|event| event["type"] == "chat_request"));
}

#[test]
fn explained_query_only_describes_the_request() {
    let (sandbox, server) = Sandbox::with_answer("Never.");
    sandbox.write("a.txt", "fox\n");
    let session = session(&sandbox, &Arc::default());
    let request = QueryRequest {
        attach: vec!["a.txt".to_owned()],
        ..words("What is it?")
    };
    let explained = query::explain(&session, request).unwrap();
    let blocks = explained
        .explanation
        .turns
        .iter()
        .flat_map(|turn| &turn.blocks);
    let uris: Vec<_> = blocks.filter_map(|block| block.uri.as_deref()).collect();
    assert_eq!(uris.len(), 1, "{uris:?}");
    assert!(explained.explanation.request.get().contains("fox"));
    assert_eq!(server.received().len(), 0);
    assert!(session.conversations().unwrap().is_empty());
}

#[test]
fn budget_that_is_too_small_refuses_before_anything_is_stored() {
    let (sandbox, _server) = Sandbox::with_answer("Never.");
    let session = session(&sandbox, &Arc::default());
    let request = QueryRequest {
        budget: Some(1),
        ..words("What is it?")
    };
    let error = query::run(&session, request).map(|_| ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(session.conversations().unwrap().is_empty());
}
