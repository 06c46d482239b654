use proptest::prelude::*;

use super::*;
use crate::fixtures::{Decoded, assert_every_cut, assert_recorded, decode_chunks, lines, split};

const STREAM: &str = concat!(
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm\"},\"done\":false}\n",
    "{\"message\":{\"content\":\"\",\"thinking\":\"…\"},\"unknown\":{}}\r\n",
    "\n",
    "{\"message\":{\"content\":\"Let me \"}}\n",
    "{\"message\":{\"content\":\"löök.\",\"logprobs\":[]}}\n",
    "{\"message\":{\"content\":\"\",\"tool_calls\":[{\"id\":\"call_x\",\"function\":{\"index\":0,\"name\":\"read\",\"arguments\":{\"z\":1,\"a\":\"x\"}}},{\"function\":{\"name\":\"list\",\"arguments\":{}}}]}}\n",
    "{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"odd\",\"arguments\":\"{\"}},{}]}}\n",
    "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"total_duration\":5,\"prompt_eval_count\":41,\"eval_count\":7}\n",
);

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_chunks(decoder(), chunks, |fault| fault.to_string())
}

fn outline(stream: &str) -> Vec<String> {
    lines(decode(&[stream.as_bytes()]))
}

#[test]
fn stream_gives_its_events_in_order() {
    insta::assert_snapshot!(outline(STREAM).join("\n"), @r#"
    reasoning Hm
    reasoning …
    end {"thinking":true}
    text Let me 
    text löök.
    call call_x:read {"z":1,"a":"x"} {}
    call call_1:list {} {}
    call call_2:odd {} {"invalid_arguments":"{"}
    call call_3: {} {}
    {"model":"","input":41,"output":7}
    ToolCalls
    "#);
}

#[test]
fn arguments_may_come_as_a_string_of_json() {
    let stream = "{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\"done\":true}\n";
    assert_eq!(
        outline(stream),
        [r#"call call_0:f {"a":1} {}"#, "ToolCalls"]
    );
}

#[test]
fn every_single_cut_gives_the_same_events() {
    assert_every_cut(decode, STREAM.as_bytes());
}

#[test]
fn recorded_stream_survives_every_single_cut() {
    assert_recorded(decode, "ollama.ndjson", 6);
}

proptest! {
    #[test]
    fn every_split_gives_the_same_outcome(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{\"message\":{\"content\":\"ä\"}}\n",
            "{\"message\":{\"thinking\":\"ö\"}}\r\n",
            "{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}}\n",
            "{\"done\":true,\"done_reason\":\"length\"}\n",
            "{\"error\":\"no\"}\n",
            "nonsense\n",
            "\n",
        ]), 0..8),
        cuts in prop::collection::vec(0usize..400, 0..6),
    ) {
        let stream = parts.concat();
        prop_assert_eq!(decode(&split(&stream, cuts)), decode(&[stream.as_bytes()]));
    }

    #[test]
    fn no_line_panics(line in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
        outline(&line);
    }
}

#[test]
fn stream_without_an_end_is_truncated() {
    let begun = "{\"message\":{\"thinking\":\"half\"}}\n";
    assert_eq!(
        outline(begun),
        ["reasoning half", "it ended before it was complete"]
    );
    assert_eq!(
        outline(&format!("{begun}{{\"mess")),
        ["reasoning half", "it ended before it was complete"]
    );
    assert_eq!(outline(""), ["it ended before it was complete"]);
    let finished = format!("{begun}{{\"done\":true,\"done_reason\":\"length\"}}");
    assert_eq!(
        outline(&finished),
        ["reasoning half", "end {\"thinking\":true}", "Length"]
    );
}

#[test]
fn error_in_the_stream_ends_it() {
    let begun = "{\"message\":{\"content\":\"half\"}}\n";
    for (error, message) in [
        (
            r#"{"error":"no memory\u001b[1m"}"#,
            "the server says: no memory[1m",
        ),
        (
            r#"{"error":{"message":"overloaded"},"status_code":503}"#,
            "the server says: overloaded",
        ),
        (
            r#"{"error":{"type":"odd"}}"#,
            r#"the server says: {"type":"odd"}"#,
        ),
        ("<html>", "it contains invalid data: <html>"),
    ] {
        assert_eq!(
            outline(&format!("{begun}{error}\n{{\"done\":true}}\n")),
            ["text half", message]
        );
    }
}

#[test]
fn reasons_to_end_are_told_apart() {
    for (reason, expected) in [
        ("\"stop\"", "Stop"),
        ("null", "Stop"),
        ("\"length\"", "Length"),
        ("\"load\"", "Other(\"load\")"),
    ] {
        let stream = format!("{{\"done\":true,\"done_reason\":{reason}}}\n");
        assert_eq!(outline(&stream), [expected]);
    }
}
