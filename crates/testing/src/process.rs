//! Processes that tests start, and what they are given.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A process that is killed with the value.
pub struct Background {
    /// The process.
    pub process: Child,
}

impl Background {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Self {
        let process = command.spawn().unwrap();
        Self { process }
    }

    /// Starts a command, and returns the first line of its stdout without its end.
    pub fn announce(command: &mut Command) -> (Self, String) {
        let mut background = Self::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        let stdout = background.process.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        (background, line.trim_end().to_owned())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Finds a port that is free now, below those that the system assigns to port 0.
///
/// Another process may still take it first. Each process begins its search elsewhere, so that is unlikely.
pub fn free_port() -> u16 {
    let ports = (0..).map(|attempt| 20_000 + (std::process::id() + attempt) % 10_000);
    let mut ports = ports.map(|port| u16::try_from(port).unwrap());
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

/// Copies a directory with all that is in it.
pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_directory(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

/// Runs git in a directory, as a person whose own configuration does not matter.
#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
    command.args(["-c", "init.defaultBranch=main"]);
    command.args(arguments).current_dir(directory);
    command.env_clear().env("HOME", directory);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}
