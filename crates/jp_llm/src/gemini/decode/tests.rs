use proptest::prelude::*;

use super::*;
use crate::fixtures::{Decoded, assert_every_cut, assert_recorded, decode_chunks, lines, split};

const STREAM: &str = concat!(
    ": keep-alive\n\n",
    "event: ping\ndata: ping\n\n",
    "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hm\",\"thought\":true}]},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":41},\"modelVersion\":\"m\"}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"…\",\"thought\":true},{\"text\":\"Let me \"}]}}]}\n\n",
    "data: {\"candidates\":[{\"index\":1,\"content\":{\"parts\":[{\"text\":\"another candidate\"}]}}]}\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"löök.\",\"thoughtSignature\":\"c2ln\"}]}}],\"unknown\":{}}\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"inlineData\":{},\"thoughtSignature\":\"x\"},{\"executableCode\":{\"code\":\"1\"}},{}]}}]}\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"read\",\"args\":{\"z\":\"ä\",\"a\":1}},\"thoughtSignature\":\"Y2Fs\"},{\"functionCall\":{\"id\":\"fc_9\",\"name\":\"list\"}}]}}]}\n\n",
    "data: {\"candidates\":[{\"content\":{},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":41,\"cachedContentTokenCount\":30,\"candidatesTokenCount\":7,\"thoughtsTokenCount\":2,\"totalTokenCount\":50}}\n\n",
);

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_chunks(decoder(), chunks, |fault| fault.to_string())
}

fn outline(stream: &str) -> Vec<String> {
    lines(decode(&[stream.as_bytes()]))
}

/// A stream of one event with these parts.
fn parts(parts: &str) -> String {
    format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}}}}]}}\n\n")
}

fn finish(reason: &str) -> String {
    format!("data: {{\"candidates\":[{{\"finishReason\":\"{reason}\"}}]}}\n\n")
}

#[test]
fn stream_gives_its_events_in_order() {
    insta::assert_snapshot!(outline(STREAM).join("\n"), @r#"
    reasoning Hm
    reasoning …
    text Let me 
    text löök.
    end {"thoughtSignature":"c2ln","signedBytes":7}
    call call-1:read {"z":"ä","a":1} {"thoughtSignature":"Y2Fs"}
    call fc_9:list {} {"id":"fc_9"}
    {"model":"","input":41,"cached_read":30,"output":9,"reasoning":2}
    ToolCalls
    "#);
}

#[test]
fn every_single_cut_gives_the_same_events() {
    assert_every_cut(decode, STREAM.as_bytes());
}

#[test]
fn recorded_stream_survives_every_single_cut() {
    assert_recorded(decode, "gemini.sse", 5);
}

proptest! {
    #[test]
    fn every_split_gives_the_same_outcome(
        pieces in prop::collection::vec(prop::sample::select(vec![
            parts(r#"{"text":"ä"}"#),
            parts(r#"{"text":"hm","thought":true}"#),
            parts(r#"{"text":"","thoughtSignature":"c2ln"}"#).replace('\n', "\r\n"),
            parts(r#"{"functionCall":{"name":"f","args":{"n":1}}}"#),
            finish("STOP"),
            "data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n".to_owned(),
            "data: nonsense\n\n".to_owned(),
            ": ping\n".to_owned(),
        ]), 0..8),
        cuts in prop::collection::vec(0usize..600, 0..6),
    ) {
        let stream = pieces.concat();
        prop_assert_eq!(decode(&split(&stream, cuts)), decode(&[stream.as_bytes()]));
    }

    #[test]
    fn no_chunk_panics(data in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
        outline(&format!("data: {data}\n\n"));
    }
}

#[test]
fn signature_says_which_part_of_its_run_it_came_with() {
    let text = r#"{"text":"ab"}"#;
    let thought = r#"{"text":"hm","thought":true}"#;
    for (stream, end) in [
        // The whole run.
        (
            parts(r#"{"text":"ab","thoughtSignature":"s"}"#),
            r#"end {"thoughtSignature":"s"}"#,
        ),
        (
            parts(r#"{"text":"h","thought":true,"thoughtSignature":"s"}"#),
            r#"end {"thoughtSignature":"s","thought":true}"#,
        ),
        // Its end.
        (
            parts(&format!(r#"{text},{{"text":"é","thoughtSignature":"s"}}"#)),
            r#"end {"thoughtSignature":"s","signedBytes":2}"#,
        ),
        // An empty part after it, of its kind or of the other.
        (
            parts(text) + &parts(r#"{"text":"","thoughtSignature":"s"}"#),
            r#"end {"thoughtSignature":"s","signedBytes":0}"#,
        ),
        (
            parts(thought) + &parts(r#"{"thoughtSignature":"s"}"#),
            r#"end {"thoughtSignature":"s","signedBytes":0}"#,
        ),
        // Nothing open.
        (
            parts(r#"{"thoughtSignature":"s"}"#),
            r#"end {"thoughtSignature":"s"}"#,
        ),
    ] {
        let outline = outline(&(stream + &finish("STOP")));
        assert_eq!(outline[outline.len() - 2..], [end, "Stop"]);
    }
}

#[test]
fn calls_without_ids_get_free_ones() {
    let stream = parts(r#"{"functionCall":{"id":"call-2","name":"f","args":{}}}"#)
        + &parts(
            r#"{"functionCall":{"name":"g","args":null}},{"functionCall":{"id":"","name":"h","args":[1]}}"#,
        )
        + &parts(r#"{"functionCall":{}}"#)
        + &finish("STOP");
    assert_eq!(
        outline(&stream),
        [
            r#"call call-2:f {} {"id":"call-2"}"#,
            "call call-3:g {} {}",
            r#"call call-4:h {} {"invalid_arguments":"[1]"}"#,
            "call call-5: {} {}",
            "ToolCalls",
        ]
    );
}

#[test]
fn finish_reasons_are_told_apart() {
    for (reason, expected) in [
        ("STOP", "Stop"),
        ("MAX_TOKENS", "Length"),
        ("SAFETY", "ContentFilter"),
        ("RECITATION", "ContentFilter"),
        (
            "MALFORMED_FUNCTION_CALL",
            r#"Other("MALFORMED_FUNCTION_CALL")"#,
        ),
        ("", "it ended before it was complete"),
        (
            "FINISH_REASON_UNSPECIFIED",
            "it ended before it was complete",
        ),
    ] {
        assert_eq!(outline(&finish(reason)), [expected]);
    }
    let blocked = r#"data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}"#;
    assert_eq!(
        outline(blocked),
        [r#"{"model":"","input":3}"#, "ContentFilter"]
    );
}

#[test]
fn stream_without_an_end_is_truncated() {
    let begun = parts(r#"{"text":"half"}"#);
    assert_eq!(
        outline(&begun),
        ["text half", "it ended before it was complete"]
    );
    assert_eq!(outline(""), ["it ended before it was complete"]);
    assert_eq!(
        outline(&(begun.clone() + finish("MAX_TOKENS").trim_end())),
        ["text half", "Length"]
    );
    assert_eq!(
        outline(&(begun + "data: [DONE]\n\n")),
        ["text half", "Stop"]
    );
}

#[test]
fn error_in_the_stream_ends_it() {
    for (error, message) in [
        (
            r#"{"error":{"code":503,"message":"The model is overloaded.\u001b[1m","status":"UNAVAILABLE"}}"#,
            "the server says: The model is overloaded.[1m",
        ),
        (
            r#"{"error":{"status":"INTERNAL"}}"#,
            r#"the server says: {"status":"INTERNAL"}"#,
        ),
        ("<html>", "it contains invalid data: <html>"),
        ("[1]", "it contains invalid data: [1]"),
    ] {
        let stream = parts(r#"{"text":"half"}"#) + &format!("data: {error}\n\n") + &finish("STOP");
        assert_eq!(outline(&stream), ["text half", message]);
    }
    let mut decoder = decoder();
    let error = decoder.push(
        b"data: {\"error\":{\"code\":429,\"message\":\"no\"}}\n\n",
        &mut VecDeque::new(),
    );
    assert!(matches!(
        error,
        Err(Fault::Provider {
            status: Some(429),
            ..
        })
    ));
}
