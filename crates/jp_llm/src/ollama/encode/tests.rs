use jp_conversation::{EventKind, view::thread};
use jp_tool::ContentBlock;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{
    Store, any_steps, binary, call, describe_request, request, result, said, stream, text, thought,
};

fn encoded(kinds: Vec<EventKind>, images: bool) -> (String, Vec<String>) {
    let mut store = Store::default();
    let stream = stream(kinds, &mut store);
    let thread = thread(&stream);
    let capabilities = Capabilities {
        images,
        schema: true,
        ..Capabilities::default()
    };
    let request = Request {
        system: Some("You are jp."),
        max_output: Some(100),
        context: Some(8192),
        capabilities,
        ..Request::new("ollama/m", &thread)
    };
    let mut out = Vec::new();
    let notes = encode(&request, &mut store, &mut out).unwrap();
    describe_request(out, &notes, &store, &thread)
}

/// The messages, one a line.
fn messages(kinds: Vec<EventKind>, images: bool) -> String {
    let body: Value = serde_json::from_str(&encoded(kinds, images).0).unwrap();
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|message| format!("{message}\n"))
        .collect()
}

fn thought_by(model: &str, text: &str) -> EventKind {
    let mut kind = thought(text);
    if let EventKind::ChatResponse(response) = &mut kind {
        response.metadata.insert("model".to_owned(), model.into());
    }
    kind
}

#[test]
fn whole_request_has_fixed_order() {
    let mut question = ChatRequest::new("Is it \"ok\"?");
    question.schema = json!({"type": "object"}).as_object().cloned();
    let (json, _) = encoded(
        vec![
            request("Hi", vec![]),
            said("Ho"),
            EventKind::ChatRequest(question),
        ],
        true,
    );
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
    {"role":"user","content":"See.\n\n<resource uri=\"file:///a.rs\" name=\"a.rs\" endsWithNewline=\"false\">\nfn a() {}\n</resource>\n\n<resource uri=\"file:///logo.png\" name=\"logo.png\" mimeType=\"image/png\">[image 1 of this message]</resource>\n\n<resource uri=\"file:///old.gif\" name=\"old.gif\" mimeType=\"image/gif\">[not shown: this model does not take image/gif; 4 bytes]</resource>\n\n<resource uri=\"file:///b\">\nb\n</resource>\n\n<resource uri=\"file:///photo.jpg\" name=\"photo.jpg\" mimeType=\"Image/JPEG; q=1\">[image 2 of this message]</resource>\n\n<resource uri=\"file:///spec.pdf\" name=\"spec.pdf\" mimeType=\"application/pdf\">[not shown: this model does not take application/pdf; 5 bytes]</resource>","images":["iVBORw==","/9g="]}
    {"role":"assistant","content":"Ok"}
    {"role":"user","content":"<resource uri=\"file:///logo.png\" name=\"logo.png\" mimeType=\"image/png\">[image 1 of this message]</resource>","images":["iVBORw=="]}
    "#);
    insta::assert_snapshot!(encoded(kinds, false).1.join("\n"), @r#"
    logo.png is not shown: this model does not take image/png (4 bytes)
    old.gif is not shown: this model does not take image/gif (4 bytes)
    photo.jpg is not shown: this model does not take image/jpeg (2 bytes)
    spec.pdf is not shown: this model does not take application/pdf (5 bytes)
    logo.png is not shown: this model does not take image/png (4 bytes)
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
    {"role":"tool","tool_name":"read","tool_call_id":"1","content":"Found:\n```rs (file:///a.rs, lines 1-2)\na\nb\n```\n[a.png (file:///a.png) is not shown: results of tools are text, this is image/png; 4 bytes]"}
    {"role":"tool","tool_name":"read","content":"The tool reported an error:\nno \"such\" file"}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"No answer: the request was interrupted."}
    {"role":"user","content":"Go on"}
    {"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"read","arguments":{"z":"\"","a":1}}}]}
    {"role":"tool","tool_name":"read","tool_call_id":"1","content":"No result: the call was interrupted before the tool answered."}
    "#);
    insta::assert_snapshot!(encoded(kinds, true).1.join("\n"), @r#"a.png is not shown: results of tools are text, this is image/png (4 bytes)"#);
}

/// Cuts the body down to what it says of the history.
fn history(json: &str) -> &str {
    json.split_once(r#""messages":["#)
        .unwrap()
        .1
        .strip_suffix("]}")
        .unwrap()
}

proptest! {
    #[test]
    fn any_thread_gives_stable_json(steps in any_steps(), images in any::<bool>()) {
        let (json, notes) = encoded(steps.concat(), images);
        prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
        prop_assert_eq!(encoded(steps.concat(), images), (json, notes));
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_steps()) {
        // A model's response that called nothing ends its turn: only a request may follow.
        let asks = |index: &usize| !matches!(steps[*index].last(), None | Some(EventKind::ChatResponse(_)));
        let ends = (0..steps.len()).filter(asks).map(|index| index + 1);
        let bodies: Vec<String> = ends.map(|end| encoded(steps[..end].concat(), true).0).collect();
        for pair in bodies.windows(2) {
            prop_assert!(history(&pair[1]).starts_with(history(&pair[0])), "{}\n{}", pair[0], pair[1]);
        }
    }
}
