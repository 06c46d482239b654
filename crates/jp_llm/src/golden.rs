//! Requests that have everything, for the providers' own types to judge.
//!
//! With `JP_GOLDEN_DIR` set they are written there, `PROVIDER.json` and without schema and tools
//! `PROVIDER-plain.json`.

use std::{env, fs, path::Path};

use jp_conversation::{ChatRequest, ChatResponse, EventKind, view::thread};
use jp_tool::{ContentBlock, Media};
use serde_json::{Map, Value, json};

use crate::{
    Capabilities, Format, Request, Tool,
    fixtures::{Store, binary, call, request, result, said, stream, text},
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { unreachable!() };
    object
}

fn tools() -> Vec<Tool> {
    let parameters = object(json!({
        "type": "object",
        "properties": {"z": {"type": "string"}, "a": {"type": "integer"}},
        "required": ["z"],
    }));
    vec![Tool { name: "read".to_owned(), description: "Reads a file.".to_owned(), parameters }]
}

fn thought(text: &str, metadata: Value) -> EventKind {
    let metadata = object(metadata);
    EventKind::ChatResponse(ChatResponse { metadata, ..ChatResponse::reasoning(text) })
}

/// Several turns with text, image, PDF and other attachments, parallel calls whose results hold resources,
/// an error, reasoning, an interrupted call, and a question with or without a schema.
fn everything(reasoning: &Value, schema: Option<Value>) -> Vec<EventKind> {
    let image =
        Media { data: PNG.to_vec(), mime_type: "image/png".to_owned(), annotations: None, meta: None };
    let attached = vec![
        text("file:///w/src/main.rs", "fn main() {}\n")
            .with_name("src/main.rs")
            .with_mime_type("text/x-rust"),
        binary("dir/logo.png", "image/png", PNG),
        binary("dir/spec.pdf", "application/pdf", b"%PDF-1.4\n"),
        binary("data.bin", "application/octet-stream", b"\0\x01"),
    ];
    let found = vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(text("file:///w/a.rs#L1-2", "a\nb\n").with_mime_type("text/x-rust")),
        ContentBlock::resource(binary("shot.png", "image/png", PNG)),
        ContentBlock::resource(binary("sheet.pdf", "application/pdf", b"%PDF-1.4\n")),
        ContentBlock::Image(image),
        ContentBlock::resource(binary("x.bin", "application/zip", b"PK")),
    ];
    let schema = schema.map(object);
    vec![
        request("Review these.", attached),
        thought("Let me look.", reasoning.clone()),
        said("I look."),
        call("call_1"),
        call("call_2"),
        result("call_2", true, vec![ContentBlock::text("no such file")]),
        result("call_1", false, found),
        thought("Hm.", json!({"model": "another/model"})),
        said("It is fine."),
        request("And now?", vec![]),
        call("call_3"),
        request("Go on.", vec![text("file:///w/empty", "")]),
        request("Again.", vec![]),
        said("Yes."),
        EventKind::ChatRequest(ChatRequest { schema, ..ChatRequest::new("Is it ok?") }),
    ]
}

fn encoded(label: &str, format: Format, events: Vec<EventKind>, tools: &[Tool]) -> String {
    let mut store = Store::default();
    let stream = stream(events, &mut store);
    let thread = thread(&stream);
    let capabilities = Capabilities {
        images: true,
        pdf: true,
        binary_results: true,
        schema: true,
        ..Capabilities::default()
    };
    let request = Request {
        system: Some("You are jp."),
        tools,
        max_output: Some(4096),
        cache_key: Some("jp-1"),
        capabilities,
        ..Request::new(label, &thread)
    };
    let mut out = Vec::new();
    format.encode(&request, &mut store, &mut out).unwrap();
    assert_eq!(store.asked, thread.blobs());
    String::from_utf8(out).unwrap()
}

fn check(label: &str, reasoning: Value) {
    let (provider, _) = label.split_once('/').unwrap();
    let format = Format::of_provider(provider);
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": false,
    });
    let whole = encoded(label, format, everything(&reasoning, Some(schema)), &tools());
    let plain = encoded(label, format, everything(&reasoning, None), &[]);
    for (name, json) in [(provider.to_owned(), whole), (format!("{provider}-plain"), plain)] {
        serde_json::from_str::<Value>(&json).unwrap();
        if let Some(directory) = env::var_os("JP_GOLDEN_DIR") {
            fs::write(Path::new(&directory).join(name).with_extension("json"), json).unwrap();
        }
    }
}

#[test]
fn llamacpp_request_is_whole() {
    check("llamacpp/qwen3", json!({"model": "llamacpp/qwen3"}));
}

#[test]
fn ollama_request_is_whole() {
    check("ollama/qwen3", json!({"model": "ollama/qwen3", "thinking": true}));
}

#[test]
fn openrouter_request_is_whole() {
    let label = "openrouter/anthropic/claude-sonnet-5.5";
    let detail = json!({
        "type": "reasoning.text",
        "text": "Let me look.",
        "signature": "EqQB",
        "format": "anthropic-claude-v1",
        "index": 0,
    });
    check(label, json!({"model": label, "reasoning_details": [detail]}));
}
