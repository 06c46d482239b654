use jp_conversation::EventKind;
use jp_resource::{Resource, ResourceContent};
use jp_tool::ContentBlock;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{
    EVERYTHING as ALL, TEXT_ONLY, any_steps, binary, call, check_histories, check_stable,
    cut_history, encode_events, media, question, request, result, rows, said, text, thought, tool,
    with_metadata,
};

const TEXT_RESULTS: Capabilities = Capabilities {
    binary_results: false,
    ..ALL
};

fn encoded(kinds: Vec<EventKind>, capabilities: Capabilities) -> (String, Vec<String>) {
    encode_events(kinds, |thread, store, out| {
        let request = Request {
            system: Some("You are jp."),
            capabilities,
            ..Request::new(MODEL, thread)
        };
        encode(&request, store, out)
    })
}

/// The contents, one a line.
fn contents(kinds: Vec<EventKind>, capabilities: Capabilities) -> String {
    rows(&encoded(kinds, capabilities).0, "contents", 0)
}

fn called(id: &str, metadata: Value) -> EventKind {
    with_metadata(call(id), metadata)
}

fn with_schema(content: &str) -> EventKind {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    question(content, schema)
}

fn read_tool() -> Tool {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    tool("read", "Reads a file.", parameters)
}

fn image() -> ContentBlock {
    ContentBlock::Image(media("image/png", PNG))
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const MODEL: &str = "google/gemini-3-pro";

#[test]
fn whole_request_has_fixed_order() {
    let tools = [read_tool()];
    let kinds = vec![
        request("Hi", vec![]),
        said("Ho"),
        with_schema("Is it \"ok\"?"),
    ];
    let whole = |label| {
        let (json, notes) = encode_events(kinds.clone(), |thread, store, out| {
            let request = Request {
                system: Some("You are jp."),
                tools: &tools,
                max_output: Some(1000),
                capabilities: ALL,
                ..Request::new(label, thread)
            };
            encode(&request, store, out)
        });
        let note = [
            "the list of tools is left out: this model does not support tools together with a schema",
        ];
        assert_eq!(
            notes,
            if label == "google/gemini-2.5-pro" {
                &note[..]
            } else {
                &[]
            },
            "{label}"
        );
        json
    };
    insta::assert_snapshot!(whole("google/gemini-3-pro"), @r#"{"systemInstruction":{"parts":[{"text":"You are jp."}]},"tools":[{"functionDeclarations":[{"name":"read","description":"Reads a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}],"generationConfig":{"maxOutputTokens":1000,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}},"thinkingConfig":{"includeThoughts":true}},"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Ho"}]},{"role":"user","parts":[{"text":"Is it \"ok\"?"}]}]}"#);
    insta::assert_snapshot!(whole("google/gemini-2.5-pro"), @r#"{"systemInstruction":{"parts":[{"text":"You are jp."}]},"generationConfig":{"maxOutputTokens":1000,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}},"thinkingConfig":{"includeThoughts":true}},"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Ho"}]},{"role":"user","parts":[{"text":"Is it \"ok\"?"}]}]}"#);
    insta::assert_snapshot!(whole("google/gemma-3-27b-it"), @r#"{"systemInstruction":{"parts":[{"text":"You are jp."}]},"tools":[{"functionDeclarations":[{"name":"read","description":"Reads a file.","parametersJsonSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}],"generationConfig":{"maxOutputTokens":1000,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}},"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Ho"}]},{"role":"user","parts":[{"text":"Is it \"ok\"?"}]}]}"#);
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
        formatted,
    ];
    let kinds = vec![
        request("Review.", resources.clone()),
        request("", resources),
        request("", vec![]),
    ];
    insta::assert_snapshot!(contents(kinds, ALL), @r#"
    {"role":"user","parts":[{"text":"Review."},{"text":"<resource uri=\"file:///src/main.rs\" name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"text":"<resource uri=\"file:///a&amp;b\" endsWithNewline=\"false\">\n<\\/Resource>\n</resource>"},{"text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    {"role":"model","parts":[{"text":"No answer: the request was interrupted."}]}
    {"role":"user","parts":[{"text":"<resource uri=\"file:///src/main.rs\" name=\"src/main.rs\" mimeType=\"text/x-rust\">\nfn main() {}\n</resource>"},{"text":"<resource uri=\"file:///a&amp;b\" endsWithNewline=\"false\">\n<\\/Resource>\n</resource>"},{"text":"<resource uri=\"cmd://x\" name=\"x\">\nshown\n</resource>"}]}
    {"role":"model","parts":[{"text":"No answer: the request was interrupted."}]}
    {"role":"user","parts":[{"text":""}]}
    "#);
}

#[test]
fn binary_content_is_shown_to_models_that_take_it() {
    let resources = || {
        vec![
            binary("dir/logo.png", "image/png", b"\x89PNG"),
            binary("photo", "Image/JPEG; q=1", b"\xff\xd8"),
            binary("anim.gif", "image/gif", b"GIF8"),
            binary("spec.pdf", "application/pdf", b"%PDF-"),
            binary("song.mp3", "audio/mpeg", b"ID3"),
            binary("film.mp4", "video/mp4", b"ftyp"),
            binary("text.docx", "application/msword", b"PK"),
            Resource::new("x:unknown", ResourceContent::Blob(vec![0])),
        ]
    };
    insta::assert_snapshot!(contents(vec![request("See.", resources())], ALL), @r#"{"role":"user","parts":[{"text":"See."},{"text":"<resource uri=\"file:///dir/logo.png\" name=\"dir/logo.png\" mimeType=\"image/png\">[the next part of this message]</resource>"},{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"text":"<resource uri=\"file:///photo\" name=\"photo\" mimeType=\"Image/JPEG; q=1\">[the next part of this message]</resource>"},{"inlineData":{"mimeType":"image/jpeg","data":"/9g="}},{"text":"<resource uri=\"file:///anim.gif\" name=\"anim.gif\" mimeType=\"image/gif\">[not shown: this model does not accept image/gif; 4 bytes]</resource>"},{"text":"<resource uri=\"file:///spec.pdf\" name=\"spec.pdf\" mimeType=\"application/pdf\">[the next part of this message]</resource>"},{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}},{"text":"<resource uri=\"file:///song.mp3\" name=\"song.mp3\" mimeType=\"audio/mpeg\">[the next part of this message]</resource>"},{"inlineData":{"mimeType":"audio/mpeg","data":"SUQz"}},{"text":"<resource uri=\"file:///film.mp4\" name=\"film.mp4\" mimeType=\"video/mp4\">[the next part of this message]</resource>"},{"inlineData":{"mimeType":"video/mp4","data":"ZnR5cA=="}},{"text":"<resource uri=\"file:///text.docx\" name=\"text.docx\" mimeType=\"application/msword\">[not shown: this model does not accept application/msword; 2 bytes]</resource>"},{"text":"<resource uri=\"x:unknown\">[not shown: this model does not accept application/octet-stream; 1 bytes]</resource>"}]}"#);
    insta::assert_snapshot!(encoded(vec![request("See.", resources())], TEXT_ONLY).1.join("\n"), @r#"
    dir/logo.png is not shown: this model does not accept image/png (4 bytes)
    photo is not shown: this model does not accept image/jpeg (2 bytes)
    anim.gif is not shown: this model does not accept image/gif (4 bytes)
    spec.pdf is not shown: this model does not accept application/pdf (5 bytes)
    song.mp3 is not shown: this model does not accept audio/mpeg (3 bytes)
    film.mp4 is not shown: this model does not accept video/mp4 (4 bytes)
    text.docx is not shown: this model does not accept application/msword (2 bytes)
    x:unknown is not shown: this model does not accept application/octet-stream (1 bytes)
    "#);
}

#[test]
fn results_answer_their_calls_part_for_part() {
    let blocks = vec![
        ContentBlock::text("Found:"),
        ContentBlock::resource(binary("a.png", "image/png", b"\x89PNG")),
        ContentBlock::resource(text("file:///a.rs#L1-2", "a\nb\n").with_mime_type("text/rust")),
        ContentBlock::text("x".repeat(300)),
        image(),
        ContentBlock::Audio(media("audio/wav", b"RIFF")),
    ];
    let kinds = vec![
        request("Go", vec![]),
        said("I look"),
        said(" now."),
        call("1"),
        call(""),
        result("", true, vec![ContentBlock::text("no \"such\" file")]),
        result("1", false, blocks),
        thought("only reasoning"),
        request("Go on", vec![]),
        call("1"),
        request("", vec![]),
        thought("only reasoning"),
        request("Well?", vec![]),
    ];
    insta::assert_snapshot!(contents(kinds.clone(), ALL), @r#"
    {"role":"user","parts":[{"text":"Go"}]}
    {"role":"model","parts":[{"text":"I look"},{"text":" now."},{"functionCall":{"name":"read","args":{"z":"\"","a":1}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"read","args":{"z":"\"","a":1}}}]}
    {"role":"user","parts":[{"functionResponse":{"name":"read","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}],"response":{"output":"Found:\n[a.png (file:///a.png) is part 1 of this result: image/png]\n```rs (file:///a.rs, lines 1-2)\na\nb\n```\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[a result of `read` is part 2 of this result: image/png]\n[a result of `read` is not shown: this model does not accept audio/wav in tool results; 4 bytes]"}}},{"functionResponse":{"name":"read","response":{"error":"no \"such\" file"}}}]}
    {"role":"user","parts":[{"text":"Go on"}]}
    {"role":"model","parts":[{"functionCall":{"name":"read","args":{"z":"\"","a":1}},"thoughtSignature":"skip_thought_signature_validator"}]}
    {"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"No result: the call was interrupted before the tool answered."}}}]}
    {"role":"user","parts":[{"text":""},{"text":"Well?"}]}
    "#);
    insta::assert_snapshot!(encoded(kinds.clone(), ALL).1.join("\n"), @r#"a result of `read` is not shown: this model does not accept audio/wav in tool results (4 bytes)"#);
    insta::assert_snapshot!(contents(kinds.clone(), TEXT_RESULTS).lines().nth(2).unwrap(), @r#"{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"Found:\n[a.png (file:///a.png) is not shown: tool results can only contain text, not image/png; 4 bytes]\n```rs (file:///a.rs, lines 1-2)\na\nb\n```\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n[a result of `read` is not shown: tool results can only contain text, not image/png; 8 bytes]\n[a result of `read` is not shown: tool results can only contain text, not audio/wav; 4 bytes]"}}},{"functionResponse":{"name":"read","response":{"error":"no \"such\" file"}}}]}"#);
    insta::assert_snapshot!(encoded(kinds, TEXT_RESULTS).1.join("\n"), @r#"
    a.png is not shown: tool results can only contain text, not image/png (4 bytes)
    a result of `read` is not shown: tool results can only contain text, not image/png (8 bytes)
    a result of `read` is not shown: tool results can only contain text, not audio/wav (4 bytes)
    "#);
}

#[test]
fn signatures_go_back_on_their_parts_to_the_model_that_made_them() {
    let kinds = |model: &str| {
        vec![
            request("Go", vec![]),
            thought("unsigned"),
            with_metadata(
                thought("signed"),
                json!({"thoughtSignature": "a", "thought": true, "model": model}),
            ),
            with_metadata(
                thought("summary"),
                json!({"thoughtSignature": "b", "signedBytes": 0, "model": model}),
            ),
            with_metadata(
                said("begin, énd"),
                json!({"thoughtSignature": "c", "signedBytes": 4, "model": model}),
            ),
            with_metadata(
                said("edited é"),
                json!({"thoughtSignature": "d", "signedBytes": 1, "model": model}),
            ),
            with_metadata(
                said("cut"),
                json!({"thoughtSignature": "e", "signedBytes": 9, "model": model}),
            ),
            called(
                "fc_1",
                json!({"id": "fc_1", "thoughtSignature": "f", "model": model}),
            ),
            called("fc_2", json!({"id": "fc_2", "model": model})),
            result("fc_1", false, vec![]),
            result("fc_2", false, vec![]),
        ]
    };
    insta::assert_snapshot!(contents(kinds(MODEL), ALL), @r#"
    {"role":"user","parts":[{"text":"Go"}]}
    {"role":"model","parts":[{"text":"signed","thought":true,"thoughtSignature":"a"},{"text":"","thoughtSignature":"b"},{"text":"begin, "},{"text":"énd","thoughtSignature":"c"},{"text":"edited é","thoughtSignature":"d"},{"text":"cut","thoughtSignature":"e"},{"functionCall":{"id":"fc_1","name":"read","args":{"z":"\"","a":1}},"thoughtSignature":"f"},{"functionCall":{"id":"fc_2","name":"read","args":{"z":"\"","a":1}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"fc_1","name":"read","response":{"output":""}}},{"functionResponse":{"id":"fc_2","name":"read","response":{"output":""}}}]}
    "#);
    insta::assert_snapshot!(contents(kinds("google/gemini-2.5-pro"), ALL), @r#"
    {"role":"user","parts":[{"text":"Go"}]}
    {"role":"model","parts":[{"text":"begin, énd"},{"text":"edited é"},{"text":"cut"},{"functionCall":{"name":"read","args":{"z":"\"","a":1}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"read","args":{"z":"\"","a":1}}}]}
    {"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":""}}},{"functionResponse":{"name":"read","response":{"output":""}}}]}
    "#);
}

#[test]
fn call_without_a_signature_is_excused_where_one_is_demanded() {
    let kinds = vec![request("Go", vec![]), call("1"), call("2")];
    for (label, expected) in [
        ("google/gemini-2.5-pro", 0),
        ("google/gemini-3-pro", 1),
        ("google/gemma-3", 0),
    ] {
        let (json, _) = encode_events(kinds.clone(), |thread, store, out| {
            encode(&Request::new(label, thread), store, out)
        });
        assert_eq!(json.matches(NO_SIGNATURE).count(), expected, "{label}");
    }
}

fn history(json: &str) -> String {
    cut_history(json, r#""contents":["#, "]}]}").to_owned()
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
        check_stable(|| encoded(steps.concat(), capabilities))?;
    }

    #[test]
    fn calls_are_answered_in_the_next_content(steps in any_steps()) {
        let (json, _) = encoded(steps.concat(), ALL);
        let body: Value = serde_json::from_str(&json).unwrap();
        let count = |content: &Value, key| {
            content["parts"].as_array().unwrap().iter().filter(|part| part.get(key).is_some()).count()
        };
        let contents = body["contents"].as_array().unwrap();
        let answers = contents.iter().skip(1).map(|content| count(content, "functionResponse"));
        let calls: Vec<usize> = contents.iter().map(|content| count(content, "functionCall")).collect();
        let answers: Vec<usize> = answers.chain([0]).take(calls.len()).collect();
        prop_assert_eq!(calls, answers);
    }

    #[test]
    fn history_is_a_prefix_of_the_next_request(steps in any_steps()) {
        check_histories(&steps, |kinds| encoded(kinds, ALL).0, history)?;
    }
}
