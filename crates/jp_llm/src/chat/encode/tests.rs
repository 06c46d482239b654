use jp_conversation::{ChatRequest, EventKind, view::thread};
use jp_resource::{BlobRef, Encoding, Resource, ResourceContent};
use jp_tool::ContentBlock;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{Store, any_steps, binary, call, request, result, said, stream, text, thought};

const ALL: Capabilities =
    Capabilities { images: true, pdf: true, files: true, audio: false, binary_results: false, schema: true };
const TEXT_ONLY: Capabilities = Capabilities { schema: true, ..NOTHING };
const NOTHING: Capabilities = Capabilities {
    images: false,
    pdf: false,
    files: false,
    audio: false,
    binary_results: false,
    schema: false,
};

fn encoded(kinds: Vec<EventKind>, capabilities: Capabilities) -> (String, Vec<String>) {
    let mut store = Store::default();
    let stream = stream(kinds, &mut store);
    let thread = thread(&stream);
    let request = Request { system: Some("You are jp."), capabilities, ..Request::new("p/m", &thread) };
    let mut out = Vec::new();
    let notes = encode(&request, &mut store, &mut out).unwrap();
    assert_eq!(store.asked, thread.blobs(), "payloads are asked for in the thread's order");
    (String::from_utf8(out).unwrap(), notes.iter().map(Note::to_string).collect())
}

/// The messages, one a line.
fn messages(kinds: Vec<EventKind>, capabilities: Capabilities) -> String {
    let (json, _) = encoded(kinds, capabilities);
    let body: Value = serde_json::from_str(&json).unwrap();
    let messages = body["messages"].as_array().unwrap();
    messages.iter().skip(1).map(|message| format!("{message}\n")).collect()
}

#[test]
fn whole_request_has_fixed_order() {
    let mut question = ChatRequest::new("Is it \"ok\"?");
    question.schema =
        serde_json::from_str(r#"{"type":"object","properties":{"ok":{"type":"boolean"}}}"#).unwrap();
    let (json, _) = encoded(vec![request("Hi", vec![]), said("Ho"), EventKind::ChatRequest(question)], ALL);
    insta::assert_snapshot!(json, @r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}},"messages":[{"role":"system","content":"You are jp."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"},{"role":"user","content":"Is it \"ok\"?"}]}"#);
}

#[test]
fn attached_text_follows_the_words_as_parts() {
    let mut formatted = text("cmd://x", "raw").with_name("x");
    formatted.formatted = Some("shown".to_owned());
    let resources = vec![
        text("file:///src/main.rs", "fn main() {}\n").with_name("src/main.rs").with_mime_type("text/x-rust"),
        text("file:///a&b", "</Resource>"),
        text("file:///empty", ""),
        formatted,
    ];
    insta::assert_snapshot!(messages(vec![request("Review.", resources.clone()), request("", resources)], ALL), @r#"
    {"role":"user","content":[{"type":"text","text":"Review."},{"type":"text","text":"<resource uri=\"file:///src/main.rs\" name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"type":"text","text":"<resource uri=\"file:///a&amp;b\">\n<\\/Resource>\n</resource>"},{"type":"text","text":"<resource uri=\"file:///empty\">\n</resource>"},{"type":"text","text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":[{"type":"text","text":"<resource uri=\"file:///src/main.rs\" name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"type":"text","text":"<resource uri=\"file:///a&amp;b\">\n<\\/Resource>\n</resource>"},{"type":"text","text":"<resource uri=\"file:///empty\">\n</resource>"},{"type":"text","text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    "#);
}

#[test]
fn images_and_pdf_are_shown_to_models_that_take_them_and_named_to_others() {
    let resources = || {
        vec![
            binary("dir/logo.png", "image/png", b"\x89PNG"),
            binary("photo", "Image/JPEG; q=1", b"\xff\xd8"),
            binary("dir/spec.pdf", "application/pdf", b"%PDF-"),
            binary("scan.tiff", "image/tiff", b"II*\0"),
            Resource::new("x:unknown", ResourceContent::Blob(vec![0])),
            text("file:///a.svg", "<svg/>").with_mime_type("image/svg+xml"),
        ]
    };
    let (_, notes) = encoded(vec![request("See.", resources())], TEXT_ONLY);
    insta::assert_snapshot!(messages(vec![request("See.", resources())], ALL), @r#"{"role":"user","content":[{"type":"text","text":"See."},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9g="}},{"type":"file","file":{"filename":"spec.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not take image/tiff; 4 bytes]</resource>"},{"type":"text","text":"<resource uri=\"x:unknown\">[not shown: this model does not take application/octet-stream; 1 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///a.svg\" mimeType=\"image/svg+xml\">\n<svg/>\n</resource>"}]}"#);
    insta::assert_snapshot!(messages(vec![request("See.", resources())], TEXT_ONLY), @r#"{"role":"user","content":[{"type":"text","text":"See."},{"type":"text","text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[not shown: this model does not take image/png; 4 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[not shown: this model does not take image/jpeg; 2 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///dir/spec.pdf\" name=\"dir/spec.pdf\" mimeType=\"application/pdf\">[not shown: this model does not take application/pdf; 5 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not take image/tiff; 4 bytes]</resource>"},{"type":"text","text":"<resource uri=\"x:unknown\">[not shown: this model does not take application/octet-stream; 1 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///a.svg\" mimeType=\"image/svg+xml\">\n<svg/>\n</resource>"}]}"#);
    insta::assert_snapshot!(notes.join("\n"), @r#"
    dir/logo.png is not shown: this model does not take image/png (4 bytes)
    photo is not shown: this model does not take image/jpeg (2 bytes)
    dir/spec.pdf is not shown: this model does not take application/pdf (5 bytes)
    scan.tiff is not shown: this model does not take image/tiff (4 bytes)
    x:unknown is not shown: this model does not take application/octet-stream (1 bytes)
    "#);
}

#[test]
fn tool_calls_and_results_are_text() {
    let media = Media { data: vec![1, 2], mime_type: "audio/wav".to_owned(), annotations: None, meta: None };
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(text("file:///a.rs#L1-2", "a\nb\n").with_mime_type("text/rust")),
        ContentBlock::text("x".repeat(300)),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
        ContentBlock::Audio(media),
    ];
    let kinds = vec![
        request("Go", vec![]),
        thought("hm"),
        said("I look"),
        said(" now."),
        call("1"),
        call(""),
        result("", true, vec![ContentBlock::text("no \"such\" file")]),
        result("1", false, blocks),
        thought("only reasoning"),
        request("Go on", vec![]),
        call("1"),
    ];
    insta::assert_snapshot!(messages(kinds.clone(), ALL), @r#"
    {"role":"user","content":"Go"}
    {"role":"assistant","content":"I look now.","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}},{"id":"","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"1","content":"Found:\n```rs (file:///a.rs, lines 1-2)\na\nb\n```\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[a.png is not shown: results of tools are text, this is image/png; 4 bytes]\n[a result of `read` is not shown: results of tools are text, this is audio/wav; 2 bytes]"}
    {"role":"tool","tool_call_id":"","content":"The tool reported an error:\nno \"such\" file"}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"1","content":"No result: the call was interrupted before the tool answered."}
    "#);
    insta::assert_snapshot!(encoded(kinds, ALL).1.join("\n"), @r#"
    a.png is not shown: results of tools are text, this is image/png (4 bytes)
    a result of `read` is not shown: results of tools are text, this is audio/wav (2 bytes)
    "#);
}

#[test]
fn missing_payload_names_what_it_belongs_to() {
    let stream = stream(vec![request("See", vec![text("file:///a", "x")])], &mut Store::default());
    let thread = thread(&stream);
    let request = Request { capabilities: ALL, ..Request::new("p/m", &thread) };
    let error = encode(&request, &mut Store::default(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "load file:///a for the request");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no such blob");
}

#[test]
fn payload_that_is_not_text_is_an_error() {
    let mut snapshot = Snapshot::from(text("file:///a", ""));
    let blob = BlobRef::of(b"\xff", Encoding::Utf8);
    snapshot.content = Payload::Stored(blob);
    let request = ChatRequest { resources: vec![snapshot], ..ChatRequest::new("See") };
    let mut store = Store::default();
    let stream = stream(vec![EventKind::ChatRequest(request)], &mut store);
    store.bytes.insert(blob, b"\xff".to_vec());
    let thread = thread(&stream);
    let request = Request { capabilities: ALL, ..Request::new("p/m", &thread) };
    assert!(matches!(encode(&request, &mut store, &mut Vec::new()), Err(Error::Load { .. })));
}

/// Cuts the body down to what it says of the history.
fn history(json: &str) -> &str {
    json.split_once(r#""messages":["#).unwrap().1.strip_suffix("]}").unwrap()
}

proptest! {
    #[test]
    fn any_thread_gives_valid_json_and_the_same_bytes_again(
        steps in any_steps(),
        images in any::<bool>(),
        pdf in any::<bool>(),
    ) {
        let capabilities = Capabilities { images, pdf, ..ALL };
        let (json, notes) = encoded(steps.concat(), capabilities);
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
        prop_assert_eq!(encoded(steps.concat(), capabilities), (json, notes));
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_steps()) {
        // A model's response that called nothing ends its turn: only a request may follow.
        let asks = |index: &usize| !matches!(steps[*index].last(), None | Some(EventKind::ChatResponse(_)));
        let ends = (0..steps.len()).filter(asks).map(|index| index + 1);
        let bodies: Vec<String> = ends.map(|end| encoded(steps[..end].concat(), ALL).0).collect();
        for pair in bodies.windows(2) {
            prop_assert!(history(&pair[1]).starts_with(history(&pair[0])), "{}\n{}", pair[0], pair[1]);
        }
    }
}
