//! Very long output of tools: all of it is stored, and output beyond the bound is an error.

#![cfg(unix)]

use jp_resource::Checksum;
use serde_json::{Value, json};
use testing::{Sandbox, Server, assert_contains, assert_lacks, assert_starts, results};

/// A model that makes these calls, each in a separate answer, and a workspace with the tool `t`, a shell script.
fn calling_in_turn(script: &str, calls: &[(&str, Value)]) -> (Server, Sandbox) {
    let (sandbox, server) = Sandbox::with_replies(testing::calling_in_turn(calls));
    let path = sandbox.write("~/t.sh", script);
    let tool = format!(
        "[conversation.tools.t]\ncommand = 'sh {}'\nrun = 'unattended'\n",
        path.display()
    );
    sandbox.configure(tool);
    (server, sandbox)
}

#[test]
fn middle_of_a_long_output_of_the_shell_is_read_on() {
    let numbers: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let checksum = Checksum::compute(numbers.trim_end().as_bytes());
    let calls = [
        ("shell", json!({"action": "spawn", "handle": "s"})),
        (
            "shell",
            json!({"action": "apply", "handle": "s", "input": {"text": "seq 100000"}}),
        ),
        (
            "read_more",
            json!({"uri": format!("jp://blob/{checksum}"), "offset": 288_000}),
        ),
    ];
    let (server, sandbox) = calling_in_turn("", &calls);
    sandbox.run("query --yes -t shell Count.");
    let results = results(&server);
    assert!(
        results[1].starts_with("1\n2\n") && results[1].contains("\n100000\n"),
        "{}",
        results[1].len()
    );
    assert!(results[1].contains(&format!("`read_more` with uri \"jp://blob/{checksum}\"")));
    assert!(results[1].len() < 100_000, "{}", results[1].len());
    assert_contains(&results[2], "\n50001\n50002\n");
}

#[test]
fn output_of_the_shell_beyond_the_bound_is_an_error_that_says_how_much_it_was() {
    let text = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last";
    let calls = [
        ("shell", json!({"action": "spawn", "handle": "s"})),
        (
            "shell",
            json!({"action": "apply", "handle": "s", "input": {"text": text, "wait_secs": 100}}),
        ),
    ];
    let (_server, sandbox) = calling_in_turn("", &calls);
    sandbox.run("query --yes -t shell Count.");
    let events = sandbox.events();
    let result = events
        .iter()
        .rfind(|event| event["type"] == "tool_call_response")
        .unwrap();
    assert_eq!(result["is_error"], true);
    let said = result["content"].to_string();
    assert_contains(&said, "at most 16000000 bytes per call");
    assert_contains(&said, "2000000");
}

/// Prints a resource of 17 MB as base64, and a text.
const LARGE: &str = "printf '{\"content\":[{\"type\":\"text\",\"text\":\"An image.\"},{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///large.bin\",\"mimeType\":\"application/octet-stream\",\"blob\":\"'
head -c 17000000 /dev/zero | tr '\\0' A
printf '\"}}]}'
";

#[test]
fn blocks_of_17_mb_are_kept_whole() {
    let (server, sandbox) = calling_in_turn(LARGE, &[("t", json!({}))]);
    let run = sandbox.run("query Look.");
    assert!(results(&server)[0].contains("An image.") && !results(&server)[0].contains("AAAAAAAA"));
    assert_lacks(&run.stderr, "not kept");
    let event = sandbox.events_of("tool_call_response").remove(0);
    assert_eq!(
        event["content"][1]["resource"]["content"]["size"], 12_750_000,
        "{event}"
    );
    assert_eq!(event["is_error"], false);
}

#[test]
fn text_of_17_mb_can_be_read_on() {
    let text = format!(
        "{}\nmiddle\n{}\n",
        "x".repeat(8_500_000),
        "y".repeat(8_500_000)
    );
    let uri = format!("jp://blob/{}", Checksum::compute(text.as_bytes()));
    let script = "head -c 8500000 /dev/zero | tr '\\0' x\nprintf '\\nmiddle\\n'\nhead -c 8500000 /dev/zero | tr '\\0' y\necho\n";
    let calls = [
        ("t", json!({})),
        ("read_more", json!({"uri": uri, "offset": 8_499_999})),
    ];
    let (server, sandbox) = calling_in_turn(script, &calls);
    sandbox.run("query Look.");
    assert!(results(&server)[0].contains(&uri));
    assert_starts(&results(&server)[1], "x\nmiddle\nyyy");
}

#[test]
fn output_beyond_the_bound_is_an_error_that_says_how_much_it_was() {
    let script = "head -c 64000001 /dev/zero | tr '\\0' x";
    let (server, sandbox) = calling_in_turn(script, &[("t", json!({}))]);
    let run = sandbox.run("query Look.");
    for words in ["64000001 bytes", "64000000"] {
        assert!(results(&server)[0].contains(words), "{words:?}");
        assert_contains(&run.stderr, words);
    }
    let event = sandbox.events_of("tool_call_response").remove(0);
    assert_eq!(event["is_error"], true);
}
