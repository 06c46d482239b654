//! What tools ask the person: in what order, what is shown, and what happens if nobody can be asked.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::{fs, os::unix::fs::PermissionsExt as _};

use jp_llm::testing::Server;
use serde_json::{Value, json};
use support::{Run, Sandbox, answer, calling, playing, results};
use terminal::Terminal;

const USER: &str = "~/.config/jp/config.toml";
const RUN: &str = "Run it? [y]es, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";

/// A model that makes these calls at once and then says `Done.`, and a workspace with these tools.
fn calling_once(tools: &str, calls: &[(&str, Value)]) -> (Server, Sandbox) {
    let server = playing(vec![calling(calls), answer("Done.")]);
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write(USER, tools);
    (server, sandbox)
}

/// Runs a query without a terminal and returns it with its JSON document.
fn query(sandbox: &Sandbox, options: &[&str]) -> (Run, Value) {
    let run = sandbox.jp(&[&["query", "-F", "json"], options, &["Begin."]].concat());
    let document = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    (run, document)
}

/// Returns what a document says was decided about each call.
fn decisions(document: &Value) -> Vec<[Value; 2]> {
    let calls = document["calls"].as_array().unwrap().iter();
    calls.map(|call| [call["decision"].clone(), call["reason"].clone()]).collect()
}

const GREET: &str = "[conversation.tools.greet]\ncommand = 'printf hello'\n";

#[test]
fn call_that_nobody_could_allow_is_exit_code_3_and_the_turn_ends_normally() {
    let (server, sandbox) = calling_once(GREET, &[("greet", json!({}))]);
    let run = sandbox.jp(&["query", "Begin."]).failed(
        3,
        &["the call of `greet` was refused", "`--yes`", "`conversation.tools.greet.run = \"unattended\"`"],
    );
    assert_eq!(run.stdout, "Done.\n");
    assert!(results(&server)[0].contains("no terminal"), "{:?}", results(&server));
    assert_eq!(sandbox.events().iter().filter(|event| event["type"] == "chat_response").count(), 1);
}

#[test]
fn document_says_of_each_call_what_was_decided_and_why() {
    let decided = |tools: &str, options: &[&str]| {
        let (_server, sandbox) = calling_once(tools, &[("greet", json!({}))]);
        let (run, document) = query(&sandbox, options);
        assert_eq!(document["answer"], "Done.");
        (run.code, decisions(&document).remove(0))
    };
    let expected = |code: i32, decision: &str, reason: &str| (code, [json!(decision), json!(reason)]);
    assert_eq!(decided(GREET, &[]), expected(3, "refused", "no_terminal"));
    assert_eq!(decided(GREET, &["--yes"]), expected(0, "allowed", "yes"));
    let with = |run: &str| format!("{GREET}run = '{run}'\n");
    assert_eq!(decided(&with("unattended"), &[]), expected(0, "allowed", "run"));
    assert_eq!(decided(&with("unattended"), &["--yes"]), expected(0, "allowed", "run"));
    assert_eq!(decided(&with("deny"), &[]), expected(0, "refused", "run"));
    assert_eq!(decided("", &[]), (0, [Value::Null, Value::Null]), "there is no such tool");
}

#[test]
fn call_that_a_workspace_lets_run_is_refused_as_untrusted() {
    let decided = |options: &[&str]| {
        let (_server, sandbox) = calling_once("", &[("greet", json!({}))]);
        let config = fs::read_to_string(sandbox.path(".jp/config.toml")).unwrap();
        sandbox.write(".jp/config.toml", format!("{config}{GREET}run = 'unattended'\n"));
        let (run, document) = query(&sandbox, options);
        (run.code, decisions(&document))
    };
    assert_eq!(decided(&[]), (3, vec![[json!("refused"), json!("untrusted")]]));
    assert_eq!(decided(&["--yes"]), (0, vec![[json!("allowed"), json!("yes")]]));
}

#[test]
fn answer_of_the_person_is_no_refusal_for_want_of_one() {
    for (typed, decision) in [("n\n", "refused"), ("y\n", "allowed"), ("a\n", "allowed")] {
        let calls = [("greet", json!({})), ("greet", json!({}))];
        let (_server, sandbox) = calling_once(GREET, &calls[..if typed == "a\n" { 2 } else { 1 }]);
        let out = sandbox.path("out");
        let command = sandbox.command(&["query", "-F", "json", "Begin."]);
        let mut terminal = Terminal::writing_to(command, fs::File::create(&out).unwrap());
        terminal.answer(RUN, typed);
        assert_eq!(terminal.wait(), 0);
        let document: Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
        for decided in decisions(&document) {
            assert_eq!(decided, [json!(decision), json!("user")], "{typed:?}");
        }
    }
}

#[test]
fn failure_after_a_refused_call_keeps_its_own_exit_code() {
    let server = playing(vec![
        calling(&[("greet", json!({}))]),
        jp_llm::testing::Reply::json(400, r#"{"error":"no"}"#),
    ]);
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write(USER, GREET);
    sandbox.jp(&["query", "Begin."]).failed(1, &["400"]);
}

#[test]
fn line_of_a_call_shows_the_arguments_that_ran() {
    let tools = "[conversation.tools.greet]\ncommand = ['echo', '{{tool.arguments.name}}']\nparameters.name.type = 'string'\n";
    let (server, sandbox) = calling_once(tools, &[("greet", json!({"name": "ada"}))]);
    let editor = sandbox.write("~/bin/edit", "#!/bin/sh\necho '{\"name\":\"eve\"}' > \"$1\"\n");
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let out = sandbox.path("out");
    let mut command = sandbox.command(&["query", "-F", "json", "Begin."]);
    command.env("EDITOR", editor);
    let mut terminal = Terminal::writing_to(command, fs::File::create(&out).unwrap());
    terminal.answer(RUN, "e\n");
    terminal.answer(RUN, "y\n");
    terminal.expect("Called greet eve:");
    assert_eq!(terminal.wait(), 0);
    assert!(!terminal.output().contains("Called greet ada"), "{}", terminal.output());
    assert!(results(&server)[0].contains("eve"), "{:?}", results(&server));
    let document: Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    assert_eq!(document["calls"][0]["arguments"], json!({"name": "eve"}));
}
