//! [`hostile_mcp`](crate::hostile_mcp), configured as an MCP server, and a model that calls its tools.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{Sandbox, Server, answer, calling, playing, programs::example};

/// The person's own configuration.
pub const USER: &str = "~/.config/jp/config.toml";
/// Lets every tool run, so that what is looked at is the call.
pub const UNATTENDED: &str = "conversation.tools.'*'.run = 'unattended'\n";

/// Returns the path of the server.
pub fn program() -> PathBuf {
    example("jp_cli", "hostile_mcp")
}

/// Longer than any machine takes for what does not hang.
const LIMITS: &str = "timeout_secs = 10\nstartup_timeout_secs = 20\n";

/// Returns a configuration where a call that hangs is over soon.
pub fn with_short_calls(config: &str) -> String {
    config.replace("\ntimeout_secs = 10", "\ntimeout_secs = 1")
}

/// Returns a configuration where a server that does not get ready is given up soon.
pub fn with_short_start(config: &str) -> String {
    config.replace("startup_timeout_secs = 20", "startup_timeout_secs = 1")
}

/// Configures the server as a program.
pub fn stdio(name: &str, mode: &str) -> String {
    let program = program().display().to_string();
    format!("[providers.mcp.{name}]\ncommand = ['{program}', '{mode}']\n{LIMITS}")
}

/// The server over HTTP; it ends when its stdin, which the child holds, is closed.
pub struct Listening {
    /// The server.
    pub child: Child,
    /// Its port on loopback.
    pub port: u16,
    /// Where the server writes its port and its log.
    pub directory: tempfile::TempDir,
}

impl Listening {
    /// Starts the server in this mode.
    pub fn start(mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        command
            .arg(mode)
            .arg("--http")
            .arg(directory.path().join("port"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            child,
            port: line.trim_end().parse().unwrap(),
            directory,
        }
    }

    /// Configures the server as an endpoint.
    pub fn config(&self, name: &str) -> String {
        let port = self.port;
        format!("[providers.mcp.{name}]\nurl = 'http://127.0.0.1:{port}/mcp'\n{LIMITS}")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The calls of one answer: each has a name and its arguments.
pub type Calls<'a> = &'a [(&'a str, Value)];

/// A person with this configuration, and a model that makes these calls, an answer each, then says `Done.`
pub fn calling_rounds(config: &str, rounds: &[Calls<'_>]) -> (Server, Sandbox) {
    let replies = rounds
        .iter()
        .map(|calls| calling(calls))
        .chain([answer("Done.")])
        .collect();
    let server = playing(replies);
    let sandbox = Sandbox::new().with_server(&server);
    sandbox.write(USER, config);
    (server, sandbox)
}

/// A model that makes these calls at once.
pub fn calling_once(config: &str, calls: Calls<'_>) -> (Server, Sandbox) {
    calling_rounds(config, &[calls])
}
