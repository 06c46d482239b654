//! Questions of tools to the user: their order, their prompts, and questions without a terminal.

#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};
use testing::{
    Run, Sandbox, Server, Terminal, answer, assert_contains, assert_count, assert_lacks, calling,
    items, results,
};

const RUN: &str = "Run it? [y]es, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";

/// A model that makes these calls at once and then says `Done.`, and a workspace with these tools.
fn calling_once(tools: &str, calls: &[(&str, Value)]) -> (Server, Sandbox) {
    let (sandbox, server) = Sandbox::with_replies(vec![calling(calls), answer("Done.")]);
    sandbox.configure(tools);
    (server, sandbox)
}

/// Runs a query without a terminal and returns it with its JSON document.
fn query(sandbox: &Sandbox, options: &[&str]) -> (Run, Value) {
    let run = sandbox.jp(&[&["query", "-F", "json"], options, &["Begin."]].concat());
    let document =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    (run, document)
}

/// Returns the decision about each call in a document.
fn decisions(document: &Value) -> Vec<[Value; 2]> {
    let calls = items(&document["calls"]).iter();
    calls
        .map(|call| [call["decision"].clone(), call["reason"].clone()])
        .collect()
}

const GREET: &str = "[conversation.tools.greet]\ncommand = 'printf hello'\n";

#[test]
fn call_without_permission_is_exit_code_3_after_a_normal_turn() {
    let (server, sandbox) = calling_once(GREET, &[("greet", json!({}))]);
    let run = sandbox.fail("query Begin.", 3).says([
        "the call of `greet` was refused",
        "`--yes`",
        "`conversation.tools.greet.run = \"unattended\"`",
    ]);
    assert_eq!(run.stdout, "Done.\n");
    assert_contains(&results(&server)[0], "no terminal");
    assert_eq!(sandbox.events_of("chat_response").len(), 1);
}

#[test]
fn document_has_the_reason_of_each_decision() {
    let decided = |tools: &str, options: &[&str]| {
        let (_server, sandbox) = calling_once(tools, &[("greet", json!({}))]);
        let (run, document) = query(&sandbox, options);
        assert_eq!(document["answer"], "Done.");
        (run.code, decisions(&document).remove(0))
    };
    let expected =
        |code: i32, decision: &str, reason: &str| (code, [json!(decision), json!(reason)]);
    assert_eq!(decided(GREET, &[]), expected(3, "refused", "no_terminal"));
    assert_eq!(decided(GREET, &["--yes"]), expected(0, "allowed", "yes"));
    let with = |run: &str| format!("{GREET}run = '{run}'\n");
    assert_eq!(
        decided(&with("unattended"), &[]),
        expected(0, "allowed", "run")
    );
    assert_eq!(
        decided(&with("unattended"), &["--yes"]),
        expected(0, "allowed", "run")
    );
    assert_eq!(decided(&with("deny"), &[]), expected(0, "refused", "run"));
    assert_eq!(
        decided("", &[]),
        (0, [Value::Null, Value::Null]),
        "there is no such tool"
    );
}

#[test]
fn call_that_a_workspace_lets_run_is_refused_as_untrusted() {
    let decided = |options: &[&str]| {
        let (_server, sandbox) = calling_once("", &[("greet", json!({}))]);
        sandbox.append_config(format!("{GREET}run = 'unattended'\n"));
        let (run, document) = query(&sandbox, options);
        (run.code, decisions(&document))
    };
    assert_eq!(
        decided(&[]),
        (3, vec![[json!("refused"), json!("untrusted")]])
    );
    assert_eq!(
        decided(&["--yes"]),
        (0, vec![[json!("allowed"), json!("yes")]])
    );
}

#[test]
fn answer_of_the_person_is_no_refusal_for_want_of_one() {
    for (typed, decision) in [("n\n", "refused"), ("y\n", "allowed"), ("a\n", "allowed")] {
        let calls = [("greet", json!({})), ("greet", json!({}))];
        let (_server, sandbox) = calling_once(GREET, &calls[..if typed == "a\n" { 2 } else { 1 }]);
        let out = sandbox.path("out");
        let command = sandbox.command("query -F json Begin.");
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
    let (sandbox, _) = Sandbox::with_replies(vec![
        calling(&[("greet", json!({}))]),
        testing::Reply::json(400, r#"{"error":"no"}"#),
    ]);
    sandbox.configure(GREET);
    sandbox.fail("query Begin.", 1).says(["400"]);
}

/// Writes a tool that asks a question with this default, and prints the answer.
fn asks(sandbox: &Sandbox, settings: &str) {
    let question = json!({"id": "sure", "text": "Delete it all?", "schema": {"type": "boolean"}, "default": true});
    let asked = json!({"content": [{"type": "question", "question": question}]});
    let script = format!(
        "case $(cat) in\n*'\"answers\":{{}}'*) echo '{asked}';;\n*) touch deleted; echo deleted;;\nesac\n"
    );
    let path = sandbox.write("~/asks.sh", script);
    let tool = format!(
        "[conversation.tools.wipe]\ncommand = 'sh {}'\nrun = 'unattended'\n",
        path.display()
    );
    sandbox.configure(tool + settings);
}

#[test]
fn question_without_a_terminal_is_declined_despite_its_default() {
    let (server, sandbox) = calling_once("", &[("wipe", json!({}))]);
    asks(&sandbox, "");
    let run = sandbox.run("query Begin.");
    assert!(!sandbox.path("deleted").exists());
    let setting = "conversation.tools.wipe.questions.sure.answer";
    for words in ["Delete it all?", "no terminal", setting] {
        assert_contains(&run.stderr, words);
        assert_contains(&results(&server)[0], words);
    }
    assert_contains(&results(&server)[0], "default");
    assert!(!sandbox.has_event("inquiry_response"));

    let (server, sandbox) = calling_once("", &[("wipe", json!({}))]);
    asks(&sandbox, "questions.sure.answer = true\n");
    sandbox.run("query Begin.");
    assert_eq!(results(&server), ["deleted\n"]);
}

/// Prints blocks before, between and after two questions until both are answered.
const SURVEY: &str = r#"case $(cat) in
*'"second":'*) echo thanks;;
*) cat <<'END'
{"content": [
  {"type": "text", "text": "At the beginning."},
  {"type": "question", "question": {"id": "first", "text": "First?", "schema": {"type": "string"}}},
  {"type": "text", "text": "In between."},
  {"type": "question", "question": {"id": "fixed", "text": "Fixed?", "schema": {"type": "string"}}},
  {"type": "text", "text": "In between, too."},
  {"type": "question", "question": {"id": "second", "text": "Second?", "schema": {"type": "string"}}},
  {"type": "text", "text": "At the very end."}
]}
END
;;
esac
"#;

#[test]
fn all_blocks_around_questions_are_shown_in_their_order() {
    let (server, sandbox) = calling_once("", &[("survey", json!({}))]);
    let path = sandbox.write("~/survey.sh", SURVEY);
    sandbox.configure(format!(
            "[conversation.tools.survey]\ncommand = 'sh {}'\nrun = 'unattended'\nquestions.fixed.answer = 'x'\n",
            path.display()
        ));
    let mut terminal = sandbox.terminal("query Begin.");
    terminal.expect("│ At the beginning.");
    terminal.answer("First?", "a\n");
    terminal.expect("│ In between.");
    terminal.expect("│ In between, too.");
    terminal.answer("Second?", "b\n");
    terminal.expect("│ At the very end.");
    terminal.finish("Done.");
    assert_eq!(results(&server), ["thanks\n"]);
    assert_count(terminal.output(), "At the very end.", 1);
}

#[test]
fn line_of_a_call_shows_the_arguments_that_ran() {
    let tools = "[conversation.tools.greet]\ncommand = ['echo', '{{tool.arguments.name}}']\nparameters.name.type = 'string'\n";
    let (server, sandbox) = calling_once(tools, &[("greet", json!({"name": "ada"}))]);
    let editor = sandbox.write_program(
        "~/bin/edit",
        "#!/bin/sh\necho '{\"name\":\"eve\"}' > \"$1\"\n",
    );
    let out = sandbox.path("out");
    let mut command = sandbox.command("query -F json Begin.");
    command.env("EDITOR", editor);
    let mut terminal = Terminal::writing_to(command, fs::File::create(&out).unwrap());
    terminal.answer(RUN, "e\n");
    terminal.answer(RUN, "y\n");
    terminal.finish("Called greet eve:");
    assert_lacks(terminal.output(), "Called greet ada");
    assert_contains(&results(&server)[0], "eve");
    let document: Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    assert_eq!(document["calls"][0]["arguments"], json!({"name": "eve"}));
}

/// Configures as many tools that ask for permission, each of which prints its number.
fn numbered(count: usize, settings: &str) -> String {
    (0..count)
        .map(|n| format!("[conversation.tools.t{n}]\ncommand = 'echo {n}'\n{settings}"))
        .collect()
}

#[test]
fn prompts_of_parallel_calls_come_in_call_order() {
    const COUNT: usize = 12;
    let names: Vec<_> = (0..COUNT).map(|n| format!("t{n}")).collect();
    let calls: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), json!({})))
        .collect();
    for _ in 0..3 {
        let (_server, sandbox) = calling_once(&numbered(COUNT, ""), &calls);
        let mut terminal = sandbox.terminal("query Begin.");
        for name in &names {
            terminal.expect("The model wants to run `");
            terminal.expect(&format!("{name}`:"));
            terminal.answer(RUN, "y\n");
        }
        assert_eq!(terminal.wait(), 0);
        assert_eq!(asked_for(&terminal.output()), names);
    }
}

/// Returns the tools that jp asked the user to permit, in order.
fn asked_for(output: &str) -> Vec<String> {
    let asked = output.split("The model wants to run `").skip(1);
    asked
        .map(|rest| rest.split('`').next().unwrap().to_owned())
        .collect()
}

#[test]
fn calls_that_wait_for_others_ask_in_call_order_too() {
    // Those that change files run one after the other; more calls than run at once stand between them.
    let create = |path: &str| ("create_file", json!({"path": path, "content": "x"}));
    let names: Vec<_> = (0..10).map(|n| format!("t{n}")).collect();
    let mut calls = vec![create("a")];
    calls.extend(names.iter().map(|name| (name.as_str(), json!({}))));
    calls.push(create("b"));
    let (_server, sandbox) = calling_once(&numbered(10, ""), &calls);
    let mut terminal = sandbox.terminal("query -t create_file Begin.");
    calls.iter().for_each(|_| terminal.answer(RUN, "y\n"));
    assert_eq!(terminal.wait(), 0);
    let expected: Vec<_> = calls.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(asked_for(&terminal.output()), expected);
}

#[test]
fn questions_of_parallel_calls_are_all_asked() {
    let ask = |n: usize| {
        let question =
            json!({"id": "q", "text": format!("Question {n}?"), "schema": {"type": "string"}});
        let asked = json!({"content": [{"type": "question", "question": question}]});
        format!("case $(cat) in\n*'\"answers\":{{}}'*) echo '{asked}';;\n*) echo {n};;\nesac\n")
    };
    let names = ["t0", "t1", "t2"];
    let calls = names.map(|name| (name, json!({})));
    let (_server, sandbox) = calling_once("", &calls);
    let mut tools = String::new();
    for (n, name) in names.iter().enumerate() {
        let path = sandbox.write(&format!("~/{name}.sh"), ask(n));
        tools += &format!(
            "[conversation.tools.{name}]\ncommand = 'sh {}'\nrun = 'unattended'\n",
            path.display()
        );
    }
    sandbox.configure(tools);
    let mut terminal = sandbox.terminal("query Begin.");
    // They come in call order where the first asks soon, which a test can't have it do: see the turnstile's own.
    for _ in 0..3 {
        terminal.answer("Question ", "x\n");
    }
    assert_eq!(terminal.wait(), 0);
    let output = terminal.output();
    assert!(
        (0..3).all(|n| output.contains(&format!("Question {n}?"))),
        "{output}"
    );
}
