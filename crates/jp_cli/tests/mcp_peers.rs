//! The real binary against MCP servers that others wrote, from npm and PyPI (`scripts/get_mcp_peers`), and one on rmcp.
//!
//! Each takes part in a whole query with a scripted model: jp lists and calls its tools, and answers its elicitations.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use testing::{
    Background, Sandbox, Server, answer, assert_contains, assert_count, calling, free_port, items,
    last_request, playing, programs, results, skip,
};

/// Returns a directory of `.local` that the peers are installed in, or says that a test is skipped.
fn installed(directory: &str) -> Option<PathBuf> {
    let path = programs::installed(directory);
    if path.is_none() {
        skip(&format!(
            "`.local/{directory}` is not there; scripts/get_mcp_peers installs it"
        ));
    }
    path
}

/// Returns the program of an npm server.
fn npm(package: &str) -> Option<String> {
    let server = installed("mcp")?
        .join("node_modules/@modelcontextprotocol")
        .join(package)
        .join("dist/index.js");
    assert!(server.is_file(), "{server:?}");
    Some(server.display().to_string())
}

/// The table of a server that runs on Node.
fn on_node(name: &str, arguments: &[&str]) -> String {
    let arguments = serde_json::to_string(arguments).unwrap();
    format!("[providers.mcp.{name}]\ncommand = 'node'\narguments = {arguments}\n")
}

/// The table of one of the Python servers.
fn on_python(name: &str, script: &str, packages: &Path, revision: &str) -> String {
    let script = Path::new(programs::PEERS).join(script);
    format!(
        "[providers.mcp.{name}]\ncommand = 'python3'\narguments = ['{}']\nrevision = '{revision}'\n\
         environment = {{ PYTHONPATH = '{}', PYTHONDONTWRITEBYTECODE = '1' }}\n",
        script.display(),
        packages.display()
    )
}

/// Has a model call tools of a server, all at once, and returns the results in the order of the calls.
struct Turn {
    sandbox: Sandbox,
    server: Server,
}

impl Turn {
    fn new(config: &str, calls: &[(&str, Value)]) -> Self {
        let (sandbox, server) = Sandbox::with_replies(vec![calling(calls), answer("Done.")]);
        sandbox.configure(format!(
            "{config}[conversation.tools.'*']\nrun = 'unattended'\n"
        ));
        Self { sandbox, server }
    }

    /// Runs the query; returns the results, ordered as their calls are.
    fn results(&self) -> Vec<String> {
        let run = self.sandbox.run("query --new Go.");
        assert_eq!(run.stdout, "Done.\n", "{}", run.stderr);
        results(&self.server)
    }

    fn tools(&self) -> Vec<String> {
        let request = last_request(&self.server);
        let tools = items(&request["tools"]).iter();
        tools
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the stored result of a call; calls count from 1.
    fn recorded(&self, call: usize) -> Value {
        let is_of = |event: &Value| {
            event["type"] == "tool_call_response" && event["id"] == format!("call_{call}")
        };
        self.sandbox.events().into_iter().find(is_of).unwrap()
    }
}

#[test]
fn everything_over_stdio() {
    let Some(program) = npm("server-everything") else {
        return;
    };
    everything(&on_node("every", &[&program]));
}

#[test]
fn everything_over_http() {
    let Some(program) = npm("server-everything") else {
        return;
    };
    let server = Listening::node(&program);
    everything(&format!(
        "[providers.mcp.every]\nurl = 'http://127.0.0.1:{}/mcp'\n",
        server.port
    ));
}

fn everything(server: &str) {
    let answers = "[conversation.tools.every_trigger-elicitation-request]\nquestions.elicitation.answer = { name = 'Ada', check = true }\n";
    let turn = Turn::new(
        &format!("{server}{answers}"),
        &[
            ("every_echo", json!({"message": "hi"})),
            ("every_get-sum", json!({"a": 1, "b": 2})),
            ("every_get-tiny-image", json!({})),
            (
                "every_get-resource-reference",
                json!({"resourceType": "Text", "resourceId": 1}),
            ),
            ("every_get-resource-links", json!({"count": 2})),
            (
                "every_get-structured-content",
                json!({"location": "Chicago"}),
            ),
            (
                "every_trigger-long-running-operation",
                json!({"duration": 1, "steps": 2}),
            ),
            ("every_get-roots-list", json!({})),
            ("every_trigger-elicitation-request", json!({})),
        ],
    );
    let results = turn.results();
    let has = |index: usize, words: &str| {
        assert!(
            results[index].contains(words),
            "{index}: {}",
            results[index]
        )
    };
    has(0, "Echo: hi");
    has(1, "The sum of 1 and 2 is 3.");
    has(2, "image/png");
    has(3, "demo://resource/dynamic/text/1");
    has(4, "demo://resource/dynamic/text/2");
    assert_count(&results[5], "humidity", 1);
    has(6, "Long running operation completed");
    has(7, "project");
    has(8, "Ada");
    let reference = &turn.recorded(4)["content"];
    assert!(
        reference
            .to_string()
            .contains(r#""uri":"demo://resource/dynamic/text/1""#),
        "{reference}"
    );
    assert_eq!(turn.recorded(1)["_meta"]["computer.jp/server"], "every");
}

#[test]
fn filesystem_serves_the_workspace_as_its_root() {
    let Some(program) = npm("server-filesystem") else {
        return;
    };
    let turn = Turn::new("", &[]);
    let note = turn.sandbox.write("note.md", "# A note\n");
    let root = turn.sandbox.root.clone();
    let calls = [
        ("files_list_allowed_directories", json!({})),
        ("files_read_text_file", json!({"path": note})),
        ("files_read_text_file", json!({"path": "/etc/hostname"})),
    ];
    let server = playing(vec![calling(&calls), answer("Done.")]);
    let turn = Turn {
        sandbox: turn.sandbox.with_server(&server),
        server,
    };
    let config = on_node("files", &[&program, &root.display().to_string()]);
    turn.sandbox.configure(format!(
        "{config}[conversation.tools.'*']\nrun = 'unattended'\n"
    ));
    let results = turn.results();
    assert_contains(&results[0], "work/project");
    assert_contains(&results[1], "# A note");
    assert_contains(results[2].to_lowercase(), "denied");
}

#[test]
fn memory_keeps_what_it_is_told_in_one_turn() {
    let Some(program) = npm("server-memory") else {
        return;
    };
    let entity = json!({"entities": [{"name": "jp", "entityType": "program", "observations": ["It is in Rust."]}]});
    let (sandbox, server) = Sandbox::with_replies(vec![
        calling(&[("memory_create_entities", entity)]),
        calling(&[("memory_read_graph", json!({}))]),
        answer("Done."),
    ]);
    let file = sandbox.path("~/memory.jsonl");
    let config = on_node("memory", &[&program]);
    let environment = format!(
        "environment = {{ MEMORY_FILE_PATH = '{}' }}\n",
        file.display()
    );
    sandbox.configure(format!(
        "{config}{environment}[conversation.tools.'*']\nrun = 'unattended'\n"
    ));
    sandbox.run("query --new Go.");
    assert_contains(results(&server).last().unwrap(), "It is in Rust.");
    assert!(file.is_file());
}

#[test]
fn sdk_of_python_in_both_eras() {
    let Some(packages) = installed("mcp-python") else {
        return;
    };
    for revision in ["2025-11-25", "2026-07-28"] {
        python("everything_mcp.py", &packages, revision);
    }
}

#[test]
fn fastmcp_in_both_eras() {
    let Some(packages) = installed("mcp-python") else {
        return;
    };
    for revision in ["2025-11-25", "2026-07-28"] {
        python("everything_fastmcp.py", &packages, revision);
    }
}

fn python(script: &str, packages: &Path, revision: &str) {
    let answers = "[conversation.tools.py_ask]\nquestions.elicitation.answer = { name = 'Ada', agree = true }\n";
    let turn = Turn::new(
        &format!("{}{answers}", on_python("py", script, packages, revision)),
        &[
            ("py_add", json!({"a": 1, "b": 2})),
            ("py_note", json!({"name": "one"})),
            ("py_ask", json!({})),
            ("py_slow", json!({})),
            ("py_fail", json!({})),
        ],
    );
    let results = turn.results();
    let has = |index: usize, words: &str| {
        assert!(
            results[index].contains(words),
            "{script} {revision} {index}: {}",
            results[index]
        )
    };
    assert_count(&results[0], "sum", 1);
    has(1, "The first note.");
    has(2, "The answer was: Ada, yes");
    has(3, "three steps");
    has(4, "It failed, as it was asked to.");
    assert_eq!(turn.recorded(1)["structuredContent"], json!({"sum": 3}));
    assert!(
        turn.recorded(2)["content"]
            .to_string()
            .contains(r#""uri":"note://one""#),
        "{}",
        turn.recorded(2)
    );
    assert_eq!(turn.recorded(5)["is_error"], true, "{}", turn.recorded(5));
}

#[test]
fn server_on_rmcp() {
    let program = testing::example("jp_cli", "rmcp_server");
    let config = format!("[providers.mcp.rust]\ncommand = '{}'\n", program.display());
    let turn = Turn::new(
        &config,
        &[
            ("rust_add", json!({"a": 1, "b": 2})),
            ("rust_note", json!({})),
        ],
    );
    let results = turn.results();
    assert_eq!(results[0], r#"{"sum":3}"#);
    assert_contains(&results[1], "note:one");
    assert_contains(&results[1], "The first note.");
    assert_eq!(turn.tools().last().unwrap(), "rust_note");
}

/// A separate server that listens on loopback.
struct Listening {
    _server: Background,
    port: u16,
}

impl Listening {
    /// Starts server-everything over HTTP.
    fn node(program: &str) -> Self {
        let port = free_port();
        let mut command = Command::new("node");
        command
            .args([program, "streamableHttp"])
            .env("PORT", port.to_string());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut server = Background::start(&mut command);
        let mut stderr = BufReader::new(server.process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on port") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
        }
        // It is not to block on a full pipe.
        std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        Self {
            _server: server,
            port,
        }
    }
}
