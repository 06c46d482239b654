//! A real model: llama.cpp with SmolLM2, on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use support::Sandbox;

struct Model {
    process: Child,
    url: String,
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the model that `scripts/get_model` installed, or says why it can't.
fn model() -> Option<Model> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages: PathBuf = root.join(".local/model");
    if !packages.is_dir() {
        support::skip("no local model; scripts/get_model installs it");
        return None;
    }
    let mut process = Command::new("python3")
        .arg(root.join("scripts/serve_model.py"))
        .args([
            "--port",
            "0",
            "--ctx",
            "4096",
            "--seconds",
            "300",
            "--max-tokens",
            "24",
            "--temperature",
            "0",
        ])
        .env("PYTHONPATH", packages)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    let url = ready["base_url"].as_str().unwrap().to_owned();
    Some(Model { process, url })
}

#[test]
fn real_model_answers_about_an_attached_file_and_its_cache_stays_warm() {
    let Some(model) = model() else { return };
    let sandbox = Sandbox::new().with_url(&model.url);
    let text = "fn main() {\n    println!(\"The lighthouse keeper lives in Brest.\");\n}\n".repeat(20);
    sandbox.write("src/main.rs", text);
    let first = sandbox.json(&["q", "--new", "-a", "src/", "What does this print?"]);
    assert!(!first["answer"].as_str().unwrap().trim().is_empty(), "{first}");
    let prompt = first["usage"]["input"].as_u64().unwrap();
    assert!(prompt > 300, "{first}");
    let second = sandbox.json(&["q", "And why?"]);
    let cached = second["usage"]["cached_read"].as_u64().unwrap();
    assert!(cached * 100 >= prompt * 95, "{cached} of {prompt} tokens came from the cache");
    assert_eq!(sandbox.json(&["c", "show"])["turns"], 2);
}
