//! `jp mcp` and attachments with the example `notes` of the crate `mcp_resources`, over stdio and HTTP, in each era.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};
use testing::{Background, Sandbox, answering, assert_contains, assert_fields, last_message, skip};

/// Returns the example; `cargo nextest run --workspace` builds it, but not with this package alone.
fn example() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let name = format!("notes{}", std::env::consts::EXE_SUFFIX);
    let program = test
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples")
        .join(name);
    if program.is_file() {
        return Some(program);
    }
    skip(
        "the example `notes` is not built; `cargo build -p mcp_resources --example notes` does it",
    );
    None
}

/// The example over HTTP; it ends with the value.
struct Listening {
    _server: Background,
    url: String,
}

impl Listening {
    fn new(program: &PathBuf, sandbox: &Sandbox) -> Self {
        let mut command = Command::new(program);
        command.args(["--http", "127.0.0.1:0"]);
        let (_server, url) = Background::announce(command.arg(sandbox.path("~/notes")));
        Self { _server, url }
    }
}

/// Runs a check with the example as the server `notes`, over both transports in both eras.
fn with_notes(workspace: impl Fn() -> Sandbox, check: impl Fn(&Sandbox, &str)) {
    let Some(program) = example() else { return };
    for revision in ["2025-11-25", "2026-07-28"] {
        let sandbox = workspace();
        sandbox.write("~/notes/todo.md", "# Tasks\n## Urgent\nCall\n");
        sandbox.write("~/notes/a b.md", "# Spaced\n");
        let listening = Listening::new(&program, &sandbox);
        let (program, notes) = (
            testing::shown(&program),
            testing::shown(&sandbox.path("~/notes")),
        );
        let command = format!("command = '{program}'\narguments = ['{notes}']");
        for server in [command, format!("url = '{}'", listening.url)] {
            let table = format!("[providers.mcp.notes]\n{server}\nrevision = '{revision}'\n");
            sandbox.configure(table);
            check(&sandbox, revision);
        }
    }
}

#[test]
fn jp_reads_what_the_library_serves() {
    with_notes(Sandbox::new, |sandbox, revision| {
        let listed = &sandbox.json("mcp ls")[0];
        assert_eq!(
            (
                &listed["revision"],
                &listed["resources"],
                &listed["templates"],
                &listed["warnings"]
            ),
            (&json!(revision), &json!(2), &json!(3), &json!([]))
        );
        let first = &sandbox.json("mcp resources notes")[0];
        assert_fields!(first, {"uri": "notes://a%20b.md", "mimeType": "text/markdown"});
        let templates = sandbox.json("mcp templates notes");
        assert_eq!(templates[1]["uriTemplate"], "notes://{file}/outline");
        let read = |uri: &str| sandbox.jp(&["mcp", "read", "notes", uri]);
        assert_eq!(
            read("notes://todo.md").succeeded().stdout,
            "# Tasks\n## Urgent\nCall\n"
        );
        let outline = read("notes://a%20b.md/outline").succeeded().stdout;
        assert_eq!(
            serde_json::from_str::<Value>(&outline).unwrap(),
            json!([{"level": 1, "title": "Spaced"}])
        );
        read("notes://none.md")
            .failed(1)
            .says(["-32602", "there is no resource notes://none.md"]);
    });
}

#[test]
fn what_the_library_serves_is_attached() {
    let server = answering("Yes.");
    with_notes(
        || Sandbox::new().with_server(&server),
        |sandbox, _| {
            sandbox.run("query --new -a mcp+notes+notes://a%20b.md What?");
            assert_contains(last_message(&server), "# Spaced");
            let under = "mcp+notes+notes://{file}/headline/{+path}?file=todo.md&path=Tasks/Urgent";
            sandbox.run(&["query", "--new", "-a", under, "What?"]);
            let message = last_message(&server);
            assert_contains(&message, "notes://todo.md/headline/Tasks/Urgent");
            assert_contains(&message, "Call");
        },
    );
}
