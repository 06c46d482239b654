//! Every `jp` command of the documentation runs.

use std::{fs, path::Path, process::Command};
use testing::{Reply, Sandbox, Server, run};

/// Returns the commands in a page's `sh` blocks, one block after the other.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    blocks
        .flat_map(str::lines)
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

/// Runs a page's commands in a workspace with three files, a conversation and a model.
fn runs(page: &str, answer: &'static str) {
    runs_with(page, answer, |_| ());
}

fn runs_with(page: &str, answer: &'static str, prepare: impl FnOnce(&Sandbox)) {
    let (sandbox, _) = Sandbox::with_model(Server::scripted(move |_, path| match path {
        "/v1/models" => Reply::json(200, r#"{"data":[{"id":"m"}]}"#),
        "/props" => Reply::json(404, "{}"),
        _ => Reply::words(&[answer]),
    }));
    sandbox.write("README.md", "# Read me\n");
    sandbox.write("src/main.rs", "fn main() {}\n");
    sandbox.write("src/generated/x.rs", "// made\n");
    sandbox.run("q --new -a README.md first");
    prepare(&sandbox);
    let bin = Path::new(env!("CARGO_BIN_EXE_jp")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(bin.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let commands = commands(page);
    assert!(!commands.is_empty(), "{page} has no commands");
    for line in commands {
        assert!(line.starts_with("jp "), "{page}: {line}");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &line])
            .current_dir(&sandbox.root)
            .env_clear();
        shell
            .env("HOME", &sandbox.home)
            .env("PATH", &path)
            .stdin(std::process::Stdio::null());
        let run = run(shell);
        assert_eq!(run.code, 0, "{page}: {line}\n{}{}", run.stdout, run.stderr);
    }
}

#[test]
fn attachments_page_runs() {
    runs("docs/attachments.md", "Yes.");
}

#[test]
fn uris_page_runs() {
    runs("docs/uris.md", "Yes.");
}

#[test]
fn compaction_page_runs() {
    runs("docs/compaction.md", "Yes.");
}

#[test]
fn storage_page_runs() {
    runs("docs/storage.md", "Yes.");
}

#[test]
fn delivery_page_runs() {
    runs("docs/delivery.md", "Yes.");
}

#[test]
fn tools_page_runs() {
    runs("docs/tools.md", "Yes.");
}

#[test]
fn permissions_page_runs() {
    runs("docs/permissions.md", "Yes.");
}

#[test]
fn settings_page_runs() {
    runs("docs/settings.md", "Yes.");
}

#[test]
fn json_page_runs() {
    runs("docs/json.md", "Yes.");
}

#[test]
fn exit_codes_page_runs() {
    runs("docs/exit-codes.md", "Yes.");
}

#[test]
fn models_page_runs() {
    runs("docs/models.md", r#"{"title": "Yes.", "risks": []}"#);
}

#[test]
fn mcp_page_runs() {
    runs_with("docs/mcp.md", "Yes.", |sandbox| {
        let program = sandbox.write("~/notes.py", testing::programs::NOTES);
        let settings = format!(
            "[providers.mcp.docs]\ncommand = [\"python3\", \"{}\"]\n",
            program.display()
        );
        sandbox.configure(settings);
    });
}

/// Returns the part of the JSON page that describes a command: from its name to the next section.
fn json_section(heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = fs::read_to_string(path).unwrap();
    let section = page.split_once(&format!("\n## {heading}\n")).unwrap().1;
    let shapes = page.split_once("\n## query\n").unwrap().1;
    let shapes = shapes.split_once("\n## query --explain").unwrap().0;
    format!("{}{shapes}", section.split("\n## ").next().unwrap())
}

/// Collects the keys of a document, and those of the documents in it but for free-form values.
fn collect_keys(value: &serde_json::Value, keys: &mut Vec<String>) {
    const FREE: [&str; 6] = [
        "annotations",
        "arguments",
        "by_model",
        "inputSchema",
        "request",
        "value",
    ];
    match value {
        serde_json::Value::Array(list) => list.iter().for_each(|value| collect_keys(value, keys)),
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                keys.push(key.clone());
                if !FREE.contains(&key.as_str()) {
                    collect_keys(value, keys);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn json_page_names_every_key_that_commands_print() {
    let (sandbox, _) = Sandbox::with_model(testing::answering("Yes."));
    sandbox.write("README.md", "# Read me\n");
    let program = sandbox.write("~/notes.py", testing::programs::NOTES);
    let settings = format!("providers.mcp.docs.command = [\"python3\", {program:?}]\n");
    sandbox.configure(settings);
    let commands: &[(&str, &[&str])] = &[
        ("query", &["query", "--new", "-a", "README.md", "first"]),
        ("query --explain", &["query", "--explain", "second"]),
        ("attachment", &["attachment", "ls"]),
        ("attachment", &["attachment", "print"]),
        ("attachment", &["attachment", "add", "data:text/plain,x"]),
        ("attachment", &["attachment", "rm", "data:text/plain,x"]),
        ("resource", &["resource", "ls"]),
        ("resource", &["resource", "show", "README.md"]),
        ("resource", &["resource", "refresh"]),
        ("conversation", &["conversation", "ls"]),
        ("conversation", &["conversation", "show"]),
        ("conversation", &["conversation", "print"]),
        ("conversation", &["conversation", "print", "--as-sent"]),
        (
            "conversation",
            &["conversation", "compact", "--keep-last", "0"],
        ),
        ("conversation", &["conversation", "fork"]),
        ("config, model and storage", &["init"]),
        ("config, model and storage", &["config", "show"]),
        ("config, model and storage", &["storage", "status"]),
        ("config, model and storage", &["storage", "check"]),
        ("mcp", &["mcp", "ls"]),
        ("mcp", &["mcp", "ls", "docs"]),
        ("mcp", &["mcp", "resources"]),
        ("mcp", &["mcp", "templates"]),
        ("mcp", &["mcp", "read", "docs", "note:one"]),
    ];
    for (heading, command) in commands {
        let run = sandbox.jp(&[command, &["--format", "json"][..]].concat());
        let document = serde_json::from_str(&run.succeeded().stdout).unwrap();
        let mut keys = Vec::new();
        collect_keys(&document, &mut keys);
        assert!(!keys.is_empty(), "{command:?}");
        let section = json_section(heading);
        for key in keys {
            let is_named =
                section.contains(&format!("\"{key}\"")) || section.contains(&format!("`{key}`"));
            assert!(is_named, "{command:?} prints {key}: {document}");
        }
    }
}
