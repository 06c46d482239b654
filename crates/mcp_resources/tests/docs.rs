//! Runs the `uri_template` commands of the documentation and compares what they print.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command;

/// Runs the commands of a page, and returns how many there are.
fn run_commands(page: &str) -> usize {
    let program = support::example("uri_template");
    let blocks = page.split("```console\n").skip(1);
    let commands = blocks
        .filter_map(|rest| rest.split("```").next())
        .flat_map(|block| block.split("$ uri_template ").skip(1));
    let mut count = 0;
    for command in commands {
        let (arguments, printed) = command.split_once('\n').unwrap();
        let line = format!("'{}' {arguments} 2>&1", program.display());
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output, printed, "{arguments}");
        count += 1;
    }
    count
}

#[test]
fn documented_commands_print_what_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    // The published package has no docs.
    if !docs.exists() {
        return;
    }
    for (page, count) in [("mcp-servers.md", 5), ("uris.md", 10)] {
        let text = std::fs::read_to_string(docs.join(page)).unwrap();
        assert_eq!(run_commands(&text), count, "{page}");
    }
}
