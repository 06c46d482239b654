use jp_conversation::EventKind;
use jp_tool::ContentBlock;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{
    any_steps, binary, call, check_histories, check_stable, cut_history, encode_events, question,
    request, result, rows, said, text, thought, with_metadata,
};

fn encoded(kinds: Vec<EventKind>, images: bool) -> (String, Vec<String>) {
    let capabilities = Capabilities {
        images,
        schema: true,
        ..Capabilities::default()
    };
    encode_events(kinds, |thread, store, out| {
        let request = Request {
            system: Some("You are jp."),
            max_output: Some(100),
            context: Some(8192),
            capabilities,
            ..Request::new("ollama/m", thread)
        };
        encode(&request, store, out)
    })
}

/// The messages, one a line.
fn messages(kinds: Vec<EventKind>, images: bool) -> String {
    rows(&encoded(kinds, images).0, "messages", 1)
}

fn thought_by(model: &str, text: &str) -> EventKind {
    with_metadata(thought(text), json!({"model": model}))
}

#[test]
fn whole_request_has_fixed_order() {
    let asked = question("Is it \"ok\"?", json!({"type": "object"}));
    let (json, _) = encoded(vec![request("Hi", vec![]), said("Ho"), asked], true);
    insta::assert_snapshot!(json, @r#"{"model":"m","stream":true,"options":{"num_ctx":8192,"num_predict":100},"format":{"type":"object"},"messages":[{"role":"system","content":"You are jp."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"},{"role":"user","content":"Is it \"ok\"?"}]}"#);
}

#[test]
fn images_stand_beside_words_with_resources() {
    let resources = vec![
        text("file:///a.rs", "fn a() {}").with_name("a.rs"),
        binary("logo.png", "image/png", b"\x89PNG"),
        binary("old.gif", "image/gif", b"GIF8"),
        text("file:///b", "b\n"),
        binary("photo.jpg", "Image/JPEG; q=1", b"\xff\xd8"),
        binary("spec.pdf", "application/pdf", b"%PDF-"),
    ];
    let kinds = vec![
        request("See.", resources.clone()),
        said("Ok"),
        request("", vec![resources[1].clone()]),
    ];
    insta::assert_snapshot!(messages(kinds.clone(), true), @r#"
    {"role":"user","content":"See.\n\n<resource uri=\"file:///a.rs\" name=\"a.rs\" endsWithNewline=\"false\">\nfn a() {}\n</resource>\n\n<resource uri=\"file:///logo.png\" name=\"logo.png\" mimeType=\"image/png\">[image 1 of this message]</resource>\n\n<resource uri=\"file:///old.gif\" name=\"old.gif\" mimeType=\"image/gif\">[not shown: this model does not accept image/gif; 4 bytes]</resource>\n\n<resource uri=\"file:///b\">\nb\n</resource>\n\n<resource uri=\"file:///photo.jpg\" name=\"photo.jpg\" mimeType=\"Image/JPEG; q=1\">[image 2 of this message]</resource>\n\n<resource uri=\"file:///spec.pdf\" name=\"spec.pdf\" mimeType=\"application/pdf\">[not shown: this model does not accept application/pdf; 5 bytes]</resource>","images":["iVBORw==","/9g="]}
    {"role":"assistant","content":"Ok"}
    {"role":"user","content":"<resource uri=\"file:///logo.png\" name=\"logo.png\" mimeType=\"image/png\">[image 1 of this message]</resource>","images":["iVBORw=="]}
    "#);
    insta::assert_snapshot!(encoded(kinds, false).1.join("\n"), @r#"
    logo.png is not shown: this model does not accept image/png (4 bytes)
    old.gif is not shown: this model does not accept image/gif (4 bytes)
    photo.jpg is not shown: this model does not accept image/jpeg (2 bytes)
    spec.pdf is not shown: this model does not accept application/pdf (5 bytes)
    logo.png is not shown: this model does not accept image/png (4 bytes)
    "#);
}

#[test]
fn round_of_tools_has_the_shape_of_the_api() {
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(text("file:///a.rs#L1-2", "a\nb\n").with_mime_type("text/rust")),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
    ];
    let kinds = vec![
        request("Go", vec![]),
        thought_by("ollama/m", "hm"),
        thought_by("ollama/other", "no"),
        thought("nobody's"),
        said("I look."),
        call("1"),
        call(""),
        result("", true, vec![ContentBlock::text("no \"such\" file")]),
        result("1", false, blocks),
        thought_by("ollama/m", "only reasoning"),
        request("Go on", vec![]),
        request("Go on", vec![]),
        call("1"),
    ];
    insta::assert_snapshot!(messages(kinds.clone(), true), @r#"
    {"role":"user","content":"Go"}
    {"role":"assistant","content":"I look.","thinking":"hm","tool_calls":[{"id":"1","function":{"name":"read","arguments":{"z":"\"","a":1}}},{"function":{"name":"read","arguments":{"z":"\"","a":1}}}]}
    {"role":"tool","tool_name":"read","tool_call_id":"1","content":"Found:\n```rs (file:///a.rs, lines 1-2)\na\nb\n```\n[a.png (file:///a.png) is not shown: tool results can only contain text, not image/png; 4 bytes]"}
    {"role":"tool","tool_name":"read","content":"The tool reported an error:\nno \"such\" file"}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"read","arguments":{"z":"\"","a":1}}}]}
    {"role":"tool","tool_name":"read","tool_call_id":"1","content":"No result: the call was interrupted before the tool answered."}
    "#);
    insta::assert_snapshot!(encoded(kinds, true).1.join("\n"), @r#"a.png is not shown: tool results can only contain text, not image/png (4 bytes)"#);
}

fn history(json: &str) -> String {
    cut_history(json, r#""messages":["#, "]}").to_owned()
}

proptest! {
    #[test]
    fn any_thread_gives_stable_json(steps in any_steps(), images in any::<bool>()) {
        check_stable(|| encoded(steps.concat(), images))?;
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_steps()) {
        check_histories(&steps, |kinds| encoded(kinds, true).0, history)?;
    }
}
