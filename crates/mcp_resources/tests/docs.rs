//! What the documentation shows of `uri_template` is what it prints.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command;

#[test]
fn documented_commands_print_what_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    // A package of the library alone has none.
    if !docs.exists() {
        return;
    }
    let page = std::fs::read_to_string(docs.join("mcp-servers.md")).unwrap();
    let shown = page
        .split("```console\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let program = support::example("uri_template");
    let mut commands = 0;
    for example in shown.split("$ uri_template ").skip(1) {
        let (arguments, printed) = example.split_once('\n').unwrap();
        let line = format!("'{}' {arguments} 2>&1", program.display());
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            printed,
            "{arguments}"
        );
        commands += 1;
    }
    assert_eq!(commands, 5);
}
