use proptest::prelude::*;

use super::*;
use crate::fixtures::{
    Decoded, assert_every_cut, assert_recorded, decode_chunks, describe_with_status, lines, split,
};

const STREAM: &str = concat!(
    ": comment\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":12,\"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\r\n\r\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm…\",\"estimated_tokens\":null}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"EqQ\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"BCg==\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"Emw=\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"text\",\"text\":\"Let me \"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"type\":\"char_location\"}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\",\"text\":\"löök.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"srv\",\"name\":\"web_search\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"query\\\":1}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":4,\"content_block\":{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srv\",\"content\":[]}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":4}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":5,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"read\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":5,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":5,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"z\\\":\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":5,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"1,\\\"a\\\":2}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":5}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":6,\"content_block\":{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"list\",\"input\":{\"whole\":true},\"caller\":{\"type\":\"direct\"}}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":6}\n\n",
    "event: from_the_future\ndata: {\"type\":\"from_the_future\",\"delta\":7}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":13,\"output_tokens\":42,\"output_tokens_details\":{\"thinking_tokens\":9}}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_chunks(decoder(), chunks, describe_with_status)
}

fn outline(stream: &str) -> Vec<String> {
    lines(decode(&[stream.as_bytes()]))
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn text(text: &str) -> String {
    event(&format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    ))
}

fn stop(reason: &str) -> String {
    event(&format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#
    )) + &event(r#"{"type":"message_stop"}"#)
}

#[test]
fn stream_gives_its_events_in_order() {
    insta::assert_snapshot!(outline(STREAM).join("\n"), @r#"
    reasoning Hm…
    end {"signature":"EqQBCg=="}
    end {"redacted_thinking":"Emw="}
    text Let me 
    text löök.
    call a:read {"z":1,"a":2} {}
    call b:list {"whole":true} {}
    {"model":"","input":118,"cached_read":100,"cached_write":5,"output":42,"reasoning":9}
    ToolCalls
    "#);
}

#[test]
fn every_single_cut_gives_the_same_events() {
    assert_every_cut(decode, STREAM.as_bytes());
}

#[test]
fn recorded_stream_survives_every_single_cut() {
    assert_recorded(decode, "anthropic.sse", 6);
}

proptest! {
    #[test]
    fn every_split_gives_the_same_outcome(
        parts in prop::collection::vec(prop::sample::select(vec![
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ä\"}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\r\n\r\n",
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n",
            "data: nonsense\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
            ": ping\n",
        ]), 0..8),
        cuts in prop::collection::vec(0usize..800, 0..6),
    ) {
        let stream = parts.concat();
        prop_assert_eq!(decode(&split(&stream, cuts)), decode(&[stream.as_bytes()]));
    }

    #[test]
    fn no_event_panics(
        kind in prop::sample::select(vec!["message_start", "content_block_start", "content_block_delta", "message_delta", "error"]),
        data in "(\"(index|delta|content_block|message|usage|error|type|text_delta|text|thinking)\"|[\\[\\]{}:,0-9]){0,30}",
    ) {
        outline(&format!("data: {{\"type\":\"{kind}\",{data}}}\n\n"));
        outline(&format!("data: {data}\n\n"));
    }
}

#[test]
fn stream_without_an_end_is_truncated() {
    assert_eq!(
        outline(&text("half")),
        ["text half", "it ended before it was complete"]
    );
    assert_eq!(outline(""), ["it ended before it was complete"]);
    let finished = text("half")
        + "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}";
    assert_eq!(outline(&finished), ["text half", "Length"]);
}

#[test]
fn reasons_are_told_apart() {
    for (reason, expected) in [
        ("end_turn", "Stop"),
        ("stop_sequence", "Stop"),
        ("max_tokens", "Length"),
        ("model_context_window_exceeded", "Length"),
        ("tool_use", "ToolCalls"),
        ("refusal", "ContentFilter"),
        ("pause_turn", "Other(\"pause_turn\")"),
    ] {
        assert_eq!(outline(&stop(reason)), [expected]);
    }
    assert_eq!(outline(&event(r#"{"type":"message_stop"}"#)), ["Stop"]);
}

#[test]
fn error_in_the_stream_ends_it() {
    for (error, message) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded\u001b[1m"}}"#,
            "529: the server says: Overloaded[1m",
        ),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
            "429: the server says: slow down",
        ),
        (
            r#"{"type":"error","error":{"type":"odd_error"}}"#,
            r#"the server says: {"type":"odd_error"}"#,
        ),
        (r#"{"type":"error"}"#, "the server says: null"),
        (
            r#"{"error":{"type":"api_error","message":"oops"}}"#,
            "500: the server says: oops",
        ),
        ("<html>", "it contains invalid data: <html>"),
        ("[1]", "it contains invalid data: [1]"),
        (
            r#"{"type":"content_block_delta","delta":7}"#,
            r#"it contains invalid data: {"type":"content_block_delta","delta":7}"#,
        ),
    ] {
        let stream = text("half") + &event(error) + &stop("end_turn");
        assert_eq!(outline(&stream), ["text half", message]);
    }
}

#[test]
fn call_that_was_cut_off_keeps_its_arguments_as_they_came() {
    let start = r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let piece = r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"n\":3,"}}"#;
    let stream = event(start) + &event(piece) + &stop("max_tokens");
    assert_eq!(
        outline(&stream),
        [r#"call a:f {} {"invalid_arguments":"{\"n\":3,"}"#, "Length"]
    );
}

#[test]
fn reasoning_without_text_ends_what_is_open_with_its_signature() {
    let block = |index: u64, block: &str| {
        event(&format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#
        )) + &event(&format!(
            r#"{{"type":"content_block_stop","index":{index}}}"#
        ))
    };
    let stream = block(0, r#"{"type":"text","text":"Words."}"#)
        + &block(1, r#"{"type":"thinking","thinking":"","signature":"s=="}"#)
        + &block(2, r#"{"type":"thinking","thinking":"unsigned"}"#)
        + &block(3, r#"{"type":"redacted_thinking","data":""}"#)
        + &stop("end_turn");
    assert_eq!(
        outline(&stream),
        [
            "text Words.",
            r#"end {"signature":"s=="}"#,
            "reasoning unsigned",
            "Stop"
        ]
    );
}
