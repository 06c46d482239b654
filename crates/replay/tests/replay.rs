//! Runs the program on a directory with a conversation of each format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Returns the lines of a file of about 400 bytes: long enough to be replaced with a reference.
fn lines() -> Vec<String> {
    (1..=20).map(|n| format!("line {n} of the file")).collect()
}

fn number_lines(prefix: impl Fn(usize) -> String) -> String {
    let lines: Vec<_> = (1..)
        .zip(lines())
        .map(|(number, line)| prefix(number) + &line)
        .collect();
    lines.join("\n")
}

fn jp() -> String {
    let call = |id: &str| json!({"timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_request", "id": id, "name": "fs_read_file", "arguments": {"path": "a.rs"}});
    let text = format!("```rs\n{}\n\n```\n", lines().join("\n"));
    let result = |id: &str| json!({"timestamp": "2026-11-21T12:00:00Z", "type": "tool_call_response", "id": id, "content": text});
    let request =
        json!({"timestamp": "2026-11-21T12:00:00Z", "type": "chat_request", "content": "go"});
    json!([request, call("1"), result("1"), call("2"), result("2")]).to_string()
}

fn trajectory() -> String {
    let window = format!(
        "[File: /r/a.py (20 lines total)]\n{}",
        number_lines(|n| format!("{n}:"))
    );
    let step = json!({"response": "Look.", "action": "open a.py", "observation": window});
    json!({"trajectory": [step, step], "history": [{"role": "user", "content": "Fix it."}]})
        .to_string()
}

fn transcript() -> String {
    let call = |id: &str| json!({"type": "assistant", "message": {"id": id, "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/p/a"}}]}});
    let text = number_lines(|n| format!("{n:6}→"));
    let result = |id: &str| json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}});
    let lines = [call("1"), result("1"), call("2"), result("2")];
    lines.map(|line| line.to_string() + "\n").concat()
}

fn write(root: &Path, path: &str, text: &str) -> PathBuf {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn recordings() -> TempDir {
    let root = TempDir::new().unwrap();
    write(root.path(), "17727391057-a/events.json", &jp());
    write(root.path(), "b.traj", &trajectory());
    write(root.path(), "c.jsonl", &transcript());
    write(root.path(), "notes.md", "no conversation");
    root
}

fn run(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_replay"))
        .args(arguments)
        .args(paths)
        .output()
        .unwrap()
}

#[test]
fn json_has_all_conversations_with_their_sum() {
    let root = recordings();
    let output = run(&["--format", "json"], &[root.path()]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let conversations = report["conversations"].as_array().unwrap();
    let formats: Vec<_> = conversations
        .iter()
        .map(|one| one["format"].as_str().unwrap())
        .collect();
    assert_eq!(formats, ["jp", "SWE-agent", "Claude Code"]);
    let total = &report["total"];
    assert_eq!(
        total["recovered"],
        json!({
            "Claude Code numbered read": {"resources": 2, "bytes": 780},
            "SWE-agent file window": {"resources": 2, "bytes": 782},
            "jp fenced read": {"resources": 2, "bytes": 782},
        })
    );
    assert_eq!(
        (&total["conversations"], &total["skipped_files"]),
        (&json!(3), &json!(1))
    );
    for name in ["plain_bytes", "exact_bytes", "delivered_bytes"] {
        let sum: u64 = conversations
            .iter()
            .map(|one| one[name].as_u64().unwrap())
            .sum();
        assert_eq!(total[name], json!(sum), "{name}");
    }
    for name in ["plain_weighted", "exact_weighted", "delivered_weighted"] {
        let sum: f64 = conversations
            .iter()
            .map(|one| one[name].as_f64().unwrap())
            .sum();
        assert!((total[name].as_f64().unwrap() - sum).abs() < 0.5, "{name}");
    }
    let shares = total["shares"].as_object().unwrap().values();
    assert_eq!(
        shares
            .map(|share| share["bytes"].as_u64().unwrap())
            .sum::<u64>(),
        total["plain_bytes"]
    );
}

#[test]
fn text_has_a_row_for_each_conversation() {
    let root = recordings();
    let output = run(&[], &[root.path()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let ends = [
        " conversation",
        "events.json",
        "b.traj",
        "c.jsonl",
        " total",
    ];
    ends.iter()
        .for_each(|end| assert!(lines.next().unwrap().ends_with(end), "{text}"));
    assert!(
        text.contains("  jp fenced read: 2 resources, 782 bytes\n"),
        "{text}"
    );
    assert!(
        text.contains("  file that isn't a conversation: 1\n"),
        "{text}"
    );
}

#[test]
fn failed_file_does_not_stop_the_others() {
    let root = recordings();
    let broken = write(root.path(), "d.traj", "{\"trajectory\": [");
    let unknown = write(root.path(), "e.txt", "words");
    let missing = root.path().join("missing");
    let output = run(&["--format", "json"], &[root.path(), &unknown, &missing]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["total"]["conversations"], json!(3));
    let errors = String::from_utf8(output.stderr).unwrap();
    let error = |path: &Path, before: &str, after: &str| {
        let expected = format!("error: failed to {before}{}{after}", path.display());
        assert!(errors.contains(&expected), "{expected}\n{errors}");
    };
    error(
        &broken,
        "read ",
        " as a SWE-agent trajectory: EOF while parsing a list at line 1 column 16\nhint: ",
    );
    error(
        &unknown,
        "recognise ",
        " as a conversation\nhint: pass a conversation directory of jp",
    );
    error(&missing, "read ", ": ");
}

#[test]
fn real_conversations_are_replayed() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/jp-conversations");
    if !data.is_dir() {
        return;
    }
    let output = run(&["--format", "json"], &[&data]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        report["total"]["plain_bytes"].as_u64() > Some(200_000),
        "{:#}",
        report["total"]
    );
}
