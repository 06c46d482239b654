//! `jp conversation compact` and `jp conversation print --as-sent`.

use std::{fs, io::Read as _, process::Stdio};

use serde_json::{Value, json};
use testing::{
    Reply, Sandbox, Server, answer, assert_contains, assert_fields, assert_lacks, assert_starts,
    calling, chunk, column, finish, items, last_request, results, start,
};

const LONG: &str = "a line of the long result";

/// A conversation of five turns; in the first two, a tool returned something long.
fn with_five_turns(after: Vec<Reply>) -> (Server, Sandbox) {
    let call = || calling(&[("long", json!({}))]);
    let mut replies = vec![call(), answer("One."), call(), answer("Two.")];
    replies.extend([answer("Three."), answer("Four."), answer("Five.")]);
    replies.extend(after);
    let (sandbox, server) = Sandbox::with_replies(replies);
    sandbox.configure(format!("[conversation.tools.long]\ncommand = 'sh -c \"for i in $(seq 40); do echo $i {LONG}; done\"'\nrun = 'unattended'\n"));
    sandbox.write("notes.txt", "Remember the milk.\n");
    sandbox.run("query --new -a notes.txt 'question 1'");
    for turn in 2..=5 {
        sandbox.run(&["query", &format!("question {turn}")]);
    }
    (server, sandbox)
}

fn history(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.events_path()).unwrap()
}

/// Returns the events that compactions are.
fn compactions(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.events_of("compaction")
}

fn asked(server: &Server) -> usize {
    let asks = |head: &str| head.starts_with("post /v1/chat/completions");
    server
        .received()
        .iter()
        .filter(|request| asks(&request.head))
        .count()
}

#[test]
fn compaction_leaves_out_older_results_but_keeps_history() {
    let (server, sandbox) = with_five_turns(vec![answer("Six.")]);
    let before = history(&sandbox);
    let dry = sandbox.json("c compact --dry-run");
    assert_eq!(history(&sandbox), before);
    assert_fields!(dry, {"compacted": false, "turns": 2});
    let done = sandbox.json("c compact");
    let expected = json!({
        "compacted": true, "reset": false, "turns": 2, "tokens_before": dry["tokens_before"],
        "tokens_after": dry["tokens_after"], "strip": ["reasoning", "tools"], "summary": null,
    });
    assert_eq!(done, expected);
    assert!(done["tokens_after"].as_u64() < done["tokens_before"].as_u64());
    let after = history(&sandbox);
    assert_starts(&after, before.trim_end().trim_end_matches(']').trim_end());
    assert_eq!(compactions(&sandbox).len(), 1);
    sandbox.run("query 'question 6'");
    let results = results(&server);
    assert_eq!(results.len(), 2);
    assert!(
        results
            .iter()
            .all(|result| result.starts_with("[Left out to shorten") && !result.contains(LONG))
    );
    assert_contains(last_request(&server).to_string(), "Remember the milk.");
}

#[test]
fn result_that_was_left_out_can_be_read_again() {
    let text: String = (1..=40).map(|n| format!("{n} {LONG}\n")).collect();
    let uri = format!(
        "jp://blob/{}",
        jp_resource::Checksum::compute(text.as_bytes())
    );
    let (server, sandbox) = with_five_turns(vec![
        calling(&[("read_more", json!({"uri": uri}))]),
        answer("Six."),
    ]);
    sandbox.run("c compact");
    sandbox.run("query 'question 6'");
    let results = results(&server);
    assert!(results[0].contains(&uri), "{results:?}");
    assert!(results[2].starts_with(&text), "{results:?}");
}

#[test]
fn compaction_can_be_undone() {
    let (_server, sandbox) = with_five_turns(vec![]);
    let dry = sandbox.run("c compact --dry-run --strip tools");
    let words = "Future requests send turns 1 to 2 without the results of tools.\nThe conversation takes about ";
    assert_starts(&dry.stdout, words);
    assert_contains(&dry.stderr, "Nothing was stored.");
    let none = sandbox.run("c compact --reset");
    assert_contains(&none.stderr, "has no compaction to undo");
    let before = sandbox.run("c print --as-sent").stdout;
    assert_starts(sandbox.run("c compact --strip tools").stderr, words);
    assert_eq!(compactions(&sandbox)[0]["strip"], json!(["tools"]));
    let again = sandbox.run("c compact --strip tools");
    assert_contains(&again.stderr, "Nothing to compact");
    assert_ne!(sandbox.run("c print --as-sent").stdout, before);
    let reset = sandbox.json("c compact --reset");
    assert_fields!(reset, {"reset": true, "compacted": false});
    assert_eq!(sandbox.run("c print --as-sent").stdout, before);
    assert_eq!(compactions(&sandbox).len(), 2);
}

#[test]
fn nothing_is_stored_where_there_is_nothing_to_compact() {
    let (_server, sandbox) = with_five_turns(vec![]);
    let before = history(&sandbox);
    let run = sandbox.run("c compact --keep-last 5");
    assert_contains(&run.stderr, "Nothing to compact");
    assert_eq!(
        sandbox.json("c compact --strip reasoning")["compacted"],
        false
    );
    assert_eq!(history(&sandbox), before);
}

#[test]
fn conversation_that_is_in_use_is_left_alone() {
    let (_server, sandbox) = with_five_turns(vec![Reply::stream(&chunk("Six")).then_hang()]);
    let mut command = sandbox.command("query 'question 6'");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut shown = [0; 3];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut shown)
        .unwrap();
    sandbox
        .fail("c compact --no-wait", 1)
        .says(["is in use by"]);
    sandbox.run("c compact --no-wait --dry-run");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(compactions(&sandbox).is_empty());
}

#[test]
fn wrong_use_exits_with_2() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["--reset", "--keep-last", "1"][..],
        &["--reset", "--summarize"],
        &["--reset", "--strip", "tools"],
        &["--strip", "words"],
        &["--keep-last", "all"],
        &["--no-persist"],
    ] {
        let arguments: Vec<_> = ["c", "compact"].iter().chain(arguments).collect();
        sandbox.fail(&arguments, 2);
    }
}

#[test]
fn summary_by_the_model_stands_in_the_place_of_the_turns() {
    let (server, sandbox) =
        with_five_turns(vec![answer(" The milk is remembered.\n"), answer("Six.")]);
    let sent_before = last_request(&server)["messages"].clone();
    let dry = sandbox.run("c compact --summarize --dry-run");
    assert_contains(&dry.stdout, "The model would write a summary");
    let asked_before = asked(&server);
    let done = sandbox.json("c compact --summarize");
    assert_fields!(done, {"summary": "The milk is remembered.", "turns": 2, "strip": []});
    assert_eq!(asked(&server), asked_before + 1);
    let request = last_request(&server)["messages"].clone();
    let messages = items(&request);
    assert_eq!(messages[..messages.len() - 2], items(&sent_before)[..]);
    let instruction = messages.last().unwrap()["content"].to_string();
    assert_contains(&instruction, "begins with");
    assert_contains(&instruction, "question 3");
    let events = sandbox.events();
    let [.., usage, compaction] = &events[..] else {
        panic!("{events:?}")
    };
    assert_fields!(usage, {"type": "usage", "input": 50, "model": "llamacpp/m"});
    assert_eq!(compaction["type"], "compaction");
    sandbox.run("query 'question 6'");
    let request = last_request(&server);
    let first = request["messages"][0].to_string();
    for words in [
        "Summary of this conversation up to turn 2",
        "The milk is remembered.",
        "notes.txt",
        "question 3",
    ] {
        assert!(first.contains(words), "{words}: {first}");
    }
    let text = request.to_string();
    assert_lacks(&text, "question 1");
    assert_lacks(&text, LONG);
    assert_lacks(&text, "Remember the milk");
    assert_contains(
        &sandbox.run("c compact --summarize --keep-last 4").stderr,
        "Nothing to compact",
    );
}

#[test]
fn summary_that_fails_leaves_the_conversation_as_it_is() {
    let (_server, sandbox) = with_five_turns(vec![
        Reply::json(400, r#"{"error":"no"}"#),
        answer(" "),
        calling(&[("long", json!({}))]),
    ]);
    let before = history(&sandbox);
    sandbox.fail("c compact --summarize", 1).says(["400"]);
    sandbox
        .fail("c compact --summarize", 1)
        .says(["wrote no summary: its answer is empty"]);
    sandbox
        .fail("c compact --summarize", 1)
        .says(["wrote no summary: it called a tool"]);
    assert_eq!(history(&sandbox), before);
}

#[test]
#[cfg(unix)]
fn interrupted_summary_stores_nothing() {
    let (server, sandbox) = with_five_turns(vec![Reply::stream(&chunk("So")).then_hang()]);
    let (before, asked_before) = (history(&sandbox), asked(&server));
    let child = start(sandbox.command("c compact --summarize"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while asked(&server) == asked_before {
        assert!(std::time::Instant::now() < until, "the model is not asked");
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let run = finish(child);
    assert_eq!(run.code, 130, "{}", &run.stderr);
    assert_eq!(history(&sandbox), before);
}

#[test]
fn what_would_be_sent_is_printed() {
    let (_server, sandbox) = with_five_turns(vec![]);
    sandbox.run("c compact --strip tools");
    let id = sandbox.json("c ls")[0]["id"].as_str().unwrap().to_owned();
    let text = sandbox
        .run(&["c", "print", "--as-sent", "-i", &id, "--turn", "1"])
        .stdout;
    let place = format!("file://{}", testing::shown(&sandbox.root));
    insta::assert_snapshot!(text.replace(&place, "ROOT"), @r#"
    ## Turn 1, user

    question 1

    <resource uri="ROOT/notes.txt" name="notes.txt" mimeType="text/plain">
    Remember the milk.
    </resource>

    ## Turn 1, assistant

    ### call of long

    {}

    ## Turn 1, tool

    ### result of long

    [Left out to shorten this conversation: text, 1151 bytes; `read_more` with uri "jp://blob/01da8e74d13c000b1dcbf07933792770613c0b24a4abb96d49a6e58cc3950e30" shows it again.]

    ## Turn 1, assistant

    One.
    "#);
    assert_eq!(
        sandbox
            .run(&["c", "print", "--as-sent", &id, "--turn", "1"])
            .stdout,
        text
    );
    let document = sandbox.json("c print --as-sent");
    let messages = items(&document["messages"]);
    let resource = &messages[0]["blocks"][1];
    assert_fields!(messages[0], {"role": "user", "turn": 1});
    assert_fields!(resource, {"kind": "resource", "delivery": "full"});
    assert!(resource["uri"].as_str().unwrap().ends_with("/notes.txt"));
    let result = &messages[2]["blocks"][0];
    assert_eq!(
        (&messages[2]["role"], &result["delivery"]),
        (&json!("tool"), &json!("compacted"))
    );
    sandbox
        .fail("c print --as-sent --turn 9", 1)
        .says(["there is no turn 9"]);
}

#[test]
fn content_that_is_no_text_is_a_line() {
    let (sandbox, _) = Sandbox::with_replies(vec![answer("Yes.")]);
    sandbox.write("a.png", b"\x89PNG\r\n\x1a\n\0\xff");
    sandbox.run("query --new -a a.png See.");
    let document = sandbox.json("c print --as-sent");
    let block = &document["messages"][0]["blocks"][1];
    assert_fields!(block, {"mimeType": "image/png", "bytes": 10});
    assert_contains(sandbox.run("c print --as-sent").stdout, "image/png, 10 B]");
}

#[test]
fn failed_call_is_printed_as_the_model_is_told_of_it() {
    let missing = calling(&[("read_file", json!({"path": "gone.txt"}))]);
    let (sandbox, server) = Sandbox::with_replies(vec![missing, answer("It is gone.")]);
    sandbox.run("query --new 'What is in gone.txt?'");
    let [result] = &testing::results(&server)[..] else {
        panic!("one result is sent")
    };
    assert_starts(result, "The tool reported an error:\n");
    let text = sandbox.run("c print --as-sent").stdout;
    assert_contains(
        &text,
        format!("### result of read_file\n\n{}\n", result.trim_end()),
    );
    let document = sandbox.json("c print --as-sent");
    let flags = column(items(&document["messages"]), "is_error");
    assert_eq!(flags, [json!(null), json!(null), json!(true), json!(null)]);
}

#[test]
fn closed_pipe_is_quiet() {
    let (_server, sandbox) = with_five_turns(vec![]);
    let mut child = start(sandbox.command("c print --as-sent"));
    drop(child.stdout.take());
    let run = finish(child);
    assert_eq!((run.code, &*run.stderr), (0, ""));
}
