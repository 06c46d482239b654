//! Notes to the model about attached sources that have changed (`refresh = "notify"`).

use std::{
    fs,
    process::Command,
    sync::{Arc, Mutex},
};

use jp_resource::Checksum;
use serde_json::{Value, json};
use testing::{
    Reply, Run, Sandbox, Server, answer, answering, assert_contains, assert_count, assert_fields,
    assert_lacks, calling, column, items, last_message, last_request, playing,
};

/// Declares files in the workspace's configuration; jp tells the model when they change.
fn watching(server: &Server, paths: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new().with_server(server);
    let table = |path: &&str| format!("{{ type = 'file', path = '{path}', refresh = 'notify' }}");
    declare(
        &sandbox,
        &paths.iter().map(table).collect::<Vec<_>>().join(", "),
    );
    sandbox
}

fn declare(sandbox: &Sandbox, tables: &str) {
    let path = sandbox.path(".jp/config.toml");
    let before = fs::read_to_string(&path).unwrap();
    fs::write(
        path,
        format!("{before}\n[conversation]\nattachments = [{tables}]\n"),
    )
    .unwrap();
}

fn asked(sandbox: &Sandbox, words: &str) -> Run {
    sandbox.run(&["q", words])
}

fn notifications(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.events_of("notification")
}

/// Returns the URI that a model is shown of a file.
fn uri(sandbox: &Sandbox, name: &str) -> String {
    format!("file://{}/{name}", testing::shown(&sandbox.root))
}

#[test]
fn each_new_state_of_a_file_is_announced_once() {
    let server = answering("Yes.");
    let sandbox = watching(&server, &["README.md"]);
    sandbox.write("README.md", "a");
    asked(&sandbox, "one");
    asked(&sandbox, "two");
    assert_eq!(last_message(&server), "two");

    sandbox.write("README.md", "b");
    let run = asked(&sandbox, "three");
    assert_contains(
        &run.stderr,
        "README.md has changed since turn 1; jp tells the model.",
    );
    let told = last_message(&server);
    assert_eq!(
        told,
        format!(
            "three\n\nNote by jp: README.md ({}) has changed since it was attached in turn 1. The content above is out of date.",
            uri(&sandbox, "README.md")
        )
    );
    let kinds = column(&sandbox.events(), "type");
    let place = kinds
        .iter()
        .position(|kind| kind == "notification")
        .unwrap();
    assert_eq!(
        (&kinds[place - 1], &kinds[place + 1]),
        (&json!("turn_start"), &json!("chat_request"))
    );
    let event = &notifications(&sandbox)[0];
    assert_fields!(event, {"uri": "workspace:///README.md", "checksum": Checksum::compute(b"a")});
    assert_eq!(event["now"], json!(Checksum::compute(b"b")));

    let run = asked(&sandbox, "four");
    assert_eq!(last_message(&server), "four");
    assert_lacks(&run.stderr, "jp tells the model");
    let history = last_request(&server)["messages"].clone();
    assert!(
        items(&history)
            .iter()
            .any(|message| message["content"] == json!(told)),
        "{history}"
    );

    sandbox.write("README.md", "a");
    let run = asked(&sandbox, "five");
    assert_contains(
        last_message(&server),
        "is back to the version that was attached in turn 1.",
    );
    assert_contains(&run.stderr, "README.md is the same as in turn 1 again");

    fs::remove_file(sandbox.path("README.md")).unwrap();
    let run = asked(&sandbox, "six");
    assert_contains(last_message(&server), "no longer exists at its source");
    assert_contains(&run.stderr, "README.md is gone; jp tells the model.");
    assert_eq!(notifications(&sandbox)[2]["now"], Value::Null);
    asked(&sandbox, "seven");
    assert_eq!(last_message(&server), "seven");
}

#[test]
fn nothing_is_told_without_the_setting() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    declare(
        &sandbox,
        "'file:a.txt', { type = 'file', path = 'b.txt', refresh = 'manual' }",
    );
    sandbox.write("a.txt", "a");
    sandbox.write("b.txt", "b");
    asked(&sandbox, "one");
    sandbox.write("a.txt", "a2");
    sandbox.write("b.txt", "b2");
    asked(&sandbox, "two");
    assert_eq!(last_message(&server), "two");
}

#[test]
fn file_that_the_message_attaches_anew_is_not_told_of() {
    let server = answering("Yes.");
    let sandbox = watching(&server, &["README.md"]);
    sandbox.write("README.md", "a");
    asked(&sandbox, "one");
    sandbox.write("README.md", "b");
    sandbox.run("q -a README.md two");
    assert_lacks(last_message(&server), "Note by jp");
    sandbox.write("README.md", "c");
    asked(&sandbox, "three");
    assert_contains(last_message(&server), "attached in turn 2.");
}

#[test]
fn message_that_is_sent_again_is_the_same() {
    let refused = Reply::json(400, r#"{"error":{"message":"no"}}"#);
    let server = playing(vec![answer("Yes."), refused, answer("Yes.")]);
    let sandbox = watching(&server, &["README.md"]);
    sandbox.write("README.md", "a");
    asked(&sandbox, "one");
    assert_ne!(sandbox.jp("q two").code, 0);
    sandbox.write("README.md", "b");
    sandbox.run("q");
    assert_eq!(last_message(&server), "two");
    assert_eq!(notifications(&sandbox), Vec::<Value>::new());
}

#[test]
fn changes_of_many_files_are_announced_in_parts() {
    let server = answering("Yes.");
    let sandbox = watching(&server, &["src/"]);
    let name = |index: usize| format!("src/{index:02}.txt");
    (0..53).for_each(|index| _ = sandbox.write(&name(index), "a"));
    asked(&sandbox, "one");
    (0..52).for_each(|index| _ = sandbox.write(&name(index), "b"));
    sandbox.write("src/new.txt", "never attached");
    let run = asked(&sandbox, "two");
    let told = |message: String| {
        message
            .lines()
            .filter(|line| line.starts_with("Note by jp"))
            .count()
    };
    assert_eq!(told(last_message(&server)), 50);
    assert_contains(
        &run.stderr,
        "50 attached resources have changed (src/00.txt, ",
    );
    assert_contains(&run.stderr, "2 more have changed");
    asked(&sandbox, "three");
    assert_eq!(told(last_message(&server)), 2);
    asked(&sandbox, "four");
    assert_eq!(last_message(&server), "four");
}

#[test]
fn file_whose_state_is_known_is_not_read() {
    let server = answering("Yes.");
    let sandbox = watching(&server, &["README.md"]);
    sandbox.write("README.md", "a");
    asked(&sandbox, "one");
    let (own, others) = (
        Checksum::compute(b"a").to_string(),
        Checksum::compute(b"what was never there").to_string(),
    );
    // A file is remembered once it has not been written to for a moment.
    let remembered = (0..100).find_map(|_| {
        asked(&sandbox, "again");
        sandbox.file_states().filter(|lines| lines.contains(&own))
    });
    let remembered = remembered.expect("the state of a file is remembered");
    assert!(notifications(&sandbox).is_empty());
    sandbox.write_file_states(&remembered.replace(&own, &others));
    asked(&sandbox, "two");
    assert_eq!(
        notifications(&sandbox)[0]["now"],
        json!(others),
        "what the cache says is believed"
    );
}

#[test]
fn what_the_model_changed_or_read_itself_it_is_not_told() {
    let edit = json!({"path": "a.txt", "old": "one", "new": "two"});
    let server = playing(vec![
        answer("Yes."),
        calling(&[("edit_file", edit)]),
        answer("Done."),
        answer("Yes."),
        calling(&[("read_file", json!({"path": "b.txt"}))]),
        answer("Done."),
        answer("Yes."),
    ]);
    let sandbox = watching(&server, &["a.txt", "b.txt"]);
    sandbox.configure("conversation.tools.edit_file = { enable = true, run = 'unattended' }");
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "one\n");
    asked(&sandbox, "one");
    asked(&sandbox, "edit it");
    assert_eq!(sandbox.read("a.txt"), "two\n");
    sandbox.write("b.txt", "two\n");
    asked(&sandbox, "three");
    let message = last_message(&server);
    assert_lacks(&message, "a.txt");
    assert_contains(&message, "b.txt");

    asked(&sandbox, "read it");
    sandbox.write("b.txt", "three\n");
    asked(&sandbox, "five");
    let message = last_message(&server);
    assert_contains(&message, "has changed since it was read in turn 4.");
}

#[test]
fn what_the_model_deleted_moved_or_created_itself_it_is_not_told() {
    let server = playing(vec![
        answer("Yes."),
        calling(&[
            ("delete_file", json!({"path": "gone.txt"})),
            ("move_file", json!({"path": "from.txt", "to": "to.txt"})),
            ("delete_file", json!({"path": "anew.txt"})),
            (
                "create_file",
                json!({"path": "anew.txt", "content": "two\n"}),
            ),
            (
                "edit_file",
                json!({"path": "edited.txt", "old": "one\n", "new": ""}),
            ),
        ]),
        answer("Done."),
        answer("Yes."),
        answer("Yes."),
    ]);
    let files = ["gone.txt", "from.txt", "anew.txt", "edited.txt"];
    let sandbox = watching(&server, &files);
    let unattended = |tool: &str| {
        format!("conversation.tools.{tool} = {{ enable = true, run = 'unattended' }}\n")
    };
    sandbox.configure(
        ["delete_file", "move_file", "create_file", "edit_file"]
            .map(unattended)
            .concat(),
    );
    files
        .iter()
        .for_each(|file| _ = sandbox.write(file, "one\n"));
    asked(&sandbox, "one");
    asked(&sandbox, "do it");
    assert!(sandbox.path("to.txt").exists() && !sandbox.path("gone.txt").exists());
    assert_eq!(sandbox.read("anew.txt"), "two\n");
    assert_eq!(sandbox.read("edited.txt"), "");
    asked(&sandbox, "three");
    assert_eq!(last_message(&server), "three");

    files
        .iter()
        .for_each(|file| _ = sandbox.write(file, "three\n"));
    asked(&sandbox, "four");
    let message = last_message(&server);
    assert!(
        files
            .iter()
            .all(|file| message.contains(&format!("{file} ("))),
        "{message}"
    );
}

#[test]
fn what_no_message_took_yet_is_not_told_of() {
    let server = answering("Yes.");
    let sandbox = watching(&server, &["src/"]);
    sandbox.write("src/a.txt", "a");
    asked(&sandbox, "hello");
    sandbox.write("src/b.txt", "1\n2\n3\n");
    sandbox.run("resource refresh src/");
    fs::remove_file(sandbox.path("src/b.txt")).unwrap();
    sandbox.run("attachment add src/");
    asked(&sandbox, "again");
    assert_lacks(last_message(&server), "Note by jp");
    assert_eq!(notifications(&sandbox), Vec::<Value>::new());
}

#[test]
fn malformed_name_of_a_snapshot_is_refused() {
    let server = answering("Yes.");
    for table in [
        "{ type = 'file', path = '~/outside.txt', refresh = 'notify' }",
        "{ type = 'external', path = '00/notes.md', refresh = 'notify' }",
        "{ type = 'clip', path = '', refresh = 'notify' }",
        "{ type = 'stdin', path = '', refresh = 'notify' }",
    ] {
        let sandbox = Sandbox::new().with_server(&server);
        sandbox.write("~/outside.txt", "x");
        sandbox.configure(format!(
            "conversation.attachments = ['file:a.txt', {table}]"
        ));
        sandbox.write("a.txt", "a");
        let hint = "remove `refresh` or set it to";
        let run = sandbox
            .fail("q one", 1)
            .says(["refresh = \"notify\"", "config.toml", hint]);
        let (scheme, name) = (
            table.split('\'').nth(1).unwrap(),
            table.split('\'').nth(3).unwrap(),
        );
        assert!(
            run.stderr.contains(scheme) && run.stderr.contains(name),
            "{table}: {}",
            run.stderr
        );
    }
}

#[test]
fn program_runs_again_only_with_approval() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    // jp asks about a file that the line names, but not about one that a pattern finds.
    let table = r#"{ type = "cmd", path = "sh", params = { arg = ["-c", "echo >> runs; cat stat?"] }, refresh = "notify" }"#;
    declare(&sandbox, table);
    let runs = || sandbox.read("runs").len();
    sandbox.write("state", "a");
    sandbox.run("q --new --yes one");
    sandbox.write("state", "b");
    let run = asked(&sandbox, "two");
    assert_eq!((runs(), last_message(&server)), (1, "two".to_owned()));
    assert_count(&run.stderr, "can't tell whether", 1);
    assert_contains(&run.stderr, "you have not attached it yourself");

    sandbox.run("q --yes three");
    assert_eq!(runs(), 2);
    assert_contains(
        last_message(&server),
        "has changed since it was attached in turn 1.",
    );

    fs::remove_file(sandbox.path(".jp/config.toml")).unwrap();
    let sandbox = sandbox.with_server(&server);
    sandbox.configure(format!("conversation.attachments = [{table}]"));
    sandbox.write("state", "c");
    asked(&sandbox, "four");
    // It is in the user's own file.
    assert_contains(last_message(&server), "has changed since");
}

#[test]
fn page_that_cannot_be_compared_is_a_warning() {
    let server = answering("Yes.");
    let page = Arc::new(Mutex::new(Reply::with_headers(
        200,
        "content-type: text/plain\r\n",
        "a",
    )));
    let shown = Arc::clone(&page);
    let site = Server::scripted(move |_, _| shown.lock().unwrap().clone());
    let sandbox = Sandbox::new().with_server(&server);
    let host = site.url().strip_prefix("http://").unwrap();
    let table = format!("{{ type = 'http', path = '{host}/doc', refresh = 'notify' }}");
    sandbox.configure(format!("conversation.attachments = [{table}]"));
    let shows = |reply: Reply| *page.lock().unwrap() = reply;
    asked(&sandbox, "one");
    asked(&sandbox, "two");
    assert_eq!(
        (site.received().len(), last_message(&server)),
        (2, "two".to_owned())
    );

    shows(Reply::with_headers(
        200,
        "content-type: text/plain\r\n",
        "b",
    ));
    asked(&sandbox, "three");
    assert_contains(last_message(&server), "/doc has changed since");

    shows(Reply::json(503, "{}"));
    let run = asked(&sandbox, "four");
    assert_eq!(last_message(&server), "four");
    assert_contains(&run.stderr, "can't tell whether");
    assert_contains(&run.stderr, "503");

    shows(Reply::json(404, "{}"));
    asked(&sandbox, "five");
    assert_contains(last_message(&server), "no longer exists at its source");
}

#[test]
fn clone_at_another_path_compares_only_files() {
    let server = answering("Yes.");
    let site = Server::new(vec![Reply::with_headers(
        200,
        "content-type: text/plain\r\n",
        "a",
    )]);
    let sandbox = watching(&server, &["README.md"]);
    sandbox.write("README.md", "a");
    let page = format!("{}/doc", site.url());
    let program = "cmd:sh -c 'echo >> ../runs'";
    sandbox.run(&["q", "--new", "-a", &page, "-a", program, "one"]);
    // A history may say so as well.
    let events = sandbox.events_path();
    let url = page.strip_prefix("http://").unwrap();
    let text = fs::read_to_string(&events).unwrap();
    let table = json!({"type": "http", "path": url, "refresh": "notify"});
    let cmd = json!({"type": "cmd", "path": "sh", "params": {"arg": ["-c", "echo >> ../runs"]}, "refresh": "notify"});
    let delta = json!({
        "timestamp": "2026-11-21T12:00:00Z",
        "type": "config_delta",
        "delta": {"conversation": {"attachments": {"add": [table, cmd]}}},
    });
    fs::write(
        &events,
        format!(
            "[\n{delta},\n{}",
            text.trim_start().strip_prefix('[').unwrap()
        ),
    )
    .unwrap();

    let other = Sandbox::new();
    let copied = Command::new("cp")
        .arg("-R")
        .arg(sandbox.path("."))
        .arg(other.path("clone"))
        .status();
    assert!(copied.unwrap().success());
    let clone = Sandbox {
        root: other.path("clone"),
        home: other.home.clone(),
        directory: other.directory,
    };
    fs::remove_dir_all(sandbox.root.clone()).unwrap();
    clone.write("README.md", "b");
    let runs = clone.path("../runs");
    let run = asked(&clone, "two");
    let message = last_message(&server);
    assert_contains(
        &message,
        format!("README.md ({}) has changed", uri(&clone, "README.md")),
    );
    assert_eq!(
        site.received().len(),
        1,
        "fetching it was not approved here"
    );
    assert!(!runs.exists(), "running it was not approved here");
    assert_count(&run.stderr, "can't tell whether", 2);
}
