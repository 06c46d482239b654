use jp_conversation::{ChatResponse, EventKind, ResponseContent, ToolCallRequest};
use jp_resource::{Resource, ResourceContent};
use jp_tool::{ContentBlock, InputRequest, Media};
use proptest::prelude::*;
use serde_json::json;

use testing::assert_contains;

use super::{
    super::{REDACTED_THINKING, SIGNATURE},
    *,
};
use crate::fixtures::{
    self, EVERYTHING, TEXT_ONLY, any_steps, binary, call, check_histories, encode_events, media,
    request, result, said, text, thought, with_metadata,
};

/// A cache mark at the end of a block.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

const ALL: Capabilities = Capabilities {
    files: false,
    audio: false,
    ..EVERYTHING
};

fn encoded_with(
    kinds: Vec<EventKind>,
    capabilities: Capabilities,
    tools: &[Tool],
) -> (String, Vec<String>) {
    encode_events(kinds, |thread, store, out| {
        let request = Request {
            system: Some("You are jp."),
            capabilities,
            tools,
            ..Request::new("anthropic/m", thread)
        };
        encode(&request, store, out)
    })
}

fn encoded(kinds: Vec<EventKind>, capabilities: Capabilities) -> (String, Vec<String>) {
    encoded_with(kinds, capabilities, &[])
}

/// The messages without marks: a line for each role, and one for each block.
fn messages(kinds: Vec<EventKind>, capabilities: Capabilities) -> String {
    let (json, _) = encoded(kinds, capabilities);
    let body: Value = serde_json::from_str(&without_marks(&json)).unwrap();
    let mut lines = String::new();
    for message in body["messages"].as_array().unwrap() {
        lines.push_str(&format!("{}\n", message["role"].as_str().unwrap()));
        for block in message["content"].as_array().unwrap() {
            lines.push_str(&format!("  {block}\n"));
        }
    }
    lines
}

fn without_marks(json: &str) -> String {
    json.replace(MARK, "")
}

/// A part of an answer with what the provider wants back.
fn signed(response: ChatResponse, key: &str, value: &str, model: &str) -> EventKind {
    let metadata = json!({key: value, "model": model});
    with_metadata(EventKind::ChatResponse(response), metadata)
}

fn tool() -> Tool {
    let parameters =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    fixtures::tool("read", "Reads a file.", parameters)
}

fn image() -> Media {
    media("image/png", b"\x89PNG")
}

#[test]
fn whole_request_has_fixed_order() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let asked = fixtures::question("Is it \"ok\"?", schema);
    let kinds = vec![request("Hi", vec![]), said("Ho"), asked];
    insta::assert_snapshot!(encoded_with(kinds, ALL, &[tool()]).0, @r#"{"model":"m","max_tokens":32000,"stream":true,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"additionalProperties":false}}},"tools":[{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],"system":[{"type":"text","text":"You are jp.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"text","text":"Ho"}]},{"role":"user","content":[{"type":"text","text":"Is it \"ok\"?","cache_control":{"type":"ephemeral"}}]}]}"#);
}

#[test]
fn tools_are_marked_where_there_is_no_system_prompt() {
    let tools = [tool(), tool()];
    let (json, _) = encode_events(vec![request("Hi", vec![])], |thread, store, out| {
        let request = Request {
            system: Some(" "),
            tools: &tools,
            max_output: Some(99),
            ..Request::new("anthropic/m", thread)
        };
        encode(&request, store, out)
    });
    insta::assert_snapshot!(json, @r#"{"model":"m","max_tokens":99,"stream":true,"tools":[{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}"#);
}

#[test]
fn attached_text_is_a_document() {
    let mut formatted = text("cmd://x", "raw").with_name("x");
    formatted.formatted = Some("shown".to_owned());
    formatted.title = Some("X".to_owned());
    formatted.description = Some("What x says".to_owned());
    let resources = vec![
        text("file:///src/main.rs", "fn main() {}\n")
            .with_name("src/main.rs")
            .with_mime_type("text/x-rust"),
        text("file:///a&b", "</Resource>"),
        text("file:///blank", " \n"),
        formatted,
    ];
    let kinds = vec![
        request("Review.", resources.clone()),
        request(" ", resources[..1].to_vec()),
    ];
    insta::assert_snapshot!(messages(kinds, ALL), @r#"
    user
      {"type":"text","text":"Review."}
      {"type":"document","title":"src/main.rs","context":"URI: file:///src/main.rs\nMIME type: text/x-rust","source":{"type":"text","media_type":"text/plain","data":"fn main() {}\n"}}
      {"type":"document","title":"file:///a&b","context":"URI: file:///a&b","source":{"type":"text","media_type":"text/plain","data":"</Resource>"}}
      {"type":"text","text":"<resource uri=\"file:///blank\">\n \n</resource>"}
      {"type":"document","title":"X","context":"URI: cmd://x\nDescription: What x says","source":{"type":"text","media_type":"text/plain","data":"shown"}}
    assistant
      {"type":"text","text":"No answer: the request was interrupted."}
    user
      {"type":"document","title":"src/main.rs","context":"URI: file:///src/main.rs\nMIME type: text/x-rust","source":{"type":"text","media_type":"text/plain","data":"fn main() {}\n"}}
    "#);
}

#[test]
fn titles_fit_the_api() {
    let title = |resource: Resource| super::title(&Snapshot::from(resource));
    assert_eq!(title(text("a:b", "")), Some("a:b".to_owned()));
    assert_eq!(
        title(text("a:b", "").with_name(" ")),
        Some("a:b".to_owned())
    );
    assert_eq!(title(text("", "")), None);
    assert_eq!(
        title(text("a:b", "").with_name("ä".repeat(500))),
        Some("ä".repeat(500))
    );
    assert_eq!(
        title(text("a:b", "").with_name("ä".repeat(501))),
        Some("ä".repeat(499) + "…")
    );
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
        ]
    };
    insta::assert_snapshot!(messages(vec![request("See.", resources())], ALL), @r#"
    user
      {"type":"text","text":"See."}
      {"type":"document","title":"dir/logo.png","context":"URI: file:///dir/logo.png\nMIME type: image/png","source":{"type":"content","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]}}
      {"type":"document","title":"photo","context":"URI: file:///photo\nMIME type: Image/JPEG; q=1","source":{"type":"content","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9g="}}]}}
      {"type":"document","title":"dir/spec.pdf","context":"URI: file:///dir/spec.pdf\nMIME type: application/pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}
      {"type":"text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not accept image/tiff; 4 bytes]</resource>"}
      {"type":"text","text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"}
    "#);
    insta::assert_snapshot!(messages(vec![request("", resources())], TEXT_ONLY), @r#"
    user
      {"type":"text","text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[not shown: this model does not accept image/png; 4 bytes]</resource>"}
      {"type":"text","text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[not shown: this model does not accept image/jpeg; 2 bytes]</resource>"}
      {"type":"text","text":"<resource uri=\"file:///dir/spec.pdf\" name=\"dir/spec.pdf\" mimeType=\"application/pdf\">[not shown: this model does not accept application/pdf; 5 bytes]</resource>"}
      {"type":"text","text":"<resource uri=\"file:///scan.tiff\" name=\"scan.tiff\" mimeType=\"image/tiff\">[not shown: this model does not accept image/tiff; 4 bytes]</resource>"}
      {"type":"text","text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"}
    "#);
    insta::assert_snapshot!(encoded(vec![request("See.", resources())], TEXT_ONLY).1.join("\n"), @r#"
    dir/logo.png is not shown: this model does not accept image/png (4 bytes)
    photo is not shown: this model does not accept image/jpeg (2 bytes)
    dir/spec.pdf is not shown: this model does not accept application/pdf (5 bytes)
    scan.tiff is not shown: this model does not accept image/tiff (4 bytes)
    x:unknown is not shown: this model does not accept application/octet-stream (1 bytes)
    "#);
}

#[test]
fn results_of_a_round_share_a_message_with_the_next_words() {
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::text(" \n"),
        ContentBlock::resource(text("file:///a.rs#L1-2", "a\nb\n").with_mime_type("text/rust")),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
        ContentBlock::Image(image()),
        ContentBlock::Audio(media("audio/wav", b"\x89PNG")),
        ContentBlock::Question {
            question: question(),
        },
    ];
    let kinds = vec![
        request("Go", vec![]),
        said("I look"),
        said(" now."),
        call("1"),
        call("f.2"),
        call("3"),
        result("f.2", false, vec![]),
        result("1", false, blocks),
        request("Go on", vec![text("a:b", "x")]),
    ];
    insta::assert_snapshot!(messages(kinds.clone(), ALL), @r#"
    user
      {"type":"text","text":"Go"}
    assistant
      {"type":"text","text":"I look now."}
      {"type":"tool_use","id":"1","name":"read","input":{"z":"\"","a":1}}
      {"type":"tool_use","id":"f_2","name":"read","input":{"z":"\"","a":1}}
      {"type":"tool_use","id":"3","name":"read","input":{"z":"\"","a":1}}
    user
      {"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"Found:"},{"type":"document","title":"file:///a.rs#L1-2","context":"URI: file:///a.rs#L1-2\nMIME type: text/rust","source":{"type":"text","media_type":"text/plain","data":"a\nb\n"}},{"type":"document","title":"a.png","context":"URI: file:///a.png\nMIME type: image/png","source":{"type":"content","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"text","text":"[a result of `read` is not shown: this model does not accept audio/wav; 4 bytes]"},{"type":"text","text":"Sure?"}]}
      {"type":"tool_result","tool_use_id":"f_2"}
      {"type":"tool_result","tool_use_id":"3","content":[{"type":"text","text":"No result: the call was interrupted before the tool answered."}]}
      {"type":"text","text":"Go on"}
      {"type":"document","title":"a:b","context":"URI: a:b","source":{"type":"text","media_type":"text/plain","data":"x"}}
    "#);
    let capabilities = Capabilities {
        binary_results: false,
        ..ALL
    };
    insta::assert_snapshot!(encoded(kinds, capabilities).1.join("\n"), @r#"
    a.png is not shown: tool results can only contain text, not image/png (4 bytes)
    a result of `read` is not shown: tool results can only contain text, not image/png (4 bytes)
    a result of `read` is not shown: this model does not accept audio/wav (4 bytes)
    "#);
}

fn question() -> InputRequest {
    serde_json::from_value(json!({"id": "q", "text": "Sure?", "schema": {"type": "boolean"}}))
        .unwrap()
}

#[test]
fn failed_results_are_text() {
    let blocks = vec![
        ContentBlock::text("no \"such\" file"),
        ContentBlock::resource(text("file:///a.rs", "a\n").with_mime_type("text/rust")),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
        ContentBlock::Image(image()),
    ];
    let kinds = vec![
        request("Go", vec![]),
        call("1"),
        call("2"),
        result("1", true, blocks),
        result("2", true, vec![ContentBlock::text("")]),
    ];
    insta::assert_snapshot!(messages(kinds, ALL), @r#"
    user
      {"type":"text","text":"Go"}
    assistant
      {"type":"tool_use","id":"1","name":"read","input":{"z":"\"","a":1}}
      {"type":"tool_use","id":"2","name":"read","input":{"z":"\"","a":1}}
    user
      {"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"no \"such\" file"},{"type":"text","text":"```rs (file:///a.rs)\na\n```\n"},{"type":"text","text":"<resource uri=\"file:///a.png\" name=\"a.png\" mimeType=\"image/png\">[not shown: results of failed tools can only contain text, not image/png; 4 bytes]</resource>"},{"type":"text","text":"[a result of `read` is not shown: results of failed tools can only contain text, not image/png; 4 bytes]"}],"is_error":true}
      {"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"The tool failed without a message."}],"is_error":true}
    "#);
}

#[test]
fn reasoning_is_replayed_in_place_to_the_model_that_made_it() {
    let kinds = vec![
        request("Go", vec![]),
        signed(
            ChatResponse::reasoning("One \"é\""),
            SIGNATURE,
            "s1==",
            "anthropic/m",
        ),
        signed(
            ChatResponse::reasoning(""),
            REDACTED_THINKING,
            "r1==",
            "anthropic/m",
        ),
        said("Looking."),
        signed(
            ChatResponse::reasoning(""),
            SIGNATURE,
            "s2==",
            "anthropic/m",
        ),
        signed(
            ChatResponse::message("Words."),
            REDACTED_THINKING,
            "r2==",
            "anthropic/m",
        ),
        signed(
            ChatResponse::reasoning("another model's"),
            SIGNATURE,
            "x",
            "anthropic/m2",
        ),
        thought("unsigned"),
        call("1"),
        result("1", false, vec![ContentBlock::text("ok")]),
        signed(
            ChatResponse::reasoning("cut off"),
            SIGNATURE,
            "s3==",
            "anthropic/m",
        ),
        request("Go on", vec![]),
        said("Half an"),
        signed(
            ChatResponse::reasoning("cut off"),
            SIGNATURE,
            "s4==",
            "anthropic/m",
        ),
        request("Go on", vec![]),
    ];
    insta::assert_snapshot!(messages(kinds, ALL), @r#"
    user
      {"type":"text","text":"Go"}
    assistant
      {"type":"thinking","thinking":"One \"é\"","signature":"s1=="}
      {"type":"redacted_thinking","data":"r1=="}
      {"type":"text","text":"Looking."}
      {"type":"thinking","thinking":"","signature":"s2=="}
      {"type":"text","text":"Words."}
      {"type":"redacted_thinking","data":"r2=="}
      {"type":"tool_use","id":"1","name":"read","input":{"z":"\"","a":1}}
    user
      {"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"ok"}]}
    assistant
      {"type":"text","text":"No answer: the request was interrupted."}
    user
      {"type":"text","text":"Go on"}
    assistant
      {"type":"text","text":"Half an"}
    user
      {"type":"text","text":"Go on"}
    "#);
}

#[test]
fn what_is_missing_is_said() {
    let kinds = vec![
        said("Beginning lost"),
        request("", vec![]),
        request("Go", vec![]),
        said(" \n"),
    ];
    insta::assert_snapshot!(messages(kinds, ALL), @r#"
    user
      {"type":"text","text":"(Earlier messages are left out.)"}
    assistant
      {"type":"text","text":"Beginning lost"}
    user
      {"type":"text","text":"(An empty message.)"}
    assistant
      {"type":"text","text":"No answer: the request was interrupted."}
    user
      {"type":"text","text":"Go"}
    assistant
      {"type":"text","text":"No answer: the request was interrupted."}
    "#);
    let kinds = vec![request("Go", vec![]), call("1"), request("Well?", vec![])];
    insta::assert_snapshot!(messages(kinds, ALL), @r#"
    user
      {"type":"text","text":"Go"}
    assistant
      {"type":"tool_use","id":"1","name":"read","input":{"z":"\"","a":1}}
    user
      {"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"No result: the call was interrupted before the tool answered."}]}
      {"type":"text","text":"Well?"}
    "#);
}

#[test]
fn calls_get_names_that_the_api_takes() {
    let named = |name: String| {
        let EventKind::ToolCallRequest(call) = call("1") else {
            unreachable!()
        };
        EventKind::ToolCallRequest(ToolCallRequest { name, ..call })
    };
    let kinds = vec![
        request("Go", vec![]),
        named(String::new()),
        named("f.g".to_owned()),
        named("é".repeat(201)),
    ];
    let messages = messages(kinds, ALL).replace(&"_".repeat(200), "_ × 200");
    insta::assert_snapshot!(messages, @r#"
    user
      {"type":"text","text":"Go"}
    assistant
      {"type":"tool_use","id":"1","name":"_","input":{"z":"\"","a":1}}
      {"type":"tool_use","id":"1_2","name":"f_g","input":{"z":"\"","a":1}}
      {"type":"tool_use","id":"1_3","name":"_ × 200","input":{"z":"\"","a":1}}
    user
      {"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"No result: the call was interrupted before the tool answered."}]}
      {"type":"tool_result","tool_use_id":"1_2","content":[{"type":"text","text":"No result: the call was interrupted before the tool answered."}]}
      {"type":"tool_result","tool_use_id":"1_3","content":[{"type":"text","text":"No result: the call was interrupted before the tool answered."}]}
    "#);
}

/// Cuts the body down to what it says of the history: the end of the last message, where more may follow,
/// and the marks are left out.
fn history(json: &str) -> String {
    let messages = json
        .split_once(r#""messages":["#)
        .unwrap()
        .1
        .strip_suffix("]}")
        .unwrap();
    without_marks(messages.strip_suffix("]}").unwrap_or(messages))
}

/// What the API says of messages and no type does.
fn check(body: &Value) -> Result<(), TestCaseError> {
    let mut calls: Vec<&Value> = Vec::new();
    let mut used = std::collections::HashSet::new();
    let roles = ["user", "assistant"].into_iter().cycle();
    for (message, role) in body["messages"].as_array().unwrap().iter().zip(roles) {
        prop_assert_eq!(&message["role"], role);
        let blocks = message["content"].as_array().unwrap();
        let is = |kind: &'static str| move |block: &&Value| block["type"] == kind;
        let results: Vec<_> = blocks
            .iter()
            .filter(is("tool_result"))
            .map(|block| &block["tool_use_id"])
            .collect();
        prop_assert!(
            blocks
                .iter()
                .take(results.len())
                .all(|block| block["type"] == "tool_result")
        );
        prop_assert_eq!(results, calls);
        calls = blocks
            .iter()
            .filter(is("tool_use"))
            .map(|block| &block["id"])
            .collect();
        prop_assert!(calls.iter().all(|id| used.insert(id.to_string())));
        prop_assert!(!blocks.is_empty());
        let ends_with = &blocks[blocks.len() - 1]["type"];
        prop_assert!(ends_with != "thinking" && ends_with != "redacted_thinking");
        let is_blank = |block: &Value| block["text"].as_str().is_some_and(is_blank);
        let nested = blocks
            .iter()
            .filter_map(|block| block["content"].as_array())
            .flatten();
        prop_assert!(!blocks.iter().chain(nested).any(is_blank), "{}", message);
    }
    Ok(())
}

/// Steps as those of every format, with half of the reasoning signed by the model that is asked.
fn any_signed_steps() -> impl Strategy<Value = Vec<Vec<EventKind>>> {
    let sign = |kind| match kind {
        EventKind::ChatResponse(response) => match &response.content {
            ResponseContent::Reasoning(text) if text.len() % 2 == 0 => {
                signed(response, SIGNATURE, "s==", "anthropic/m")
            }
            _ => EventKind::ChatResponse(response),
        },
        other => other,
    };
    let sign_all = move |step: Vec<EventKind>| step.into_iter().map(sign).collect();
    any_steps().prop_map(move |steps| steps.into_iter().map(sign_all).collect())
}

proptest! {
    #[test]
    fn any_thread_gives_stable_json(
        steps in any_signed_steps(),
        images in any::<bool>(),
        binary_results in any::<bool>(),
    ) {
        let capabilities = Capabilities { images, binary_results, ..ALL };
        let (json, notes) = encoded(steps.concat(), capabilities);
        let body: Value = serde_json::from_str(&json).unwrap();
        check(&body)?;
        let marks = json.matches(MARK).count();
        prop_assert!((1..=MOST_MARKS).contains(&marks));
        prop_assert_eq!(encoded(steps.concat(), capabilities), (json, notes));
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_signed_steps()) {
        check_histories(&steps, |kinds| encoded(kinds, ALL).0, history)?;
    }
}

#[test]
fn calls_in_the_history_of_a_request_without_tools_have_one_that_can_not_be_called() {
    let kinds = || {
        vec![
            request("Hi", vec![]),
            call("1"),
            result("1", false, vec![]),
            request("And?", vec![]),
        ]
    };
    let head = |tools: &[Tool]| {
        let json = encoded_with(kinds(), ALL, tools).0;
        json.split_once(r#","messages""#).unwrap().0.to_owned()
    };
    assert_contains(head(&[]), r#""tools":[{"name":"none","#);
    assert!(head(&[]).contains(r#""tool_choice":{"type":"none"}"#));
    assert!(!head(&[tool()]).contains("tool_choice"));
    assert!(
        !encoded_with(vec![request("Hi", vec![])], ALL, &[])
            .0
            .contains("tool")
    );
}
