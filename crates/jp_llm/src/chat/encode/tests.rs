use jp_conversation::{ChatRequest, EventKind, view::thread};
use jp_resource::{BlobRef, Encoding, Payload, Resource, ResourceContent};
use jp_tool::ContentBlock;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{
    EVERYTHING, Store, TEXT_ONLY, any_steps, binary, call, check_histories, check_stable,
    cut_history, encode_events, media, question, request, result, rows, said, stream, text,
    thought, tool, with_metadata,
};

const ALL: Capabilities = Capabilities {
    audio: false,
    binary_results: false,
    ..EVERYTHING
};

fn encoded(kinds: Vec<EventKind>, capabilities: Capabilities) -> (String, Vec<String>) {
    encoded_for(Dialect::Generic, "p/m", kinds, capabilities)
}

fn encoded_for(
    dialect: Dialect,
    label: &str,
    kinds: Vec<EventKind>,
    capabilities: Capabilities,
) -> (String, Vec<String>) {
    encode_events(kinds, |thread, store, out| {
        let request = Request {
            system: Some("You are jp."),
            capabilities,
            ..Request::new(label, thread)
        };
        encode(dialect, &request, store, out)
    })
}

/// The messages, one a line.
fn messages(kinds: Vec<EventKind>, capabilities: Capabilities) -> String {
    lines(&encoded(kinds, capabilities).0)
}

fn lines(json: &str) -> String {
    rows(json, "messages", 1)
}

#[test]
fn whole_request_has_fixed_order() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let asked = question("Is it \"ok\"?", schema);
    let (json, _) = encoded(vec![request("Hi", vec![]), said("Ho"), asked], ALL);
    insta::assert_snapshot!(json, @r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}},"messages":[{"role":"system","content":"You are jp."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"},{"role":"user","content":"Is it \"ok\"?"}]}"#);
}

#[test]
fn attached_text_follows_the_words_as_parts() {
    let mut formatted = text("cmd://x", "raw").with_name("x");
    formatted.formatted = Some("shown".to_owned());
    let resources = vec![
        text("file:///src/main.rs", "fn main() {}\n")
            .with_name("src/main.rs")
            .with_mime_type("text/x-rust"),
        text("file:///a&b", "</Resource>"),
        text("file:///empty", ""),
        formatted,
    ];
    insta::assert_snapshot!(messages(vec![request("Review.", resources.clone()), request("", resources)], ALL), @r#"
    {"role":"user","content":[{"type":"text","text":"Review."},{"type":"text","text":"<resource uri=\"file:///src/main.rs\" name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"type":"text","text":"<resource uri=\"file:///a&amp;b\" endsWithNewline=\"false\">\n<\\/Resource>\n</resource>"},{"type":"text","text":"<resource uri=\"file:///empty\">\n</resource>"},{"type":"text","text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":[{"type":"text","text":"<resource uri=\"file:///src/main.rs\" name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"type":"text","text":"<resource uri=\"file:///a&amp;b\" endsWithNewline=\"false\">\n<\\/Resource>\n</resource>"},{"type":"text","text":"<resource uri=\"file:///empty\">\n</resource>"},{"type":"text","text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    "#);
}

#[test]
fn binary_content_is_shown_to_models_that_take_it() {
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
    insta::assert_snapshot!(messages(vec![request("See.", resources())], ALL), @r#"{"role":"user","content":[{"type":"text","text":"See."},{"type":"text","text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[the next part of this message]</resource>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[the next part of this message]</resource>"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9g="}},{"type":"text","text":"<resource uri=\"file:///dir/spec.pdf\" name=\"dir/spec.pdf\" mimeType=\"application/pdf\">[the next part of this message]</resource>"},{"type":"file","file":{"filename":"spec.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not accept image/tiff; 4 bytes]</resource>"},{"type":"text","text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///a.svg\" mimeType=\"image/svg+xml\" endsWithNewline=\"false\">\n<svg/>\n</resource>"}]}"#);
    insta::assert_snapshot!(messages(vec![request("See.", resources())], TEXT_ONLY), @r#"{"role":"user","content":[{"type":"text","text":"See."},{"type":"text","text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[not shown: this model does not accept image/png; 4 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[not shown: this model does not accept image/jpeg; 2 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///dir/spec.pdf\" name=\"dir/spec.pdf\" mimeType=\"application/pdf\">[not shown: this model does not accept application/pdf; 5 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not accept image/tiff; 4 bytes]</resource>"},{"type":"text","text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"},{"type":"text","text":"<resource uri=\"file:///a.svg\" mimeType=\"image/svg+xml\" endsWithNewline=\"false\">\n<svg/>\n</resource>"}]}"#);
    insta::assert_snapshot!(notes.join("\n"), @r#"
    dir/logo.png is not shown: this model does not accept image/png (4 bytes)
    photo is not shown: this model does not accept image/jpeg (2 bytes)
    dir/spec.pdf is not shown: this model does not accept application/pdf (5 bytes)
    scan.tiff is not shown: this model does not accept image/tiff (4 bytes)
    x:unknown is not shown: this model does not accept application/octet-stream (1 bytes)
    "#);
}

#[test]
fn tool_calls_and_results_are_text() {
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(text("file:///a.rs#L1-2", "a\nb\n").with_mime_type("text/rust")),
        ContentBlock::text("x".repeat(300)),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
        ContentBlock::Audio(media("audio/wav", &[1, 2])),
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
    {"role":"tool","tool_call_id":"1","content":"Found:\n```rs (file:///a.rs, lines 1-2)\na\nb\n```\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[a.png (file:///a.png) is in the next message: image/png; 4 bytes]\n[a result of `read` is not shown: this model does not accept audio/wav; 2 bytes]"}
    {"role":"tool","tool_call_id":"","content":"The tool reported an error:\nno \"such\" file"}
    {"role":"user","content":[{"type":"text","text":"a.png (file:///a.png), returned by the call of `read` (1):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"1","content":"No result: the call was interrupted before the tool answered."}
    "#);
    insta::assert_snapshot!(encoded(kinds, ALL).1.join("\n"), @r#"a result of `read` is not shown: this model does not accept audio/wav (2 bytes)"#);
}

#[test]
fn binaries_of_results_follow_the_round() {
    let kinds = vec![
        request("Go", vec![]),
        call("1"),
        call(""),
        result("1", false, vec![shot("a.png"), ContentBlock::text("text")]),
        result(
            "",
            false,
            vec![
                shot("b.png"),
                ContentBlock::resource(binary("c.pdf", "application/pdf", b"%PDF-")),
            ],
        ),
        call("2"),
        result("2", false, vec![shot("d.png")]),
        request("Go on", vec![]),
        thought("only reasoning"),
        request("Go on", vec![]),
    ];
    insta::assert_snapshot!(messages(kinds.clone(), ALL), @r#"
    {"role":"user","content":"Go"}
    {"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}},{"id":"","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"1","content":"[a.png (file:///a.png) is in the next message: image/png; 4 bytes]\ntext"}
    {"role":"tool","tool_call_id":"","content":"[b.png (file:///b.png) is in the next message: image/png; 4 bytes]\n[c.pdf (file:///c.pdf) is in the next message: application/pdf; 5 bytes]"}
    {"role":"user","content":[{"type":"text","text":"a.png (file:///a.png), returned by the call of `read` (1):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"b.png (file:///b.png), returned by the call of `read`:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"c.pdf (file:///c.pdf), returned by the call of `read`:"},{"type":"file","file":{"filename":"c.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}
    {"role":"assistant","content":"","tool_calls":[{"id":"2","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"2","content":"[d.png (file:///d.png) is in the next message: image/png; 4 bytes]"}
    {"role":"user","content":[{"type":"text","text":"d.png (file:///d.png), returned by the call of `read` (2):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":"Go on"}
    "#);
    insta::assert_snapshot!(encoded(kinds, TEXT_ONLY).1.join("\n"), @r#"
    a.png is not shown: this model does not accept image/png (4 bytes)
    b.png is not shown: this model does not accept image/png (4 bytes)
    c.pdf is not shown: this model does not accept application/pdf (5 bytes)
    d.png is not shown: this model does not accept image/png (4 bytes)
    "#);
}

const OPENROUTER: Capabilities = Capabilities {
    binary_results: true,
    ..ALL
};

fn details(model: &str, kind: EventKind, data: &str) -> EventKind {
    let details = json!([{"type": "reasoning.encrypted", "data": data}]);
    with_metadata(kind, json!({"model": model, REASONING_DETAILS: details}))
}

fn shot(name: &str) -> ContentBlock {
    ContentBlock::resource(binary(name, "image/png", b"\x89PNG"))
}

fn session() -> Vec<EventKind> {
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::text(""),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
        ContentBlock::resource(binary("a.zip", "application/zip", b"PK")),
    ];
    vec![
        request(
            "Hi",
            vec![
                text("file:///a", "a"),
                binary("a.png", "image/png", b"\x89PNG"),
            ],
        ),
        details("openrouter/anthropic/m", thought("hm"), "mine"),
        details("openrouter/other/m", thought("hm"), "another's"),
        details("openrouter/anthropic/m", said("I look."), "late"),
        call("1"),
        call("2"),
        result("1", false, blocks),
        result("2", true, vec![]),
        said("Done."),
        request("Next", vec![]),
        call("3"),
        result("3", false, vec![ContentBlock::text("three")]),
        call("4"),
        result(
            "4",
            false,
            vec![ContentBlock::text("four"), shot("b.png"), shot("c.png")],
        ),
        call("5"),
        result("5", false, vec![]),
        call("6"),
        result(
            "6",
            false,
            vec![shot("d.png"), ContentBlock::text("six"), shot("e.png")],
        ),
    ]
}

#[test]
fn openrouter_gets_what_other_servers_do_not() {
    let (json, _) = encoded_for(
        Dialect::OpenRouter,
        "openrouter/anthropic/m",
        session(),
        OPENROUTER,
    );
    insta::assert_snapshot!(lines(&json), @r#"
    {"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"<resource uri=\"file:///a\" endsWithNewline=\"false\">\na\n</resource>"},{"type":"text","text":"<resource uri=\"file:///a.png\" name=\"a.png\" mimeType=\"image/png\">[the next part of this message]</resource>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"I look.","reasoning_details":[{"type":"reasoning.encrypted","data":"mine"},{"type":"reasoning.encrypted","data":"late"}],"tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}},{"id":"2","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"Found:"},{"type":"text","text":"a.png (file:///a.png):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"[a.zip (file:///a.zip) is not shown: this model does not accept application/zip; 2 bytes]"}]}
    {"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"The tool reported an error:"}]}
    {"role":"assistant","content":"Done."}
    {"role":"user","content":[{"type":"text","text":"Next","cache_control":{"type":"ephemeral"}}]}
    {"role":"assistant","content":"","tool_calls":[{"id":"3","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"3","content":[{"type":"text","text":"three"}]}
    {"role":"assistant","content":"","tool_calls":[{"id":"4","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"4","content":[{"type":"text","text":"four"},{"type":"text","text":"b.png (file:///b.png):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"c.png (file:///c.png):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"","tool_calls":[{"id":"5","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"5","content":""}
    {"role":"assistant","content":"","tool_calls":[{"id":"6","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"6","content":[{"type":"text","text":"d.png (file:///d.png):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"six"},{"type":"text","text":"e.png (file:///e.png):","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    "#);
}

#[test]
fn openrouter_gets_no_marks_for_models_that_cache_by_themselves() {
    let (json, _) = encoded_for(Dialect::OpenRouter, "openrouter/google/m", session(), ALL);
    insta::assert_snapshot!(lines(&json), @r#"
    {"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"<resource uri=\"file:///a\" endsWithNewline=\"false\">\na\n</resource>"},{"type":"text","text":"<resource uri=\"file:///a.png\" name=\"a.png\" mimeType=\"image/png\">[the next part of this message]</resource>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}},{"id":"2","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"1","content":"Found:\n[a.png (file:///a.png) is in the next message: image/png; 4 bytes]\n[a.zip (file:///a.zip) is not shown: this model does not accept application/zip; 2 bytes]"}
    {"role":"tool","tool_call_id":"2","content":"The tool reported an error:\n"}
    {"role":"user","content":[{"type":"text","text":"a.png (file:///a.png), returned by the call of `read` (1):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"Done."}
    {"role":"user","content":"Next"}
    {"role":"assistant","content":"","tool_calls":[{"id":"3","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"3","content":"three"}
    {"role":"assistant","content":"","tool_calls":[{"id":"4","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"4","content":"four\n[b.png (file:///b.png) is in the next message: image/png; 4 bytes]\n[c.png (file:///c.png) is in the next message: image/png; 4 bytes]"}
    {"role":"user","content":[{"type":"text","text":"b.png (file:///b.png), returned by the call of `read` (4):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"c.png (file:///c.png), returned by the call of `read` (4):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    {"role":"assistant","content":"","tool_calls":[{"id":"5","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"5","content":""}
    {"role":"assistant","content":"","tool_calls":[{"id":"6","type":"function","function":{"name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}}]}
    {"role":"tool","tool_call_id":"6","content":"[d.png (file:///d.png) is in the next message: image/png; 4 bytes]\nsix\n[e.png (file:///e.png) is in the next message: image/png; 4 bytes]"}
    {"role":"user","content":[{"type":"text","text":"d.png (file:///d.png), returned by the call of `read` (6):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"text","text":"e.png (file:///e.png), returned by the call of `read` (6):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]}
    "#);
}

#[test]
fn openrouter_has_fields_of_its_own() {
    let (json, _) = encode_events(vec![request("Hi", vec![])], |thread, store, out| {
        let request = Request {
            max_output: Some(9),
            cache_key: Some("key"),
            ..Request::new("openrouter/google/m", thread)
        };
        encode(Dialect::OpenRouter, &request, store, out)
    });
    insta::assert_snapshot!(json, @r#"{"model":"google/m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"prompt_cache_key":"key","session_id":"key","messages":[{"role":"user","content":"Hi"}]}"#);
}

#[test]
fn payload_that_is_not_text_is_an_error() {
    let mut snapshot = Snapshot::from(text("file:///a", ""));
    let blob = BlobRef::for_content(b"\xff", Encoding::Utf8);
    snapshot.content = Payload::Stored(blob);
    let request = ChatRequest {
        resources: vec![snapshot],
        ..ChatRequest::new("See")
    };
    let mut store = Store::default();
    let stream = stream(vec![EventKind::ChatRequest(request)], &mut store);
    store.bytes.insert(blob, b"\xff".to_vec());
    let thread = thread(&stream);
    let request = Request {
        capabilities: ALL,
        ..Request::new("p/m", &thread)
    };
    assert!(matches!(
        encode(Dialect::Generic, &request, &mut store, &mut Vec::new()),
        Err(Error::Load { .. })
    ));
}

fn history(json: &str) -> String {
    cut_history(json, r#""messages":["#, "]}").replace(MARK, "")
}

proptest! {
    #[test]
    fn any_thread_gives_stable_json(
        steps in any_steps(),
        images in any::<bool>(),
        pdf in any::<bool>(),
    ) {
        let capabilities = Capabilities { images, pdf, ..ALL };
        check_stable(|| encoded(steps.concat(), capabilities))?;
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_steps()) {
        check_histories(&steps, |kinds| encoded(kinds, ALL).0, history)?;
    }

    #[test]
    fn openrouter_history_is_a_prefix_but_for_the_marks(
        steps in any_steps(),
        binary_results in any::<bool>(),
        label in prop::sample::select(vec!["openrouter/anthropic/m", "openrouter/google/m"]),
    ) {
        let capabilities = Capabilities { binary_results, ..ALL };
        let encode = |kinds| encoded_for(Dialect::OpenRouter, label, kinds, capabilities).0;
        for body in check_histories(&steps, encode, history)? {
            prop_assert!(serde_json::from_str::<Value>(&body).is_ok(), "{}", body);
            prop_assert!(body.matches(MARK).count() <= 4, "{}", body);
        }
    }

    #[test]
    fn nobody_speaks_twice_in_a_row(steps in any_steps()) {
        let body: Value = serde_json::from_str(&encoded(steps.concat(), ALL).0).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let is_user = |message: &Value| message["role"] == "user";
        prop_assert!(!messages.windows(2).any(|pair| pair.iter().all(is_user)), "{}", body);
    }
}

/// What moves with the conversation, as it is written.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Servers of other names may pass requests on to providers that refuse the whole request for one such schema.
#[test]
fn only_llamacpp_is_sent_alternatives_at_the_root_of_a_schema() {
    let parameters = json!({"type": "object", "anyOf": [{"properties": {"a": {}}}]});
    let alternatives = tool("t", "", parameters);
    for (label, is_sent) in [
        ("llamacpp/m", true),
        ("gateway/m", false),
        ("llamacpp2/m", false),
    ] {
        let (json, _) = encode_events(vec![request("Hi", vec![])], |thread, store, out| {
            let request = Request {
                tools: std::slice::from_ref(&alternatives),
                capabilities: ALL,
                ..Request::new(label, thread)
            };
            encode(Dialect::Generic, &request, store, out)
        });
        let body: Value = serde_json::from_str(&json).unwrap();
        let sent = &body["tools"][0]["function"]["parameters"];
        assert_eq!(sent.get("anyOf").is_some(), is_sent, "{label}");
        assert_eq!(sent.get("properties").is_some(), !is_sent, "{label}");
    }
}
