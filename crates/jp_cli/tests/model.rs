//! A real model: llama.cpp with SmolLM2, on loopback.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use testing::{Background, Sandbox};

struct Model {
    _server: Background,
    url: String,
}

/// Starts the model that `scripts/get_model` installed, or says why it can't; its answers are cut off.
fn model(max_tokens: &str) -> Option<Model> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages: PathBuf = root.join(".local/model");
    if !packages.is_dir() {
        testing::skip("no local model; scripts/get_model installs it");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(root.join("scripts/serve_model.py"));
    command.args(["--port", "0", "--ctx", "4096", "--seconds", "600"]);
    command.args(["--max-tokens", max_tokens, "--temperature", "0"]);
    command.env("PYTHONPATH", packages);
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let (_server, line) = Background::announce(&mut command);
    let ready: Value =
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    let url = ready["base_url"].as_str().unwrap().to_owned();
    Some(Model { _server, url })
}

#[test]
fn cache_of_a_real_model_stays_warm() {
    let Some(model) = model("24") else { return };
    let sandbox = Sandbox::new().with_url(&model.url);
    let text =
        "fn main() {\n    println!(\"The lighthouse keeper lives in Brest.\");\n}\n".repeat(20);
    sandbox.write("src/main.rs", text);
    let first = sandbox.json("q --new -a src/ 'What does this print?'");
    assert!(
        !first["answer"].as_str().unwrap().trim().is_empty(),
        "{first}"
    );
    let prompt = first["usage"]["input"].as_u64().unwrap();
    assert!(prompt > 300, "{first}");
    let second = sandbox.json("q 'And why?'");
    let cached = second["usage"]["cached_read"].as_u64().unwrap();
    assert!(
        cached * 100 >= prompt * 95,
        "{cached} of {prompt} tokens came from the cache"
    );
    assert_eq!(sandbox.json("c show")["turns"], 2);
    // Its template has no place for tools: the server would drop them without a word.
    assert_eq!(
        sandbox.json("model ls llamacpp")[0]["takes"]["tools"],
        false
    );
}

/// The server's grammar lets 22 characters of white space stand at each of five places, and which of them the model
/// takes differs by processor: the limit is above any of them.
#[test]
fn schema_holds_for_a_real_model() {
    let Some(model) = model("160") else { return };
    let sandbox = Sandbox::new().with_url(&model.url);
    let schema = r#"{"type":"object","properties":{"prints":{"type":"boolean"}},"required":["prints"],"additionalProperties":false}"#;
    let answer = sandbox.json(&["q", "--new", "-s", schema, "Does println! print?"]);
    assert!(answer["structured"]["prints"].is_boolean(), "{answer}");
}

/// The tokens of a prompt that llama.cpp read, and those in its cache.
#[derive(Debug, Clone, Copy)]
struct Read {
    input: u64,
    cached: u64,
}

#[test]
fn twenty_turns_with_attachments_keep_the_cache_of_a_real_model_warm() {
    let Some(model) = model("4") else { return };
    let sandbox = Sandbox::new().with_url(&model.url);
    let reads: Vec<Read> = (1..=20).map(|turn| ask(&sandbox, turn)).collect();
    let warm = |pair: &[Read]| pair[1].cached * 100 / pair[0].input;
    let percent: Vec<u64> = reads.windows(2).map(warm).collect();
    report(&format!(
        "{reads:?}\nof the previous prompt, in percent: {percent:?}"
    ));
    assert!(reads[19].input > 700, "{reads:?}");
    assert!(
        percent.iter().all(|percent| *percent >= 95),
        "{percent:?} of {reads:?}"
    );
}

/// Asks something, in most turns with something attached.
fn ask(sandbox: &Sandbox, turn: u32) -> Read {
    let write = |path: &str, words: &str| sandbox.write(path, format!("{words}, turn {turn}\n"));
    let file = match turn % 10 {
        1 => Some(write("src/lib.rs", "fn lighthouse() {} // changes")),
        3 => Some(write(&format!("log/{turn}.md"), "- The keeper's log")),
        4 => Some(write("~/notes.txt", "A note from outside the workspace")),
        6 => write("src/lib.rs", "fn lighthouse() {} // changes")
            .parent()
            .map(Path::to_owned),
        9 => Some(write("~/notes.txt", "It changes as well")),
        _ => None,
    };
    let file = file.map(|path| testing::shown(&path));
    let words = format!("What is new? ({turn})");
    let attach = file.iter().flat_map(|file| ["-a", file]);
    let new = (turn == 1).then_some("--new");
    let arguments: Vec<&str> = ["q"]
        .into_iter()
        .chain(new)
        .chain(attach)
        .chain([words.as_str()])
        .collect();
    let answer = sandbox.json(&arguments);
    let figure = |name: &str| {
        answer["usage"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name}: {answer}"))
    };
    Read {
        input: figure("input"),
        cached: figure("cached_read"),
    }
}

/// Shows figures to who runs the test with `--nocapture`.
#[expect(clippy::print_stderr, reason = "figures are for people")]
fn report(figures: &str) {
    eprintln!("{figures}");
}
