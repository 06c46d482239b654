//! The end-to-end tests of jp, one module per command or subject.
//!
//! They are one binary: linking it once takes a fraction of the time that a binary per file takes.

#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says why it is skipped"
)]

mod asking;
mod attachments;
mod commands;
mod compaction;
mod conversations;
mod delivery;
mod docs;
mod explain;
mod failures;
mod file_loss;
mod gates;
mod help;
mod hostile_mcp;
mod links;
mod long_output;
mod mcp;
mod mcp_attachments;
mod mcp_hostile;
mod mcp_interop;
mod mcp_peers;
mod mcp_scripted;
mod mcp_serve;
mod mcp_tools;
mod mocks;
mod model;
mod models;
mod pages;
mod privacy;
mod prompts;
mod providers;
mod query;
mod refresh;
mod rounds;
mod screen;
mod scripts;
mod secrets;
mod shell_session;
mod snapshots;
mod stale;
mod structured;
mod tools;
mod versions;

/// A file that isn't declared above would never run.
#[test]
fn every_file_is_a_module() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let declared = include_str!("main.rs");
    for entry in std::fs::read_dir(directory).expect("the tests are here") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_stem().expect("it has a name").to_string_lossy();
        let is_declared = declared.contains(&format!("\nmod {name};\n"));
        assert!(
            name == "main" || is_declared,
            "main.rs does not declare {name}"
        );
    }
}
