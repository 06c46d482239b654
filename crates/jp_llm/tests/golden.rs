//! Requests of a conversation that has everything, for the providers' own types to judge.
//!
//! They are written where `JP_GOLDEN_DIR` says, or else into a temporary directory: `PROVIDER.json`;
//! `PROVIDER-plain.json` without tools and a schema; `PROVIDER-text.json` for a model that takes nothing but text.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::HashMap,
    convert::Infallible,
    env,
    error::Error,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jp_conversation::{
    ChatRequest, ChatResponse, Event, EventKind, Stream, ToolCallRequest, ToolCallResponse,
    view::{Shown, inline_text, thread},
};
use jp_llm::{Capabilities, Contents, Format, Note, Request, Tool};
use jp_resource::{BlobRef, Resource, ResourceContent, Snapshot};
use jp_tool::{ContentBlock, Media, StoredBlock};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// A provider, and what its model gave with the parts of its answer and wants back.
struct Provider {
    name: &'static str,
    label: &'static str,
    /// For each part of reasoning, beside the model's name.
    reasoning: [Value; 2],
    words: Value,
    call: Value,
    /// What must be in a request, as it came; nothing where reasoning does not go back.
    replayed: &'static [&'static str],
}

fn providers() -> [Provider; 6] {
    let detail = json!({
        "type": "reasoning.text",
        "text": "Let me look.",
        "signature": "EqQBCg==",
        "format": "anthropic-claude-v1",
        "index": 0,
    });
    let encrypted = json!({"type": "reasoning.encrypted", "data": "EmwKAhgB", "index": 0});
    [
        Provider {
            name: "anthropic",
            label: "anthropic/claude-sonnet-5-5",
            reasoning: [
                json!({"signature": "EqQBCg=="}),
                json!({"redacted_thinking": "EmwKAhgB"}),
            ],
            words: json!({}),
            call: json!({}),
            replayed: &["Let me look.", "EqQBCg==", "EmwKAhgB"],
        },
        Provider {
            name: "openai",
            label: "openai/gpt-5.6",
            reasoning: [
                json!({
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "Let me look."}],
                    "encrypted_content": "gAAA",
                }),
                json!({"id": "rs_2", "encrypted_content": "gBBB"}),
            ],
            words: json!({"id": "msg_1", "phase": "commentary"}),
            call: json!({}),
            replayed: &[
                "rs_1",
                "Let me look.",
                "gAAA",
                "rs_2",
                "gBBB",
                "msg_1",
                "commentary",
            ],
        },
        Provider {
            name: "google",
            label: "google/gemini-3-pro",
            reasoning: [
                json!({"thoughtSignature": "c2ln", "thought": true}),
                json!({}),
            ],
            words: json!({"thoughtSignature": "d29yZHM=", "signedBytes": 0}),
            call: json!({"id": "fc_1", "thoughtSignature": "Y2FsbA=="}),
            replayed: &["Let me look.", "c2ln", "d29yZHM=", "fc_1", "Y2FsbA=="],
        },
        Provider {
            name: "openrouter",
            label: "openrouter/anthropic/claude-sonnet-5.5",
            reasoning: [
                json!({"reasoning_details": [detail]}),
                json!({"reasoning_details": [encrypted]}),
            ],
            words: json!({}),
            call: json!({}),
            replayed: &["Let me look.", "EqQBCg==", "EmwKAhgB"],
        },
        Provider {
            name: "ollama",
            label: "ollama/qwen3",
            reasoning: [json!({"thinking": true}), json!({"thinking": true})],
            words: json!({}),
            call: json!({}),
            replayed: &["Let me look."],
        },
        Provider {
            name: "llamacpp",
            label: "llamacpp/qwen3",
            reasoning: [json!({}), json!({})],
            words: json!({}),
            call: json!({}),
            replayed: &[],
        },
    ]
}

/// What a model is asked for, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Variant {
    /// With tools and a schema, for a model that takes all it can.
    Whole,
    /// Without them.
    Plain,
    /// With tools and a schema, for a model that takes nothing but text.
    Text,
}

impl Variant {
    const ALL: [Self; 3] = [Self::Whole, Self::Plain, Self::Text];

    fn file(self, provider: &str) -> String {
        match self {
            Self::Whole => format!("{provider}.json"),
            Self::Plain => format!("{provider}-plain.json"),
            Self::Text => format!("{provider}-text.json"),
        }
    }

    fn capabilities(self) -> Capabilities {
        match self {
            Self::Text => Capabilities {
                tools: true,
                ..Capabilities::default()
            },
            _ => Capabilities {
                images: true,
                pdf: true,
                files: true,
                audio: true,
                binary_results: true,
                schema: true,
                tools: true,
            },
        }
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const PDF: &[u8] = b"%PDF-1.4\n";
const UNKNOWN: &[u8] = b"\x7fELF\x02";

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else {
        panic!("not an object: {value}")
    };
    object
}

fn attached() -> Vec<Resource> {
    let text = |uri, text: &str| Resource::new(uri, ResourceContent::Text(text.to_owned()));
    let mut formatted = text("cmd://git%20log", "raw").with_name("git log");
    formatted.formatted = Some("Fix a bug.".to_owned());
    vec![
        text("file:///w/src/main.rs", "fn main() {}")
            .with_name("src/main.rs")
            .with_mime_type("text/x-rust"),
        formatted,
        binary("dir/logo.png", "image/png", PNG),
        binary("dir/spec.pdf", "application/pdf", PDF),
        binary("core", "application/octet-stream", UNKNOWN),
    ]
}

fn found() -> Vec<ContentBlock> {
    let text = Resource::new(
        "file:///w/a.rs#L1-2",
        ResourceContent::Text("mod b;".to_owned()),
    );
    let media = |mime_type: &str, data: &[u8]| Media {
        data: data.to_owned(),
        mime_type: mime_type.to_owned(),
        annotations: None,
        meta: None,
    };
    vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(text.with_mime_type("text/x-rust")),
        ContentBlock::resource(binary("shot.png", "image/png", b"\x89PNG\r\n\x1a\nshot")),
        ContentBlock::resource(binary("sheet.pdf", "application/pdf", b"%PDF-1.7\n")),
        ContentBlock::resource(binary("x.bin", "application/octet-stream", b"\0\x01")),
        ContentBlock::Image(media("image/png", b"\x89PNG\r\n\x1a\nimage")),
        ContentBlock::Audio(media("audio/wav", b"RIFF")),
    ]
}

fn binary(name: &str, mime_type: &str, bytes: &[u8]) -> Resource {
    let resource = Resource::new(
        format!("file:///w/{name}"),
        ResourceContent::Blob(bytes.to_owned()),
    );
    resource.with_name(name).with_mime_type(mime_type)
}

/// Several turns: attachments of each kind, parallel calls whose results come out of order and hold resources,
/// an error, reasoning of this model and of another, a call without a result, a request without an answer.
fn conversation(provider: &Provider, schema: Option<Value>) -> Vec<EventKind> {
    let Provider {
        label,
        reasoning,
        words,
        call,
        ..
    } = provider;
    let by = |model: &str, metadata: &Value, response| {
        let mut metadata = object(metadata.clone());
        metadata.insert("model".to_owned(), model.into());
        EventKind::ChatResponse(ChatResponse {
            metadata,
            ..response
        })
    };
    let [thought, other_thought] = reasoning;
    let request = |words, resources: Vec<Resource>| {
        let resources = resources.into_iter().map(Snapshot::from).collect();
        EventKind::ChatRequest(ChatRequest {
            resources,
            ..ChatRequest::new(words)
        })
    };
    let last = ChatRequest {
        schema: schema.map(object),
        ..ChatRequest::new("Is it \"ok\"?")
    };
    vec![
        request("Review these.", attached()),
        by(label, thought, ChatResponse::reasoning("Let me look.")),
        by(label, words, ChatResponse::message("I look.")),
        called("call_1", label, call),
        called("call_2", label, &json!({})),
        result("call_2", true, vec![ContentBlock::text("no \"such\" file")]),
        result("call_1", false, found()),
        by(label, other_thought, ChatResponse::reasoning("So it is.")),
        by(label, &json!({}), ChatResponse::message("It is fine.")),
        request("And now?", vec![]),
        called("call_3", label, &json!({})),
        request(
            "Go on.",
            vec![Resource::new(
                "file:///w/empty",
                ResourceContent::Text(String::new()),
            )],
        ),
        request("Again.", vec![]),
        by(
            "another/model",
            thought,
            ChatResponse::reasoning("Another's thought."),
        ),
        by("another/model", words, ChatResponse::message("Yes.")),
        called("odd:id", "another/model", call),
        result("odd:id", false, vec![]),
        EventKind::ChatRequest(last),
    ]
}

fn called(id: &str, model: &str, metadata: &Value) -> EventKind {
    let mut metadata = object(metadata.clone());
    metadata.insert("model".to_owned(), model.into());
    EventKind::ToolCallRequest(ToolCallRequest {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: object(json!({"path": "\"a\"", "line": 1})),
        metadata,
    })
}

fn result(id: &str, is_error: bool, content: Vec<ContentBlock>) -> EventKind {
    EventKind::ToolCallResponse(ToolCallResponse {
        id: id.to_owned(),
        content: content.into_iter().map(StoredBlock::from).collect(),
        is_error,
        structured_content: None,
        meta: Map::new(),
    })
}

fn tools() -> Vec<Tool> {
    let parameters = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["path"],
    });
    vec![Tool {
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: object(parameters),
    }]
}

/// The payloads of a stream.
#[derive(Default)]
struct Blobs(HashMap<BlobRef, Vec<u8>>);

impl Contents for Blobs {
    fn load(&mut self, blob: &BlobRef) -> Result<ResourceContent, Box<dyn Error + Send + Sync>> {
        let bytes = self.0.get(blob).ok_or("no such blob")?;
        Ok(ResourceContent::from_blob(blob, bytes.clone())?)
    }
}

impl Blobs {
    /// Makes a stream of events, their payloads kept aside as a conversation on disk has them.
    fn keep(&mut self, kinds: Vec<EventKind>) -> Stream {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let keep = |kind| {
            let mut event = Event::new(now, kind);
            let kept = event.store_payloads(|bytes, encoding| {
                let blob = BlobRef::for_content(bytes, encoding);
                self.0.insert(blob, bytes.to_owned());
                Ok::<_, Infallible>(blob)
            });
            kept.unwrap();
            event
        };
        Stream::from_events(kinds.into_iter().map(keep).collect())
    }
}

fn encoded(provider: &Provider, variant: Variant) -> (String, Vec<Note>) {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": false,
    });
    let (schema, tools) = match variant {
        Variant::Plain => (None, vec![]),
        _ => (Some(schema), tools()),
    };
    let mut blobs = Blobs::default();
    let stream = blobs.keep(conversation(provider, schema));
    let thread = thread(&stream);
    let request = Request {
        system: Some("You are jp."),
        tools: &tools,
        max_output: Some(4096),
        cache_key: Some("jp-1"),
        capabilities: variant.capabilities(),
        ..Request::new(provider.label, &thread)
    };
    let mut out = Vec::new();
    let format = Format::of_provider(provider.name);
    let notes = format.encode(&request, &mut blobs, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), notes)
}

#[test]
fn equal_conversations_give_equal_bytes() {
    for provider in providers() {
        for variant in Variant::ALL {
            let file = variant.file(provider.name);
            assert_eq!(
                encoded(&provider, variant),
                encoded(&provider, variant),
                "{file}"
            );
        }
    }
}

/// Encodes one call with its result.
fn encoded_result(provider: &Provider, stream: &Stream, blobs: &mut Blobs) -> String {
    let thread = thread(stream);
    let request = Request {
        tools: &tools(),
        capabilities: Variant::Whole.capabilities(),
        ..Request::new(provider.label, &thread)
    };
    let mut out = Vec::new();
    Format::of_provider(provider.name)
        .encode(&request, blobs, &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn long_result_is_cut_alike_for_every_provider_wherever_its_text_is() {
    let lines = "line\n".repeat(1000);
    let long = |name: &str| format!("{name} begins\n{lines}MIDDLE\n{lines}{name} ends\n");
    let mut formatted = Resource::new("file:///a.rs", ResourceContent::Text("raw".to_owned()));
    formatted.formatted = Some(long("formatted"));
    let resource = Resource::new("file:///b.rs", ResourceContent::Text(long("resource")));
    let blocks = [
        ContentBlock::text(long("text")),
        ContentBlock::resource(resource),
        ContentBlock::resource(formatted),
    ];
    let mut content: Vec<StoredBlock> = blocks.into_iter().map(Into::into).collect();
    content.iter_mut().for_each(|block| {
        let shown = Shown::within(inline_text(block).unwrap(), 400);
        Shown::mark(shown, block);
    });
    for provider in providers() {
        for is_error in [false, true] {
            let response = ToolCallResponse {
                id: "1".to_owned(),
                content: content.clone(),
                is_error,
                structured_content: None,
                meta: Map::new(),
            };
            let kinds = vec![
                EventKind::ChatRequest(ChatRequest::new("Look.")),
                called("1", provider.label, &provider.call),
                EventKind::ToolCallResponse(response),
            ];
            let now = "2026-11-21T12:00:00Z".parse().unwrap();
            let inline = Stream::from_events(
                kinds
                    .iter()
                    .map(|kind| Event::new(now, kind.clone()))
                    .collect(),
            );
            let mut blobs = Blobs::default();
            let stored = blobs.keep(kinds);
            let body = encoded_result(&provider, &stored, &mut blobs);
            assert_eq!(
                body,
                encoded_result(&provider, &inline, &mut Blobs::default()),
                "{}",
                provider.name
            );
            for name in ["text", "resource", "formatted"] {
                assert!(
                    body.contains(&format!("{name} begins\\n")),
                    "{}",
                    provider.name
                );
                assert!(
                    body.contains(&format!("{name} ends\\n")),
                    "{}",
                    provider.name
                );
            }
            assert_eq!(
                body.matches(" bytes are left out here; ").count(),
                3,
                "{}",
                provider.name
            );
            assert!(
                !body.contains("MIDDLE") && body.len() < 8000,
                "{}",
                provider.name
            );
        }
    }
}

/// Every attachment and every result is in the request: its text, its bytes, or a note that names it.
#[test]
fn nothing_of_the_conversation_is_lost() {
    for provider in providers() {
        for variant in Variant::ALL {
            let (json, mut notes) = encoded(&provider, variant);
            let file = variant.file(provider.name);
            // What is left out and has no bytes: a schema, which the model is told in words.
            notes.retain(|note| note.bytes.is_some());
            let subjects: Vec<&str> = notes.iter().map(|note| &*note.subject).collect();
            let texts = [
                "fn main() {}",
                "Fix a bug.",
                "Found:",
                "mod b;",
                "such",
                "Go on.",
                "It is fine.",
            ];
            for text in texts {
                assert!(json.contains(text), "{file}: {text}");
            }
            for (name, bytes) in binaries() {
                let is_shown = json.contains(&STANDARD.encode(&bytes));
                assert!(
                    is_shown != subjects.contains(&&*name),
                    "{file}: {name}, notes of {subjects:?}"
                );
            }
            assert_eq!(json.matches("not shown: ").count(), notes.len(), "{file}");
            // The image and the sound among the results have no name.
            let all = binaries().len() + 2;
            assert!(
                variant != Variant::Text || notes.len() == all,
                "{file}: {subjects:?}"
            );
            let has_schema = json.replace('\\', "").contains(r#""required":["ok"]"#);
            assert_eq!(has_schema, variant != Variant::Plain, "{file}: the schema");
        }
    }
}

/// A reference names a resource by its URI, so a model must have seen that beside the content.
#[test]
fn label_of_a_binary_stands_before_its_content() {
    for provider in providers() {
        for variant in Variant::ALL {
            let (json, _) = encoded(&provider, variant);
            let file = variant.file(provider.name);
            for (name, bytes) in binaries() {
                // Gemini's results name their parts by number, in a field whose place says nothing.
                let is_numbered = provider.name == "google" && !name.contains('/');
                let content = json.find(&STANDARD.encode(&bytes)).filter(|_| !is_numbered);
                let before = &json[..content.unwrap_or(json.len())];
                let uri = before.find(&format!("file:///w/{name}"));
                let uri = uri.unwrap_or_else(|| {
                    panic!("{file}: the URI of {name} is not before its content")
                });
                let label = &before[uri.saturating_sub(100)..];
                assert!(
                    label.matches(&name).count() > 1,
                    "{file}: no name of {name}: {label}"
                );
            }
        }
    }
}

/// Returns the names and the bytes of what is attached or in a result and no text.
fn binaries() -> Vec<(String, Vec<u8>)> {
    let resources = found().into_iter().filter_map(|block| match block {
        ContentBlock::Resource { resource, .. } => Some(resource),
        _ => None,
    });
    let binary = |resource: Resource| match resource.content {
        ResourceContent::Blob(bytes) => Some((resource.name?, bytes)),
        ResourceContent::Text(_) => None,
    };
    attached()
        .into_iter()
        .chain(resources)
        .filter_map(binary)
        .collect()
}

#[test]
fn reasoning_goes_back_to_the_model_that_made_it() {
    for provider in providers() {
        let (json, _) = encoded(&provider, Variant::Whole);
        for text in provider.replayed {
            assert!(json.contains(text), "{}: {text}", provider.name);
        }
        assert!(!json.contains("Another's thought."), "{}", provider.name);
    }
}

/// Written requests, by provider.
struct Golden {
    files: Vec<(&'static str, PathBuf)>,
    _temporary: TempDir,
}

impl Golden {
    /// Writes them into a directory; into a temporary one where none is asked for.
    fn write(asked: Option<PathBuf>) -> Self {
        let temporary = TempDir::new().unwrap();
        let directory = asked.unwrap_or_else(|| temporary.path().to_owned());
        let mut files = Vec::new();
        for provider in providers() {
            for variant in Variant::ALL {
                let path = directory.join(variant.file(provider.name));
                fs::write(&path, encoded(&provider, variant).0).unwrap();
                files.push((provider.name, path));
            }
        }
        Self {
            files,
            _temporary: temporary,
        }
    }
}

#[test]
fn golden_requests_are_accepted_by_the_types_of_the_providers() {
    let golden = Golden::write(env::var_os("JP_GOLDEN_DIR").map(PathBuf::from));
    let Some(output) = check(&golden.files) else {
        return;
    };
    assert!(output.status.success(), "{}", told(&output));
}

/// Has `scripts/check_request` judge files; `None`, with the reason printed, where it can't.
fn check(files: &[(&str, PathBuf)]) -> Option<Output> {
    let mut command = python()?;
    command.arg(root().join("scripts/check_request"));
    command.args(
        files
            .iter()
            .map(|(provider, path)| format!("{provider}={}", path.display())),
    );
    let output = command.output().unwrap();
    match output.status.code() {
        Some(0 | 1) => Some(output),
        Some(3) => {
            skip(&String::from_utf8_lossy(&output.stderr));
            None
        }
        _ => panic!("{}", told(&output)),
    }
}

/// Returns Python with the SDKs that `scripts/get_sdks` installed; `None`, with the reason printed, without.
fn python() -> Option<Command> {
    let packages = root().join(".local/sdks");
    if !packages.is_dir() {
        skip("no SDKs of the providers; scripts/get_sdks installs them");
        return None;
    }
    let mut command =
        Command::new(env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3")));
    command.env("PYTHONPATH", packages);
    Some(command)
}

/// Says why a test does not check what its name says.
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
fn skip(reason: &str) {
    println!("skipped: {reason}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn told(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{}\n{stdout}{stderr}", output.status)
}

/// Has a checker that others wrote, beside this repository, judge each file.
#[test]
fn second_opinion_agrees() {
    // In one process: what takes its time is loading the SDKs.
    const EACH: &str = "
import runpy, sys
tool, *pairs = sys.argv[1:]
for pair in pairs:
    sys.argv = [tool, *pair.split('=', 1)]
    try:
        runpy.run_path(tool, run_name='__main__')
    except SystemExit as end:
        if end.code:
            raise
";
    let Some(tool) = shared("tools/validate_requests.py") else {
        return;
    };
    let Some(mut python) = python() else { return };
    let golden = Golden::write(None);
    let named = |(provider, path): &(&str, PathBuf)| {
        let provider = if *provider == "google" {
            "gemini"
        } else {
            provider
        };
        format!("{provider}={}", path.display())
    };
    let output = python
        .args(["-c", EACH])
        .arg(tool)
        .args(golden.files.iter().map(named))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let accepted = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.starts_with("OK "))
        .count();
    assert_eq!(accepted, golden.files.len(), "{}", told(&output));
}

/// Returns what stands beside this repository; `None`, with the reason printed, where there is no such thing.
fn shared(path: &str) -> Option<PathBuf> {
    let path = root().join("../shared").join(path);
    if !path.exists() {
        skip(&format!("there is no {}", path.display()));
        return None;
    }
    Some(path)
}

#[test]
fn provider_examples_are_judged_as_they_are() {
    let Some(directory) = shared("data/provider-examples") else {
        return;
    };
    let examples = [
        ("anthropic", "anthropic"),
        ("openai", "openai"),
        ("google", "gemini"),
        ("openrouter", "openrouter"),
        ("ollama", "ollama"),
        ("llamacpp", "openai-chat"),
    ];
    let files = |end: &str| {
        examples.map(|(provider, name)| (provider, directory.join(format!("{name}{end}"))))
    };
    let (right, wrong) = (files(".json"), files(".bad.json"));
    let Some(output) = check(&[right, wrong].concat()) else {
        return;
    };
    let has_fault = |file: &Path| {
        faults(&output).any(|fault| fault.starts_with(&format!("{}: ", file.display())))
    };
    for ((_, right), (_, wrong)) in files(".json").iter().zip(&files(".bad.json")) {
        assert!(
            !has_fault(right),
            "{} is refused: {}",
            right.display(),
            told(&output)
        );
        assert!(has_fault(wrong), "{} is accepted", wrong.display());
    }
}

/// How a request is broken.
#[derive(Clone)]
enum Change {
    Add(&'static str),
    Remove(&'static str),
    Set(&'static str, Value),
}

/// What is broken in a provider's whole request: the object, as a JSON pointer, and in what way.
///
/// Of each: an unknown key in an attachment and one in a result of a tool, a value of a wrong type deep in a list,
/// something that is missing, and what only a rule forbids.
fn broken() -> Vec<(&'static str, &'static str, Change)> {
    use Change::{Add, Remove, Set};
    let number = || json!(5);
    vec![
        (
            "anthropic",
            "/messages/0/content/3/source/content/0/source",
            Add("colour"),
        ),
        (
            "anthropic",
            "/messages/2/content/0/content/2/source/content/0",
            Add("colour"),
        ),
        (
            "anthropic",
            "/messages/2/content/0/content/0",
            Set("text", number()),
        ),
        (
            "anthropic",
            "/messages/2/content/0/content/1/source",
            Remove("media_type"),
        ),
        ("anthropic", "/messages/2/content/1", Remove("tool_use_id")),
        ("anthropic", "/messages/1/content/0", Add("cache_control")),
        (
            "anthropic",
            "/messages/4/content/0",
            Set("text", json!(" ")),
        ),
        ("openai", "/input/1/content/6", Add("colour")),
        ("openai", "/input/6/output/5", Add("colour")),
        ("openai", "/input/3/content/0", Set("text", number())),
        ("openai", "/input/2/summary/0", Set("text", number())),
        ("openai", "/input/6/output/0", Remove("text")),
        ("openai", "/input/7", Set("call_id", json!("another"))),
        ("google", "/contents/0/parts/4/inlineData", Add("colour")),
        (
            "google",
            "/contents/2/parts/0/functionResponse/parts/0/inlineData",
            Add("colour"),
        ),
        (
            "google",
            "/contents/1/parts/3/functionCall",
            Set("args", number()),
        ),
        (
            "google",
            "/contents/0/parts/6/inlineData",
            Set("data", json!("%PDF")),
        ),
        ("google", "", Remove("contents")),
        ("google", "/contents/0", Remove("role")),
        ("llamacpp", "/messages/1/content/6/file", Add("colour")),
        ("llamacpp", "/messages/3", Add("name")),
        ("llamacpp", "/messages/5/content/0", Set("text", number())),
        ("llamacpp", "/messages/2/tool_calls/1", Remove("id")),
        (
            "llamacpp",
            "/messages/2/tool_calls/0/function",
            Set("arguments", json!("{")),
        ),
        (
            "openrouter",
            "/messages/1/content/4/image_url",
            Add("colour"),
        ),
        ("openrouter", "/messages/3/content/5/file", Add("colour")),
        (
            "openrouter",
            "/messages/2/reasoning_details/0",
            Set("text", number()),
        ),
        ("openrouter", "/messages/3", Remove("tool_call_id")),
        (
            "openrouter",
            "/messages/1/content/6/file",
            Set("file_data", json!("spec.pdf")),
        ),
        ("ollama", "/messages/1", Add("colour")),
        ("ollama", "/messages/3", Add("name")),
        (
            "ollama",
            "/messages/2/tool_calls/0/function",
            Set("arguments", json!("{}")),
        ),
        (
            "ollama",
            "/messages/2/tool_calls/1/function",
            Remove("name"),
        ),
        ("ollama", "/messages/11", Set("role", json!("person"))),
    ]
}

#[test]
fn broken_requests_are_refused_where_they_are_broken() {
    let directory = TempDir::new().unwrap();
    let mut files = Vec::new();
    let mut expected = Vec::new();
    for (index, (name, pointer, change)) in broken().into_iter().enumerate() {
        let provider = providers()
            .into_iter()
            .find(|provider| provider.name == name)
            .unwrap();
        let mut body: Value = serde_json::from_str(&encoded(&provider, Variant::Whole).0).unwrap();
        let place = make(change, pointer, &mut body);
        let path = directory.path().join(format!("{name}-{index}.json"));
        fs::write(&path, body.to_string()).unwrap();
        expected.push(format!("{}: {place}: ", path.display()));
        files.push((name, path));
    }
    let Some(output) = check(&files) else { return };
    for expected in expected {
        assert!(
            faults(&output).any(|fault| fault.starts_with(&expected)),
            "no {expected:?} in {}",
            told(&output)
        );
    }
}

/// Breaks a body and returns the place of it, as the checker writes it.
fn make(change: Change, pointer: &str, body: &mut Value) -> String {
    let object = body.pointer_mut(pointer).and_then(Value::as_object_mut);
    let object = object.unwrap_or_else(|| panic!("no object at {pointer}"));
    let key = match change {
        Change::Add(key) => {
            assert!(
                object.insert(key.to_owned(), "x".into()).is_none(),
                "{pointer} has {key}"
            );
            key
        }
        Change::Remove(key) => {
            assert!(object.remove(key).is_some(), "{pointer} has no {key}");
            key
        }
        Change::Set(key, value) => {
            assert!(
                object.insert(key.to_owned(), value).is_some(),
                "{pointer} has no {key}"
            );
            key
        }
    };
    let steps = pointer.split('/').skip(1).chain([key]);
    let place: String = steps
        .map(|step| {
            if step.parse::<usize>().is_ok() {
                format!("[{step}]")
            } else {
                format!(".{step}")
            }
        })
        .collect();
    place.trim_start_matches('.').to_owned()
}

/// Returns the faults that the checker found.
fn faults(output: &Output) -> impl Iterator<Item = &str> {
    str::from_utf8(&output.stdout).unwrap().lines()
}
