//! An MCP server for tests of the client: one mode for each thing that a server can get wrong, and two that get
//! everything right, one in each era of the protocol.
//!
//! `hostile_mcp MODE` speaks over stdin and stdout. `hostile_mcp MODE --http FILE` listens on a free port of 127.0.0.1,
//! at `/mcp`, and writes the port to FILE, then to stdout. `hostile_mcp --list` says which modes there are. Whatever the mode, it
//! ends by itself when its stdin is closed, and after a minute at the latest.
//!
//! Read `modes` first, which is the table of what there is; then `server`, which answers messages; `tools` and
//! `resources` hold what it offers; `stdio` and `http` carry it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for tests, whose output is the point"
)]

mod http;
mod modes;
mod outgoing;
mod resources;
mod server;
mod stdio;
mod tools;

use std::{path::Path, process::exit, thread, time::Duration};

use modes::{Entry, MODES, Mode, Over};

/// The time after which it ends in any case.
const LIFE: Duration = Duration::from_secs(60);
const USAGE: &str = "usage: hostile_mcp MODE [--http PORT-FILE] | --list";

/// Runs the server with the arguments of this process.
pub fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--list"] => list(),
        [mode] => run(mode, None),
        [mode, "--http", file] => run(mode, Some(Path::new(file))),
        _ => fail(USAGE),
    }
}

fn list() {
    for Entry {
        name, over, what, ..
    } in MODES
    {
        println!("{name:<18} {what}{}", over.remark());
    }
}

fn run(name: &str, port_file: Option<&Path>) {
    let Some(entry) = MODES.iter().find(|entry| entry.name == name) else {
        fail(&format!(
            "there is no mode {name}; `hostile_mcp --list` says which there are"
        ));
    };
    match (entry.over, port_file) {
        (Over::Http, None) => fail(&format!(
            "the mode {name} is for HTTP: add `--http PORT-FILE`"
        )),
        (Over::Stdio, Some(_)) => {
            fail(&format!("the mode {name} is for stdio: leave `--http` out"))
        }
        _ => {}
    }
    if entry.mode == Mode::DiesAtStart {
        die_at_start();
    }
    thread::spawn(|| {
        thread::sleep(LIFE);
        exit(0);
    });
    match port_file {
        None => stdio::serve(entry.mode),
        Some(file) => http::serve(entry.mode, file)
            .unwrap_or_else(|error| fail(&format!("failed to serve over HTTP: {error}"))),
    }
}

fn die_at_start() -> ! {
    eprintln!("Error: the database \u{1b}[1mnotes.db\u{1b}[0m can't be opened");
    for line in 1..=29 {
        eprintln!("    at frame_{line} (server.js:{line}:7)");
    }
    exit(1);
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(2);
}
