//! The client side of the official MCP conformance suite: each scenario that a revision requires of clients passes.
//!
//! `scripts/get_mcp_peers` installs the suite, `scripts/check_mcp_client` prints what it says.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use testing::{Suite, example};

/// Runs what a revision requires; returns the scenarios that pass, and all that was printed.
fn run(suite: &Suite, revision: &str) -> (Vec<String>, String) {
    let mut command = Command::new(&suite.node);
    command
        .arg(suite.program())
        .args(["client", "--requirements", revision]);
    // What is on this machine is reached whatever stands before the network.
    command
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env_remove("NO_PROXY");
    let output = command
        .arg("--command")
        .arg(example("jp_mcp", "conformance_client"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout) + &text(&output.stderr);
    let passed = |line: &str| Some(line.strip_prefix("✓ ")?.split_once(": ")?.0.to_owned());
    (printed.lines().filter_map(passed).collect(), printed)
}

fn check(revision: &str) {
    let Some(suite) = Suite::installed() else {
        return;
    };
    let required = suite.required(revision, "client");
    assert!(required.len() > 10, "{required:?}");
    let (passed, printed) = run(&suite, revision);
    let failed: Vec<_> = required
        .iter()
        .filter(|scenario| !passed.contains(scenario))
        .collect();
    assert!(
        failed.is_empty(),
        "these do not pass: {failed:?}\n{printed}"
    );
}

#[test]
fn what_2025_11_25_requires_passes() {
    check("2025-11-25");
}

#[test]
fn what_2026_07_28_requires_passes() {
    check("2026-07-28");
}
