use proptest::prelude::*;

use super::*;
use crate::fixtures::{Decoded, assert_every_cut, assert_recorded, decode_chunks, lines, split};

const STREAM: &str = concat!(
    ": llama.cpp keeps the connection alive\n\n",
    "event: ping\ndata: ping\n\n",
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\r\n\r\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm…\",\"reasoning\":\"Hm…\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another choice\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Let me \"}}],\"unknown\":{}}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"löök.\"},\"finish_reason\":\"\"}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"path\\\":\"}},{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"list\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"x\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"timings\":{\"cache_n\":30}}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":41,\"completion_tokens\":7,\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n",
    "data: [DONE]\n\n",
);

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_with(Dialect::Generic, chunks)
}

fn decode_with(dialect: Dialect, chunks: &[&[u8]]) -> Decoded {
    decode_chunks(decoder(dialect), chunks, |fault| fault.to_string())
}

fn outline(stream: &str) -> Vec<String> {
    outline_with(Dialect::Generic, stream)
}

fn outline_with(dialect: Dialect, stream: &str) -> Vec<String> {
    lines(decode_with(dialect, &[stream.as_bytes()]))
}

#[test]
fn stream_gives_its_events_in_order() {
    insta::assert_snapshot!(outline(STREAM).join("\n"), @r#"
    reasoning Hm…
    text Let me 
    text löök.
    call a:read {"path":"x"} {}
    call b:list {} {}
    {"model":"","input":41,"cached_read":30,"output":7,"reasoning":2}
    ToolCalls
    "#);
}

#[test]
fn every_single_cut_gives_the_same_events() {
    assert_every_cut(decode, STREAM.as_bytes());
}

#[test]
fn recorded_stream_survives_every_single_cut() {
    assert_recorded(decode, "openai-chat.sse", 4);
}

fn deltas(deltas: &[&str]) -> String {
    let chunk = |delta: &&str| format!("data: {{\"choices\":[{{\"delta\":{{{delta}}}}}]}}\n\n");
    deltas.iter().map(chunk).collect::<String>() + "data: [DONE]\n\n"
}

#[test]
fn reasoning_that_goes_back_ends_its_part() {
    let stream = deltas(&[
        r#""reasoning":"Let ","reasoning_details":[{"type":"reasoning.text","text":"Let ","index":0}]"#,
        r#""reasoning":"me","reasoning_details":[{"type":"reasoning.text","text":"me","index":0}]"#,
        r#""reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]"#,
        r#""content":"Words ""#,
        r#""content":"on","reasoning_details":[{"type":"reasoning.encrypted","data":"late"}]"#,
        r#""content":"e""#,
        r#""reasoning":"B","reasoning_details":[{"type":"reasoning.text","text":"B","index":1}]"#,
        r#""tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]"#,
    ]);
    insta::assert_snapshot!(outline_with(Dialect::OpenRouter, &stream).join("\n"), @r#"
    reasoning Let 
    reasoning me
    end {"reasoning_details":[{"type":"reasoning.text","text":"Let me","index":0,"signature":"S"}]}
    text Words 
    text on
    text e
    end {"reasoning_details":[{"type":"reasoning.encrypted","data":"late"}]}
    reasoning B
    end {"reasoning_details":[{"type":"reasoning.text","text":"B","index":1}]}
    call a:f {} {}
    Stop
    "#);
    let generic = outline(&stream);
    assert!(
        !generic.iter().any(|line| line.starts_with("end")),
        "{generic:?}"
    );
}

#[test]
fn encrypted_reasoning_alone_is_a_part_of_its_own() {
    let stream = deltas(&[
        r#""reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]"#,
        r#""content":"Words""#,
    ]);
    assert_eq!(
        outline_with(Dialect::OpenRouter, &stream),
        [
            r#"end {"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}"#,
            "text Words",
            "Stop"
        ]
    );
}

#[test]
fn recorded_stream_of_openrouter_survives_every_single_cut() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/provider-examples/openrouter.sse"
    );
    let Ok(stream) = std::fs::read(path) else {
        println!("skipped: no {path}");
        return;
    };
    let whole = decode_with(Dialect::OpenRouter, &[&stream]);
    // Reasoning and its end, words, a call, usage, the end.
    assert!(whole.1.is_ok() && whole.0.len() == 6, "{whole:?}");
    for cut in 0..stream.len() {
        assert_eq!(
            decode_with(Dialect::OpenRouter, &[&stream[..cut], &stream[cut..]]),
            whole,
            "{cut}"
        );
    }
}

proptest! {
    #[test]
    fn every_split_gives_the_same_outcome(
        parts in prop::collection::vec(prop::sample::select(vec![
            "data: {\"choices\":[{\"delta\":{\"content\":\"ä\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}]}}]}\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"ö\"}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n",
            "data: nonsense\n\n",
            "data: [DONE]\n\n",
            ": ping\n",
        ]), 0..8),
        cuts in prop::collection::vec(0usize..600, 0..6),
    ) {
        let stream = parts.concat();
        let chunks = split(&stream, cuts);
        for dialect in [Dialect::Generic, Dialect::OpenRouter] {
            let whole = decode_with(dialect, &[stream.as_bytes()]);
            prop_assert_eq!(decode_with(dialect, &chunks), whole);
        }
    }

    #[test]
    fn no_chunk_panics(data in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
        outline(&format!("data: {data}\n\n"));
    }
}

#[test]
fn stream_without_an_end_is_truncated() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    assert_eq!(
        outline(begun),
        ["text half", "it ended before it was complete"]
    );
    assert_eq!(outline(""), ["it ended before it was complete"]);
    let finished =
        format!("{begun}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}]}}");
    assert_eq!(outline(&finished), ["text half", "Length"]);
}

#[test]
fn error_in_the_stream_ends_it() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    for (error, message) in [
        (
            r#"{"error":{"message":"overloaded\u001b[1m","code":529}}"#,
            "the server says: overloaded[1m",
        ),
        (r#"{"error":"no memory"}"#, "the server says: no memory"),
        (
            r#"{"error":{"type":"odd"}}"#,
            r#"the server says: {"type":"odd"}"#,
        ),
        ("<html>", "it contains invalid data: <html>"),
        ("[1]", "it contains invalid data: [1]"),
    ] {
        let stream = format!("{begun}data: {error}\n\ndata: [DONE]\n\n");
        assert_eq!(outline(&stream), ["text half", message]);
    }
}

#[test]
fn calls_are_told_apart_by_index_or_by_id() {
    let piece = |call: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n")
    };
    let stream = [
        piece(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}"#),
        piece(r#"{"index":0,"id":"b","function":{"name":"g","arguments":"{\"n\":"}}"#),
        piece(r#"{"index":0,"id":"b","function":{"name":"g","arguments":"2}"}}"#),
        piece(r#"{"id":"c","function":{"name":"h","arguments":"{\"n\":"}}"#),
        piece(r#"{"function":{"arguments":"3,"}}"#),
        "data: [DONE]\n\n".to_owned(),
    ];
    assert_eq!(
        outline(&stream.concat()),
        [
            r#"call a:f {"n":1} {}"#,
            r#"call b:g {"n":2} {}"#,
            r#"call c:h {} {"invalid_arguments":"{\"n\":3,"}"#,
            "Stop"
        ]
    );
}

#[test]
fn part_without_an_end_is_not_collected_for_ever() {
    let mut decoder = decoder(Dialect::Generic);
    let mut events = VecDeque::new();
    let chunk = [b'x'; 1 << 20];
    let pushed = (0..20)
        .take_while(|_| decoder.push(&chunk, &mut events).is_ok())
        .count();
    assert_eq!((pushed, decoder.has_ended()), (8, true));
}
