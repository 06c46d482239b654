//! The server side of the official MCP conformance suite: each scenario that a revision requires of servers passes, and
//! those that it does not require yet, without those of extensions.
//!
//! `scripts/get_mcp_peers` installs the suite, `scripts/check_mcp_server` prints what it says.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Stdio;

use support::example;
use testing::Suite;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Runs what a revision asks of servers; gives the scenarios that pass, and all that was printed.
async fn run(suite: &Suite, revision: &str, url: &str) -> (Vec<String>, String) {
    let mut command = Command::new(&suite.node);
    command.arg(suite.program()).args(["server", "--url", url]);
    let output = command
        .args(["--requirements", revision])
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout) + &text(&output.stderr);
    let passed = |line: &str| {
        let (scenario, counts) = line.strip_prefix("✓ ")?.split_once(": ")?;
        // One that checks nothing says nothing.
        (!counts.starts_with("0 passed")).then(|| scenario.to_owned())
    };
    (printed.lines().filter_map(passed).collect(), printed)
}

/// Starts the server; gives its URL.
async fn start() -> (Child, String) {
    let mut command = Command::new(example("conformance"));
    command
        .args(["--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut server = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut url)
        .await
        .unwrap();
    (server, url.trim().to_owned())
}

/// Checks what a revision requires, and how many scenarios pass in all.
async fn check(revision: &str, required: usize, all: usize) {
    let Some(suite) = Suite::installed() else {
        return;
    };
    let scenarios = suite.required(revision, "server");
    assert_eq!(scenarios.len(), required, "{scenarios:?}");
    let (_server, url) = start().await;
    let (passed, printed) = run(&suite, revision, &url).await;
    let failed: Vec<_> = scenarios
        .iter()
        .filter(|scenario| !passed.contains(scenario))
        .collect();
    assert!(
        failed.is_empty(),
        "these do not pass: {failed:?}\n{printed}"
    );
    assert_eq!(passed.len(), all, "{printed}");
}

#[tokio::test]
async fn all_30_that_2025_11_25_requires_pass_and_3_more() {
    check("2025-11-25", 30, 33).await;
}

#[tokio::test]
async fn all_37_that_2026_07_28_requires_pass_and_3_more() {
    check("2026-07-28", 37, 40).await;
}
