#![cfg(unix)]

use std::{
    fs,
    io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe},
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use testing::assert_ends;

use super::serve;

/// A session that is served on a thread of its own.
struct Shell {
    requests: Option<PipeWriter>,
    answers: BufReader<PipeReader>,
    server: Option<JoinHandle<std::io::Result<()>>>,
}

impl Shell {
    fn spawn() -> Self {
        let (input, requests) = pipe().unwrap();
        let (answers, output) = pipe().unwrap();
        let server = thread::spawn(move || serve(BufReader::new(input), output));
        let mut shell = Self {
            requests: Some(requests),
            answers: BufReader::new(answers),
            server: Some(server),
        };
        assert_eq!(
            shell.ask("spawn", json!({})),
            "The prompt is back; exit status 0.\n= running"
        );
        shell
    }

    /// Sends a request and returns the answer's texts, a line each, and its status.
    fn ask(&mut self, action: &str, arguments: Value) -> String {
        let request = json!({"action": action, "handle": "h", "arguments": arguments});
        writeln!(self.requests.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let texts = answer["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap());
        let status = answer["_meta"]["computer.jp/status"].as_str().unwrap();
        format!("{}\n= {status}", texts.collect::<Vec<_>>().join("\n"))
    }

    fn enter(&mut self, text: &str) -> String {
        self.ask("apply", json!({"text": text}))
    }

    /// Closes the requests and waits for the end.
    fn close(mut self) {
        self.requests = None;
        self.server.take().unwrap().join().unwrap().unwrap();
    }
}

/// Waits for a condition, for a while.
fn eventually(condition: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !condition() {
        if started.elapsed() > Duration::from_secs(20) {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Returns whether a process is there that is more than its exit status.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

#[test]
fn shell_keeps_its_state_between_calls() {
    let mut shell = Shell::spawn();
    assert_eq!(
        shell.enter("cd / && pwd"),
        "/\nThe prompt is back; exit status 0.\n= running"
    );
    assert_eq!(
        shell.enter("x='a!b'; false"),
        "The prompt is back; exit status 1.\n= running"
    );
    assert_eq!(
        shell.enter("pwd; echo \"$x!\""),
        "/\na!b!\nThe prompt is back; exit status 0.\n= running"
    );
}

#[test]
fn all_lines_of_a_text_have_run_when_the_prompt_is_back() {
    let mut shell = Shell::spawn();
    let text = "for n in 1 2; do\necho $n\ndone\nsleep 0.4\necho end";
    assert_eq!(
        shell.enter(text),
        "1\n2\nend\nThe prompt is back; exit status 0.\n= running"
    );
    assert_eq!(
        shell.enter("echo 'open"),
        "The shell is waiting for the rest of the command.\n= running"
    );
    assert_eq!(
        shell.enter("quote'"),
        "open\nquote\nThe prompt is back; exit status 0.\n= running"
    );
}

#[test]
fn program_receives_its_input() {
    let mut shell = Shell::spawn();
    let busy = "The prompt is not back: a program is running or waiting for input.\n= running";
    assert_eq!(
        shell.ask("apply", json!({"text": "read x", "wait_secs": 0.3})),
        busy
    );
    assert_eq!(
        shell.enter("hello"),
        "The prompt is back; exit status 0.\n= running"
    );
    assert_eq!(
        shell.enter("read y\nworld\necho $x $y"),
        "hello world\nThe prompt is back; exit status 0.\n= running"
    );
}

#[test]
fn keys_reach_the_running_program() {
    let mut shell = Shell::spawn();
    let busy = "The prompt is not back: a program is running or waiting for input.\n= running";
    assert_eq!(
        shell.ask("apply", json!({"text": "sleep 100", "wait_secs": 0.1})),
        busy
    );
    assert_eq!(
        shell.ask("apply", json!({"keys": "ctrl-c", "wait_secs": 10})),
        "The prompt is back; exit status 130.\n= running"
    );
    assert_eq!(
        shell.ask("apply", json!({"text": "cat", "wait_secs": 0.1})),
        busy
    );
    assert_eq!(
        shell.ask("apply", json!({"keys": "ctrl-d", "wait_secs": 10})),
        "The prompt is back; exit status 0.\n= running"
    );
}

#[test]
fn rest_of_the_output_is_fetched() {
    let mut shell = Shell::spawn();
    let text = "echo one; sleep 1; echo two";
    let started = shell.ask("apply", json!({"text": text, "wait_secs": 0.5}));
    assert_eq!(
        started,
        "one\nThe prompt is not back: a program is running or waiting for input.\n= running"
    );
    let rest = shell.ask("fetch", json!({"wait_secs": 5}));
    assert_eq!(rest, "two\nThe prompt is back; exit status 0.\n= running");
    assert_eq!(
        shell.ask("fetch", json!({})),
        "The prompt is back; exit status 0.\n= running"
    );
}

#[test]
fn end_of_the_shell_is_the_end_of_the_session() {
    let mut shell = Shell::spawn();
    let answer = shell.enter("echo bye; exit 3");
    assert!(answer.starts_with("bye\n"), "{answer}");
    assert_ends(&answer, "The shell has ended (exit status: 3).\n= stopped");
    shell.close();
}

#[test]
fn burst_is_complete_without_colours() {
    let mut shell = Shell::spawn();
    let answer = shell.enter("printf '\\033[32mgreen\\033[0m\\n'; seq 200000; echo last");
    assert!(answer.starts_with("green\n1\n2\n"), "{}", &answer[..50]);
    assert!(
        answer.contains("\n99999\n100000\n100001\n"),
        "{}",
        answer.len()
    );
    assert!(answer.ends_with("\n200000\nlast\nThe prompt is back; exit status 0.\n= running"));
}

#[test]
fn input_that_can_not_be_typed_is_refused() {
    let mut shell = Shell::spawn();
    let refusals = [
        shell.enter(&"x".repeat(5000)),
        shell.ask("apply", json!({"text": "a", "keys": "tab"})),
        shell.ask("apply", json!({"keys": "f1"})),
        shell.ask("apply", json!({"text": 1})),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    A line of more than 4000 bytes can't be typed into a terminal. Write it to a file and use the file.
    = running
    Send either `text` or `keys`, not both.
    = running
    There is no key "f1".
    = running
    The request can't be read: invalid type: integer `1`, expected a string at line 1 column 52.
    = running
    "#);
}

#[test]
fn all_that_was_started_ends_with_the_session() {
    if !Path::new("/proc/self/stat").exists() {
        return println!("skipped: processes are looked for in /proc");
    }
    let mut shell = Shell::spawn();
    let pids = shell.enter("(trap '' HUP; exec sleep 1002) & echo $!; echo $$");
    let pids: Vec<_> = pids
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .map(str::to_owned)
        .collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
    let mut foreground = shell.ask(
        "apply",
        json!({"text": "sh -c 'echo $$; exec sleep 1000'", "wait_secs": 0.1}),
    );
    while !foreground.starts_with(|first: char| first.is_ascii_digit()) {
        foreground = shell.ask("fetch", json!({"wait_secs": 0.1}));
    }
    let pids = [&pids[0], &pids[1], foreground.lines().next().unwrap()];
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    shell.close();
    assert!(
        eventually(|| !pids.iter().any(|pid| is_alive(pid))),
        "{pids:?}"
    );
}
