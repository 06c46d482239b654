//! `jp shell-session`: the real binary, a real shell on a real terminal.
#![cfg(target_os = "linux")]
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Session {
    jp: Child,
    answers: BufReader<ChildStdout>,
    /// The directory that it was started in.
    _directory: TempDir,
}

impl Session {
    /// Starts a session, anywhere: it needs no workspace.
    fn spawn() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut jp = Command::new(env!("CARGO_BIN_EXE_jp"))
            .arg("shell-session")
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(jp.stdout.take().unwrap());
        Self {
            jp,
            answers,
            _directory: directory,
        }
    }

    fn ask(&mut self, action: &str, arguments: Value) -> Vec<String> {
        let request = json!({"action": action, "handle": "h", "arguments": arguments});
        writeln!(self.jp.stdin.as_ref().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let blocks = testing::items(&answer["content"]);
        blocks
            .iter()
            .map(|block| block["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Starts something that runs on and on, and returns its process.
    fn start_sleeping(&mut self) -> String {
        self.ask("spawn", json!({}));
        let mut shown = self.ask(
            "apply",
            json!({"text": "sh -c 'echo $$; exec sleep 1000'", "wait_secs": 0.1}),
        );
        while shown.len() < 2 {
            shown = self.ask("fetch", json!({"wait_secs": 0.1}));
        }
        assert!(is_alive(&shown[0]), "{shown:?}");
        shown[0].clone()
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

/// Waits until a process is gone, for a while.
fn is_gone(pid: &str) -> bool {
    let started = Instant::now();
    while is_alive(pid) && started.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(5));
    }
    !is_alive(pid)
}

#[test]
fn state_stays_between_requests() {
    let mut session = Session::spawn();
    assert_eq!(
        session.ask("spawn", json!({})),
        ["The prompt is back; exit status 0."]
    );
    assert_eq!(session.ask("apply", json!({"text": "cd / && pwd"}))[0], "/");
    assert_eq!(
        session.ask("apply", json!({"text": "pwd"})),
        ["/", "The prompt is back; exit status 0."]
    );
    session.ask("abort", json!({}));
    assert!(session.jp.wait().unwrap().success());
}

#[test]
fn what_runs_ends_with_the_requests() {
    let mut session = Session::spawn();
    let pid = session.start_sleeping();
    drop(session.jp.stdin.take());
    assert!(session.jp.wait().unwrap().success());
    assert!(is_gone(&pid));
}

#[test]
fn what_runs_ends_though_jp_is_killed() {
    let mut session = Session::spawn();
    let pid = session.start_sleeping();
    session.jp.kill().unwrap();
    session.jp.wait().unwrap();
    assert!(is_gone(&pid));
}
