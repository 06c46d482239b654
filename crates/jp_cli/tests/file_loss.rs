//! jp's own tools destroy no content that is nowhere else: neither in the conversation nor in git.

#![cfg(unix)]

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process, test_kill_process},
};
use serde_json::{Value, json};
use testing::{Sandbox, Server, answer, assert_contains, git, playing, results, skip};

/// A model that makes these calls, each in a separate answer.
fn workspace(calls: &[(&str, Value)]) -> (Server, Sandbox) {
    let (sandbox, server) = Sandbox::with_replies(testing::calling_in_turn(calls));
    (server, sandbox)
}

fn query(sandbox: &Sandbox, options: &[&str]) {
    let tools = [
        "-t",
        "delete_file",
        "-t",
        "create_file",
        "-t",
        "edit_file",
        "-t",
        "move_file",
    ];
    sandbox.run(&[&["query", "--yes"], &tools[..], options, &["Tidy up."]].concat());
}

fn delete(path: &str) -> (&'static str, Value) {
    ("delete_file", json!({"path": path}))
}

fn has_git() -> bool {
    let has = Command::new("git")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has {
        skip("git is not installed");
    }
    has
}

#[test]
fn file_that_was_never_read_is_not_deleted() {
    let (server, sandbox) = workspace(&[delete("notes.txt")]);
    sandbox.write("notes.txt", "a year of work\n");
    query(&sandbox, &[]);
    assert_eq!(sandbox.read("notes.txt"), "a year of work\n");
    for words in ["notes.txt", "`read_file`", "git"] {
        assert_contains(&results(&server)[0], words);
    }
}

#[test]
fn file_whose_content_the_conversation_holds_is_deleted() {
    let calls = [
        ("read_file", json!({"path": "read.txt"})),
        delete("read.txt"),
        delete("attached.txt"),
        ("create_file", json!({"path": "own.txt", "content": "mine"})),
        ("move_file", json!({"path": "own.txt", "to": "moved.txt"})),
        (
            "edit_file",
            json!({"path": "moved.txt", "old": "mine", "new": "ours"}),
        ),
        delete("moved.txt"),
        delete("empty.txt"),
        (
            "read_file",
            json!({"path": "lines.txt", "first_line": 1, "last_line": 100}),
        ),
        delete("lines.txt"),
    ];
    let (server, sandbox) = workspace(&calls);
    for name in ["read.txt", "attached.txt", "lines.txt"] {
        sandbox.write(name, "one\ntwo\n");
    }
    sandbox.write("empty.txt", "");
    query(&sandbox, &["--attach", "attached.txt"]);
    for name in [
        "read.txt",
        "attached.txt",
        "moved.txt",
        "empty.txt",
        "lines.txt",
    ] {
        assert!(
            !sandbox.path(name).exists(),
            "{name}: {:?}",
            results(&server)
        );
    }
}

#[test]
fn file_that_was_read_in_part_or_has_changed_is_not_deleted() {
    let calls = [
        (
            "read_file",
            json!({"path": "part.txt", "first_line": 1, "last_line": 1}),
        ),
        delete("part.txt"),
        (
            "edit_file",
            json!({"path": "part.txt", "old": "one", "new": "1"}),
        ),
        delete("part.txt"),
        delete("changed.txt"),
    ];
    let (server, sandbox) = workspace(&calls);
    sandbox.write("part.txt", "one\ntwo\n");
    sandbox.write("changed.txt", "before\n");
    let question = playing(vec![answer("Yes.")]);
    let url = format!("providers.llm.llamacpp.base_url={}", question.url());
    sandbox.run(&["query", "-c", &url, "--attach", "changed.txt", "Look."]);
    sandbox.write("changed.txt", "after\n");
    query(&sandbox, &[]);
    assert_eq!(sandbox.read("part.txt"), "1\ntwo\n");
    assert_eq!(sandbox.read("changed.txt"), "after\n");
    for index in [1, 3, 4] {
        assert_contains(results(&server)[index].to_lowercase(), "read");
    }
}

#[test]
fn only_a_file_that_git_has_is_deleted() {
    if !has_git() {
        return;
    }
    let calls = ["committed.txt", "staged.txt", "changed.txt", "ignored.txt"].map(delete);
    let (server, sandbox) = workspace(&calls);
    sandbox.write(".gitignore", "ignored.txt\n");
    for name in ["committed.txt", "changed.txt", "ignored.txt"] {
        sandbox.write(name, format!("This is {name}.\n"));
    }
    git(&sandbox.root, &["init", "--quiet"]);
    git(&sandbox.root, &["add", "."]);
    git(&sandbox.root, &["commit", "--quiet", "-m", "x"]);
    sandbox.write("staged.txt", "staged\n");
    git(&sandbox.root, &["add", "staged.txt"]);
    sandbox.write("changed.txt", "not committed\n");
    query(&sandbox, &[]);
    for (name, is_there) in [
        ("committed.txt", false),
        ("staged.txt", false),
        ("changed.txt", true),
        ("ignored.txt", true),
    ] {
        assert_eq!(
            sandbox.path(name).exists(),
            is_there,
            "{name}: {:?}",
            results(&server)
        );
    }
}

#[test]
fn large_file_is_deleted_if_git_has_it() {
    if !has_git() {
        return;
    }
    let (server, sandbox) = workspace(&[delete("known.bin"), delete("unknown.bin")]);
    sandbox.write("known.bin", vec![b'x'; 11_000_000]);
    git(&sandbox.root, &["init", "--quiet"]);
    git(&sandbox.root, &["add", "known.bin"]);
    sandbox.write("unknown.bin", vec![b'y'; 11_000_000]);
    query(&sandbox, &[]);
    assert!(
        !sandbox.path("known.bin").exists() && sandbox.path("unknown.bin").exists(),
        "{:?}",
        results(&server)
    );
}

#[test]
fn ctrl_c_ends_git_before_the_call_is_allowed() {
    let (_server, sandbox) = workspace(&[delete("notes.txt")]);
    sandbox.write("notes.txt", "a year of work\n");
    let git = sandbox.write_program(
        "~/bin/git",
        "#!/bin/sh\necho $$ >\"$HOME/pid\"\ntouch \"$HOME/asked\"\nexec sleep 600\n",
    );
    let mut command = sandbox.command("query -t delete_file 'Tidy up.'");
    let path = std::env::var("PATH").unwrap();
    command.env(
        "PATH",
        format!("{}:{path}", git.parent().unwrap().display()),
    );
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while !sandbox.path("~/asked").exists() && started.elapsed() < Duration::from_secs(60) {
        thread::yield_now();
    }
    let interrupted = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // jp itself gives git 30 s.
    assert!(
        interrupted.elapsed() < Duration::from_secs(20),
        "git ran to its end"
    );
    let git = sandbox.read("~/pid").trim().parse().ok();
    assert_eq!(
        test_kill_process(git.and_then(Pid::from_raw).unwrap()),
        Err(Errno::SRCH)
    );
    let event = sandbox.events_of("tool_call_response").remove(0);
    assert_eq!(event["content"][0]["text"], "The call was interrupted.");
}

#[test]
fn nothing_that_a_clone_configures_runs_where_git_is_asked() {
    if !has_git() {
        return;
    }
    let (server, sandbox) = workspace(&[delete("a.txt"), delete("b.txt")]);
    sandbox.write("a.txt", "a\n");
    git(&sandbox.root, &["init", "--quiet"]);
    git(&sandbox.root, &["add", "a.txt"]);
    sandbox.write("b.txt", "b\n");
    let evil = sandbox.write_program("evil.sh", "#!/bin/sh\ntouch \"$HOME/owned\"\ncat\n");
    let program = evil.display().to_string();
    for key in [
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.process",
        "core.sshCommand",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "core.pager",
        "core.editor",
        "credential.helper",
    ] {
        git(&sandbox.root, &["config", key, &program]);
    }
    let root = sandbox.root.display().to_string();
    git(&sandbox.root, &["config", "core.hooksPath", &root]);
    // A program would fetch the missing object.
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::{program} x")),
        ("protocol.ext.allow", "always"),
        ("remote.origin.uploadpack", &program),
    ] {
        git(&sandbox.root, &["config", key, value]);
    }
    sandbox.write(".gitattributes", "* filter=x\n");
    query(&sandbox, &[]);
    assert!(!sandbox.path("~/owned").exists());
    assert!(
        !sandbox.path("a.txt").exists() && sandbox.path("b.txt").exists(),
        "{:?}",
        results(&server)
    );
}
