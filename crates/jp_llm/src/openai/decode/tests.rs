use proptest::prelude::*;

use super::*;
use crate::fixtures::{
    Decoded, assert_every_cut, assert_recorded, decode_chunks, describe_with_status, split,
};

const STREAM: &str = concat!(
    ": keep-alive\n\n",
    "event: ping\ndata: ping\n\n",
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\",\"error\":null,\"usage\":null}}\r\n\r\n",
    "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"half\"}}\n\n",
    "data: {\"type\":\"response.reasoning_summary_part.added\",\"summary_index\":0}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"Hm…\"}\n\n",
    "data: {\"type\":\"response.reasoning_summary_part.added\",\"summary_index\":1}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"Aha.\",\"obfuscation\":\"x\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"Hm…\"},{\"type\":\"summary_text\",\"text\":\"Aha.\"}],\"content\":null,\"status\":null,\"encrypted_content\":\"gAAA\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"content\":[]}}\n\n",
    "data: {\"type\":\"response.content_part.added\",\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Let me \"}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"löök.\"}\n\n",
    "data: {\"type\":\"response.output_text.done\",\"text\":\"Let me löök.\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"status\":\"completed\",\"phase\":\"commentary\",\"content\":[{\"type\":\"output_text\",\"text\":\"Let me löök.\"}]}}\n\n",
    "event: response.output_text.delta\ndata: {\"delta\":\"More.\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"id\":\"msg_2\",\"phase\":null,\"content\":[]}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"id\":\"rs_2\",\"summary\":[],\"encrypted_content\":\"gBBB\"}}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{\\\"path\\\":\"}\n\n",
    "data: {\"type\":\"response.function_call_arguments.done\",\"arguments\":\"{\\\"path\\\":\\\"x\\\"}\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"a\",\"name\":\"read\",\"arguments\":\"{\\\"path\\\":\\\"x\\\"}\"}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"b\",\"name\":\"list\",\"arguments\":\"\"}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"list\",\"arguments\":\"[1\"}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"web_search_call\",\"id\":\"ws_1\"}}\n\n",
    "data: {\"type\":\"response.from_the_future\",\"delta\":{\"x\":1},\"error\":{}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"error\":null,\"incomplete_details\":null,\"output\":[{\"type\":\"message\",\"content\":[{\"text\":\"again\"}]}],\"usage\":{\"input_tokens\":41,\"input_tokens_details\":{\"cached_tokens\":30,\"cache_write_tokens\":8},\"output_tokens\":7,\"output_tokens_details\":{\"reasoning_tokens\":2},\"total_tokens\":48}}}\n\n",
    "data: [DONE]\n\n",
);

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_chunks(decoder(), chunks, describe_with_status)
}

fn outline(stream: &str) -> Vec<String> {
    let (events, result) = decode(&[stream.as_bytes()]);
    let line = |event| match event {
        StreamEvent::Text(text) => format!("text {text:?}"),
        StreamEvent::Reasoning(text) => format!("reasoning {text:?}"),
        StreamEvent::EndPart(metadata) => format!("end {}", Value::Object(metadata)),
        StreamEvent::ToolCall(call) => {
            let [arguments, metadata] = [call.arguments, call.metadata].map(Value::Object);
            format!("call {}:{} {arguments} {metadata}", call.id, call.name)
        }
        StreamEvent::Usage(usage) => serde_json::to_string(&usage).unwrap(),
        StreamEvent::Finish(reason) => format!("{reason:?}"),
    };
    events.into_iter().map(line).chain(result.err()).collect()
}

fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

#[test]
fn stream_gives_its_events_in_order() {
    insta::assert_snapshot!(outline(STREAM).join("\n"), @r#"
    reasoning "Hm…"
    reasoning "\n\n"
    reasoning "Aha."
    end {"id":"rs_1","summary":[{"type":"summary_text","text":"Hm…"},{"type":"summary_text","text":"Aha."}],"encrypted_content":"gAAA"}
    text "Let me "
    text "löök."
    end {"id":"msg_1","phase":"commentary"}
    text "More."
    end {"id":"msg_2"}
    end {"id":"rs_2","encrypted_content":"gBBB"}
    call a:read {"path":"x"} {}
    call b:list {} {}
    call c:list {} {"invalid_arguments":"[1"}
    {"model":"","input":41,"cached_read":30,"cached_write":8,"output":7,"reasoning":2}
    ToolCalls
    "#);
}

#[test]
fn every_single_cut_gives_the_same_events() {
    assert_every_cut(decode, STREAM.as_bytes());
}

#[test]
fn recorded_stream_survives_every_single_cut() {
    assert_recorded(decode, "openai.sse", 7);
}

proptest! {
    #[test]
    fn every_split_gives_the_same_outcome(
        parts in prop::collection::vec(prop::sample::select(vec![
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"ä\"}\n\n",
            "event: response.reasoning_text.delta\r\ndata: {\"delta\":\"h\"}\r\n\r\n",
            "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"id\":\"m\"}}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"id\":\"r\",\"encrypted_content\":\"g\"}}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"a\"}}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"message\":\"no\"}\n\n",
            "data: nonsense\n\n",
            ": ping\n",
        ]), 0..8),
        cuts in prop::collection::vec(0usize..800, 0..6),
    ) {
        let stream = parts.concat();
        prop_assert_eq!(decode(&split(&stream, cuts)), decode(&[stream.as_bytes()]));
    }

    #[test]
    fn no_event_panics(
        name in prop::sample::select(vec![
            "output_item.done", "completed", "incomplete", "failed", "output_text.delta", "x",
        ]),
        value in r#"(null|1|"a"|\[\]|\{\}|\[1,\{"type":"reasoning"\}\]|\{"type":"(message|reasoning|function_call)","(content|summary|arguments|id)":(1|\[null\]|\{\}|"x")\})"#,
        field in prop::sample::select(vec!["item", "response", "delta", "error"]),
    ) {
        outline(&data(&format!(r#"{{"type":"response.{name}","{field}":{value}}}"#)));
        outline(&data(&format!(r#"{{"type":"response.{name}","{field}":{{"output":{value},"usage":{value}}}}}"#)));
    }
}

#[test]
fn stream_without_an_end_is_truncated() {
    let begun = data(r#"{"type":"response.output_text.delta","delta":"half"}"#);
    assert_eq!(
        outline(&begun),
        ["text \"half\"", "it ended before it was complete"]
    );
    assert_eq!(outline(""), ["it ended before it was complete"]);
    assert_eq!(
        outline(&format!("{begun}data: [DONE]\n\n")),
        ["text \"half\"", "it ended before it was complete"]
    );
    let finished = format!("{begun}data: {{\"type\":\"response.completed\"}}");
    assert_eq!(outline(&finished), ["text \"half\"", "Stop"]);
}

#[test]
fn error_in_the_stream_ends_it() {
    let begun = data(r#"{"type":"response.output_text.delta","delta":"half"}"#);
    for (error, message) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow\u001b[1m","param":null}"#,
            "429: the server says: slow[1m",
        ),
        (
            r#"{"type":"error","error":{"type":"server_error","message":"busy"}}"#,
            "500: the server says: busy",
        ),
        (
            r#"{"error":{"message":"too long","code":400}}"#,
            "400: the server says: too long",
        ),
        (
            r#"{"type":"error","message":"odd"}"#,
            "the server says: odd",
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"insufficient_quota","message":"pay"}}}"#,
            "the server says: pay",
        ),
        (r#"{"type":"response.failed"}"#, "the server says: null"),
        ("<html>", "it contains invalid data: <html>"),
        ("[1]", "it contains invalid data: [1]"),
    ] {
        let stream = format!("{begun}{}data: [DONE]\n\n", data(error));
        assert_eq!(outline(&stream), ["text \"half\"", message]);
    }
}

#[test]
fn failed_response_still_says_what_it_cost() {
    let failed = r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"no"},"usage":{"input_tokens":3,"output_tokens":0}}}"#;
    assert_eq!(
        outline(&data(failed)),
        [
            r#"{"model":"","input":3,"output":0}"#,
            "500: the server says: no"
        ]
    );
}

#[test]
fn incomplete_answers_say_why() {
    for (reason, finish) in [
        (r#"{"reason":"max_output_tokens"}"#, "Length"),
        (r#"{"reason":"content_filter"}"#, "ContentFilter"),
        (r#"{"reason":"steered"}"#, "Other(\"steered\")"),
        ("null", "Other(\"incomplete\")"),
    ] {
        let stream = [
            data(r#"{"type":"response.output_text.delta","delta":"half"}"#),
            data(
                r#"{"type":"response.output_item.done","item":{"type":"message","id":"m","status":"incomplete"}}"#,
            ),
            data(&format!(
                r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{reason}}}}}"#
            )),
        ];
        assert_eq!(outline(&stream.concat()), ["text \"half\"", finish]);
    }
}

#[test]
fn refusal_is_words() {
    let stream = [
        data(r#"{"type":"response.refusal.delta","delta":"I can't."}"#),
        data(
            r#"{"type":"response.output_item.done","item":{"type":"message","id":"m","content":[{"type":"refusal","refusal":"I can't."}]}}"#,
        ),
        data(r#"{"type":"response.completed","response":{"status":"completed"}}"#),
    ];
    assert_eq!(
        outline(&stream.concat()),
        ["text \"I can't.\"", r#"end {"id":"m"}"#, "Stop"]
    );
}

#[test]
fn items_without_deltas_or_in_the_last_event_alone_are_taken_whole() {
    let items = [
        r#"{"type":"reasoning","id":"r","summary":[{"text":"a"},{"text":"b"}],"encrypted_content":"g"}"#,
        r#"{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"},{"type":"refusal","refusal":"!"}]}"#,
        r#"{"type":"message","id":"empty","content":[]}"#,
        r#"{"type":"reasoning","id":"alone","summary":[]}"#,
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#,
    ];
    let expected = [
        "reasoning \"a\\n\\nb\"",
        r#"end {"id":"r","summary":[{"text":"a"},{"text":"b"}],"encrypted_content":"g"}"#,
        "text \"Hi!\"",
        r#"end {"id":"m"}"#,
        "call c:f {} {}",
        "ToolCalls",
    ];
    let done = |item: &&str| {
        data(&format!(
            r#"{{"type":"response.output_item.done","item":{item}}}"#
        ))
    };
    let completed = |items: &str| {
        data(&format!(
            r#"{{"type":"response.completed","response":{{"output":[{items}]}}}}"#
        ))
    };
    let apart = items.iter().map(done).collect::<String>() + &completed(&items.join(","));
    assert_eq!(outline(&apart), expected);
    assert_eq!(outline(&completed(&items.join(","))), expected);
}
