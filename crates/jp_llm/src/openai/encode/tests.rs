use jp_conversation::EventKind;
use jp_resource::{Resource, ResourceContent};
use jp_tool::ContentBlock;
use proptest::prelude::*;
use serde_json::json;

use testing::assert_contains;

use super::*;
use crate::fixtures::{
    EVERYTHING as ALL, TEXT_ONLY, any_steps, binary, call, check_histories, check_stable,
    cut_history, encode_events, media, question, request, result, rows, said, text, thought, tool,
    with_metadata,
};

/// A cache breakpoint at the end of a part.
const MARK: &str = r#","prompt_cache_breakpoint":{"mode":"explicit"}"#;
const MODEL: &str = "openai/gpt-5.6";

fn encoded_for(
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
        encode(&request, store, out)
    })
}

fn encoded(kinds: Vec<EventKind>, capabilities: Capabilities) -> (String, Vec<String>) {
    encoded_for("openai/gpt-5", kinds, capabilities)
}

/// The items after the system prompt, one a line.
fn items_of(json: &str) -> String {
    rows(json, "input", 1)
}

fn items(kinds: Vec<EventKind>, capabilities: Capabilities) -> String {
    items_of(&encoded(kinds, capabilities).0)
}

/// Puts on a response what the API gave with it, and the model.
fn from_model(kind: EventKind, model: &str, metadata: &str) -> EventKind {
    let mut metadata: Value = serde_json::from_str(metadata).unwrap();
    metadata["model"] = model.into();
    with_metadata(kind, metadata)
}

fn sealed(model: &str) -> EventKind {
    let metadata = r#"{"id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}"#;
    from_model(thought("hm"), model, metadata)
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// A conversation that has everything.
fn everything() -> Vec<EventKind> {
    let attached = vec![
        text("file:///w/main.rs", "fn main() {}\n")
            .with_name("main.rs")
            .with_mime_type("text/x-rust"),
        binary("logo.png", "image/png", PNG),
        binary("spec.pdf", "application/pdf", b"%PDF-1.4\n"),
        binary("report.docx", DOCX, b"PK\x03\x04"),
        binary("core", "application/octet-stream", b"\x7fELF"),
    ];
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(text("file:///w/a.rs#L1-2", "a\nb\n").with_mime_type("text/x-rust")),
        ContentBlock::resource(binary("spec.pdf", "application/pdf", b"%PDF-1.4\n")),
        ContentBlock::Image(media("image/png", PNG)),
        ContentBlock::Audio(media("audio/wav", b"RIFF")),
    ];
    vec![
        request("Review.", attached),
        sealed(MODEL),
        from_model(
            said("Checking."),
            MODEL,
            r#"{"id":"msg_1","phase":"commentary"}"#,
        ),
        call("1"),
        call("2"),
        result("2", true, vec![ContentBlock::text("no such file")]),
        result("1", false, blocks),
        from_model(
            thought(""),
            MODEL,
            r#"{"id":"rs_2","encrypted_content":"gBBB"}"#,
        ),
        from_model(said("Fine."), MODEL, r#"{"id":"msg_2"}"#),
        request("And this?", vec![text("file:///w/b", "b")]),
        request("Well?", vec![]),
        sealed("anthropic/claude"),
        said("From another model."),
        call("3"),
    ]
}

#[test]
fn whole_request_has_fixed_order() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let asked = question("Is it \"ok\"?", schema);
    let reader = tool(
        "read",
        "Reads.",
        json!({"type": "object", "properties": {}}),
    );
    let kinds = vec![request("Hi", vec![]), said("Ho"), asked];
    let (json, _) = encode_events(kinds, |thread, store, out| {
        let request = Request {
            system: Some("You are jp."),
            tools: &[reader],
            max_output: Some(100),
            cache_key: Some("jp-1"),
            capabilities: ALL,
            ..Request::new("openai/gpt-5", thread)
        };
        encode(&request, store, out)
    });
    insta::assert_snapshot!(json, @r#"{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"jp-1","max_output_tokens":100,"tools":[{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object","properties":{}},"strict":false}],"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object","properties":{"ok":{"type":"boolean"}}},"strict":false}},"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"You are jp."}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"message","role":"assistant","content":"Ho"},{"type":"message","role":"user","content":[{"type":"input_text","text":"Is it \"ok\"?"}]}]}"#);
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_reasoning() {
    let include = |label| {
        let (json, _) = encoded_for(label, vec![request("Hi", vec![])], ALL);
        json.contains(r#""include":["reasoning.encrypted_content"]"#)
    };
    assert!(include("openai/gpt-5") && include("openai/o3"));
    assert!(!include("openai/gpt-4.1"));
}

#[test]
fn closed_schema_is_enforced() {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let (json, _) = encoded(vec![question("?", schema)], ALL);
    assert_contains(&json, r#""additionalProperties":false},"strict":true}}"#);
}

#[test]
fn attached_text_follows_the_words_as_parts() {
    let mut formatted = text("cmd://x", "raw").with_name("x");
    formatted.formatted = Some("shown".to_owned());
    let resources = vec![
        text("file:///a&b", "</Resource>"),
        text("file:///empty", ""),
        formatted,
    ];
    insta::assert_snapshot!(items(vec![request("Review.", resources.clone()), request("", resources), request("", vec![])], ALL), @r#"
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Review."},{"type":"input_text","text":"<resource uri=\"file:///a&amp;b\" endsWithNewline=\"false\">\n<\\/Resource>\n</resource>"},{"type":"input_text","text":"<resource uri=\"file:///empty\">\n</resource>"},{"type":"input_text","text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    {"type":"message","role":"assistant","content":"No answer: the request was interrupted."}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"<resource uri=\"file:///a&amp;b\" endsWithNewline=\"false\">\n<\\/Resource>\n</resource>"},{"type":"input_text","text":"<resource uri=\"file:///empty\">\n</resource>"},{"type":"input_text","text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    {"type":"message","role":"assistant","content":"No answer: the request was interrupted."}
    {"type":"message","role":"user","content":[{"type":"input_text","text":""}]}
    "#);
}

#[test]
fn binary_content_is_shown_to_models_that_take_it() {
    let resources = || {
        vec![
            binary("dir/logo.png", "image/png", b"\x89PNG"),
            binary("photo", "Image/JPEG; q=1", b"\xff\xd8"),
            binary("dir/spec", "application/pdf", b"%PDF-"),
            binary("sheet.xls", "application/vnd.ms-excel", b"\xd0\xcf"),
            binary("latin1.rs", "text/x-rust", b"// \xe4"),
            binary("scan.tiff", "image/tiff", b"II*\0"),
            Resource::new("x:unknown", ResourceContent::Blob(vec![0])),
        ]
    };
    insta::assert_snapshot!(items(vec![request("See.", resources())], ALL), @r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"See."},{"type":"input_text","text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[the next part of this message]</resource>"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw=="},{"type":"input_text","text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[the next part of this message]</resource>"},{"type":"input_image","detail":"auto","image_url":"data:image/jpeg;base64,/9g="},{"type":"input_text","text":"<resource uri=\"file:///dir/spec\" name=\"dir/spec\" mimeType=\"application/pdf\">[the next part of this message]</resource>"},{"type":"input_file","filename":"spec.pdf","file_data":"data:application/pdf;base64,JVBERi0="},{"type":"input_text","text":"<resource uri=\"file:///sheet.xls\" name=\"sheet.xls\" mimeType=\"application/vnd.ms-excel\">[the next part of this message]</resource>"},{"type":"input_file","filename":"sheet.xls","file_data":"data:application/vnd.ms-excel;base64,0M8="},{"type":"input_text","text":"<resource uri=\"file:///latin1.rs\" name=\"latin1.rs\" mimeType=\"text/x-rust\">[the next part of this message]</resource>"},{"type":"input_file","filename":"latin1.rs","file_data":"data:text/x-rust;base64,Ly8g5A=="},{"type":"input_text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not accept image/tiff; 4 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"}]}"#);
    insta::assert_snapshot!(items(vec![request("See.", resources())], TEXT_ONLY), @r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"See."},{"type":"input_text","text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[not shown: this model does not accept image/png; 4 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[not shown: this model does not accept image/jpeg; 2 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"file:///dir/spec\" name=\"dir/spec\" mimeType=\"application/pdf\">[not shown: this model does not accept application/pdf; 5 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"file:///sheet.xls\" name=\"sheet.xls\" mimeType=\"application/vnd.ms-excel\">[not shown: this model does not accept application/vnd.ms-excel; 2 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"file:///latin1.rs\" name=\"latin1.rs\" mimeType=\"text/x-rust\">[not shown: this model does not accept text/x-rust; 4 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not accept image/tiff; 4 bytes]</resource>"},{"type":"input_text","text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"}]}"#);
    insta::assert_snapshot!(encoded(vec![request("See.", resources())], ALL).1.join("\n"), @r#"
    scan.tiff is not shown: this model does not accept image/tiff (4 bytes)
    x:unknown is not shown: this model does not accept application/octet-stream (1 bytes)
    "#);
    assert_eq!(
        encoded(vec![request("See.", resources())], TEXT_ONLY)
            .1
            .len(),
        7
    );
}

#[test]
fn whole_conversation_is_items_in_order() {
    let (json, notes) = encoded_for(MODEL, everything(), ALL);
    insta::assert_snapshot!(items_of(&json), @r#"
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Review."},{"type":"input_text","text":"<resource uri=\"file:///w/main.rs\" name=\"main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"type":"input_text","text":"<resource uri=\"file:///logo.png\" name=\"logo.png\" mimeType=\"image/png\">[the next part of this message]</resource>"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw0KGgo="},{"type":"input_text","text":"<resource uri=\"file:///spec.pdf\" name=\"spec.pdf\" mimeType=\"application/pdf\">[the next part of this message]</resource>"},{"type":"input_file","filename":"spec.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQK"},{"type":"input_text","text":"<resource uri=\"file:///report.docx\" name=\"report.docx\" mimeType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document\">[the next part of this message]</resource>"},{"type":"input_file","filename":"report.docx","file_data":"data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,UEsDBA=="},{"type":"input_text","text":"<resource uri=\"file:///core\" name=\"core\" mimeType=\"application/octet-stream\">[not shown: this model does not accept application/octet-stream; 4 bytes]</resource>","prompt_cache_breakpoint":{"mode":"explicit"}}]}
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}
    {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Checking.","annotations":[]}],"phase":"commentary"}
    {"type":"function_call","call_id":"1","name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}
    {"type":"function_call","call_id":"2","name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}
    {"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"Found:\n"},{"type":"input_text","text":"```rs (file:///w/a.rs, lines 1-2)\na\nb\n```\n"},{"type":"input_text","text":"spec.pdf (file:///spec.pdf):\n"},{"type":"input_file","filename":"spec.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQK"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw0KGgo="},{"type":"input_text","text":"[a result of `read` is not shown: this model does not accept audio/wav; 4 bytes]\n"}]}
    {"type":"function_call_output","call_id":"2","output":"The tool reported an error:\nno such file"}
    {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gBBB"}
    {"type":"message","id":"msg_2","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Fine.","annotations":[]}]}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"And this?"},{"type":"input_text","text":"<resource uri=\"file:///w/b\" endsWithNewline=\"false\">\nb\n</resource>","prompt_cache_breakpoint":{"mode":"explicit"}}]}
    {"type":"message","role":"assistant","content":"No answer: the request was interrupted."}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Well?"}]}
    {"type":"message","role":"assistant","content":"From another model."}
    {"type":"function_call","call_id":"3","name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}
    {"type":"function_call_output","call_id":"3","output":"No result: the call was interrupted before the tool answered."}
    "#);
    insta::assert_snapshot!(notes.join("\n"), @r#"
    core is not shown: this model does not accept application/octet-stream (4 bytes)
    a result of `read` is not shown: this model does not accept audio/wav (4 bytes)
    "#);
}

#[test]
fn results_are_text_for_models_that_take_no_more() {
    let (json, notes) = encoded_for(
        MODEL,
        everything(),
        Capabilities {
            binary_results: false,
            ..ALL
        },
    );
    let outputs = items_of(&json);
    let outputs = outputs
        .lines()
        .filter(|item| item.contains("function_call_output"));
    insta::assert_snapshot!(outputs.collect::<Vec<_>>().join("\n"), @r#"
    {"type":"function_call_output","call_id":"1","output":"Found:\n```rs (file:///w/a.rs, lines 1-2)\na\nb\n```\n[spec.pdf (file:///spec.pdf) is not shown: tool results can only contain text, not application/pdf; 9 bytes]\n[a result of `read` is not shown: tool results can only contain text, not image/png; 8 bytes]\n[a result of `read` is not shown: tool results can only contain text, not audio/wav; 4 bytes]"}
    {"type":"function_call_output","call_id":"2","output":"The tool reported an error:\nno such file"}
    {"type":"function_call_output","call_id":"3","output":"No result: the call was interrupted before the tool answered."}
    "#);
    insta::assert_snapshot!(notes.join("\n"), @r#"
    core is not shown: this model does not accept application/octet-stream (4 bytes)
    spec.pdf is not shown: tool results can only contain text, not application/pdf (9 bytes)
    a result of `read` is not shown: tool results can only contain text, not image/png (8 bytes)
    a result of `read` is not shown: tool results can only contain text, not audio/wav (4 bytes)
    "#);
}

#[test]
fn reasoning_goes_back_before_what_follows_from_it() {
    let answer = |model: &str| {
        vec![
            request("Go", vec![]),
            sealed(model),
            from_model(
                said("Ho"),
                model,
                r#"{"id":"msg_1","phase":"final_answer"}"#,
            ),
            request("Go on", vec![]),
            from_model(
                thought("open"),
                model,
                r#"{"id":"rs_3","summary":[],"content":[{"type":"reasoning_text","text":"open"}]}"#,
            ),
            call("1"),
            result("1", false, vec![]),
            sealed(model),
            from_model(said(""), model, r#"{"id":"msg_2"}"#),
            request("Again", vec![]),
            from_model(thought("forgotten"), model, r#"{"id":"rs_4","summary":[]}"#),
            from_model(said("Ho"), model, r#"{"id":"msg_3"}"#),
        ]
    };
    insta::assert_snapshot!(items(answer("openai/gpt-5"), ALL), @r#"
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}
    {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Ho","annotations":[]}],"phase":"final_answer"}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Go on"}]}
    {"type":"reasoning","id":"rs_3","summary":[],"content":[{"type":"reasoning_text","text":"open"}]}
    {"type":"function_call","call_id":"1","name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}
    {"type":"function_call_output","call_id":"1","output":""}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Again"}]}
    {"type":"message","role":"assistant","content":"Ho"}
    "#);
    insta::assert_snapshot!(items(answer("openai/gpt-5.6"), ALL), @r#"
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}
    {"type":"message","role":"assistant","content":"Ho"}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Go on"}]}
    {"type":"function_call","call_id":"1","name":"read","arguments":"{\"z\":\"\\\"\",\"a\":1}"}
    {"type":"function_call_output","call_id":"1","output":""}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Again"}]}
    {"type":"message","role":"assistant","content":"Ho"}
    "#);
}

#[test]
fn cache_marks_end_the_prefixes_that_last() {
    let turn = |name: &str| {
        [
            request(
                "See",
                vec![text("a:b", "x"), binary(name, "image/png", PNG)],
            ),
            said("Ho"),
        ]
    };
    let kinds = || [turn("1"), turn("2"), turn("3")].concat();
    let (json, _) = encoded_for(MODEL, kinds(), ALL);
    let body: Value = serde_json::from_str(&json).unwrap();
    let is_marked = |item: &Value| {
        let parts = item["content"].as_array().into_iter().flatten();
        parts
            .map(|part| part.get("prompt_cache_breakpoint").is_some())
            .collect::<Vec<_>>()
    };
    let marked: Vec<Vec<bool>> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(is_marked)
        .collect();
    // The words, the text, the label of the image, the image.
    let (no, yes) = (vec![false; 4], vec![false, false, false, true]);
    assert_eq!(
        marked,
        [vec![true], no, vec![], yes.clone(), vec![], yes, vec![]]
    );
    assert!(
        !encoded_for("openai/gpt-5.5", kinds(), ALL)
            .0
            .contains("prompt_cache_breakpoint")
    );
}

fn history(json: &str) -> String {
    cut_history(json, r#""input":["#, "]}").replace(MARK, "")
}

proptest! {
    #[test]
    fn any_thread_gives_stable_json(
        steps in any_steps(),
        images in any::<bool>(),
        pdf in any::<bool>(),
        binary_results in any::<bool>(),
    ) {
        let capabilities = Capabilities { images, pdf, binary_results, ..ALL };
        check_stable(|| encoded_for(MODEL, steps.concat(), capabilities))?;
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_steps(), is_from_model in any::<bool>()) {
        let own = |kind: EventKind| match &kind {
            EventKind::ChatResponse(_) if is_from_model => {
                from_model(kind, MODEL, r#"{"id":"x","summary":[],"encrypted_content":"g"}"#)
            }
            _ => kind,
        };
        let encode = |kinds: Vec<_>| encoded_for(MODEL, kinds.into_iter().map(own).collect(), ALL).0;
        check_histories(&steps, encode, history)?;
    }
}
