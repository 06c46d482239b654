use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    decode::{Flow, Protocol, is_foreign, provider_fault, tool_call},
    error::excerpt,
    sse,
};

/// Returns a decoder of completion chunks.
///
/// Choices beyond the first and whatever is unknown are passed over.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::of_events(Chunks::default())
}

#[derive(Debug, Default)]
struct Chunks {
    calls: Vec<PartialCall>,
    usage: Option<Usage>,
    /// From llama.cpp's timings, where the usage does not say.
    cached_read: Option<u64>,
    finish: Option<FinishReason>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<WireUsage>,
    timings: Option<Timings>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Timings {
    cache_n: Option<u64>,
}

impl Protocol for Chunks {
    fn message(&mut self, message: &sse::Event, events: &mut VecDeque<StreamEvent>) -> Result<Flow, Fault> {
        if message.data.trim() == "[DONE]" {
            return Ok(Flow::End);
        }
        match serde_json::from_str(&message.data) {
            Ok(chunk) => self.chunk(chunk, events)?,
            Err(_) if is_foreign(message) => {}
            Err(_) => return Err(Fault::Malformed { excerpt: excerpt(&message.data) }),
        }
        Ok(Flow::Continue)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, events: &mut VecDeque<StreamEvent>) {
        events.extend(self.calls.drain(..).map(PartialCall::into_event));
        if let Some(mut usage) = self.usage.take() {
            usage.cached_read = usage.cached_read.or(self.cached_read);
            events.push_back(StreamEvent::Usage(usage));
        }
        events.push_back(StreamEvent::Finish(self.finish.take().unwrap_or(FinishReason::Stop)));
    }
}

impl Chunks {
    fn chunk(&mut self, chunk: Chunk, events: &mut VecDeque<StreamEvent>) -> Result<(), Fault> {
        if let Some(error) = chunk.error {
            return Err(provider_fault(&error));
        }
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                self.delta(delta, events);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(finish_reason(reason));
                events.extend(self.calls.drain(..).map(PartialCall::into_event));
            }
        }
        self.cached_read = chunk.timings.and_then(|timings| timings.cache_n).or(self.cached_read);
        self.usage = chunk.usage.map(Usage::from).or(self.usage.take());
        Ok(())
    }

    fn delta(&mut self, delta: Delta, events: &mut VecDeque<StreamEvent>) {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        // Servers in transition send both names with the same text.
        let reasoning = some(delta.reasoning_content).or(some(delta.reasoning));
        events.extend(reasoning.map(StreamEvent::Reasoning));
        events.extend(some(delta.content).map(StreamEvent::Text));
        events.extend(some(delta.refusal).map(StreamEvent::Text));
        for call in delta.tool_calls.into_iter().flatten() {
            self.call_for(&call).append(call);
        }
    }

    /// Finds the call that a piece belongs to: that of its index, unless the id says otherwise.
    ///
    /// Some servers give every call the index 0, some give none.
    fn call_for(&mut self, piece: &CallDelta) -> &mut PartialCall {
        let same_index = |call: &PartialCall| piece.index.is_none() || call.index == piece.index;
        let found =
            self.calls.iter().rposition(same_index).filter(|&at| self.calls[at].accepts(piece.id.as_deref()));
        let at = found.unwrap_or(self.calls.len());
        if at == self.calls.len() {
            self.calls.push(PartialCall { index: piece.index, ..PartialCall::default() });
        }
        &mut self.calls[at]
    }
}

impl PartialCall {
    fn accepts(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| id.is_empty() || self.id.is_empty() || id == self.id)
    }

    fn append(&mut self, piece: CallDelta) {
        if let Some(id) = piece.id.filter(|_| self.id.is_empty()) {
            self.id = id;
        }
        let Some(function) = piece.function else { return };
        if let Some(name) = function.name.filter(|_| self.name.is_empty()) {
            self.name = name;
        }
        self.arguments.push_str(&function.arguments.unwrap_or_default());
    }

    fn into_event(self) -> StreamEvent {
        StreamEvent::ToolCall(tool_call(self.id, self.name, &self.arguments))
    }
}

fn finish_reason(reason: String) -> FinishReason {
    match reason.as_str() {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason),
    }
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let prompt = wire.prompt_tokens_details;
        Self {
            model: String::new(),
            input: wire.prompt_tokens,
            cached_read: prompt.as_ref().and_then(|details| details.cached_tokens),
            cached_write: prompt.as_ref().and_then(|details| details.cache_write_tokens),
            output: wire.completion_tokens,
            reasoning: wire.completion_tokens_details.and_then(|details| details.reasoning_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    fn decode(chunks: &[&[u8]]) -> (Vec<StreamEvent>, Result<(), String>) {
        let mut decoder = decoder();
        let mut events = VecDeque::new();
        let mut result = Ok(());
        for chunk in chunks {
            result = result.and_then(|()| decoder.push(chunk, &mut events));
        }
        let result = result.and_then(|()| decoder.finish(&mut events));
        (events.into(), result.map_err(|fault| fault.to_string()))
    }

    fn outline(stream: &str) -> Vec<String> {
        let (events, result) = decode(&[stream.as_bytes()]);
        let line = |event| match event {
            StreamEvent::Text(text) => format!("text {text}"),
            StreamEvent::Reasoning(text) => format!("reasoning {text}"),
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
        let whole = decode(&[STREAM.as_bytes()]);
        for cut in 0..STREAM.len() {
            let (left, right) = STREAM.as_bytes().split_at(cut);
            assert_eq!(decode(&[left, right]), whole, "{cut}");
        }
        let bytes: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(decode(&bytes), whole);
    }

    #[test]
    fn recorded_stream_survives_every_single_cut() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/provider-examples/openai-chat.sse");
        let Ok(stream) = std::fs::read(path) else {
            println!("skipped: no {path}");
            return;
        };
        let whole = decode(&[&stream]);
        assert!(whole.1.is_ok() && whole.0.len() == 4, "{whole:?}");
        for cut in 0..stream.len() {
            assert_eq!(decode(&[&stream[..cut], &stream[cut..]]), whole, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same_events_and_fault(
            parts in prop::collection::vec(prop::sample::select(vec![
                "data: {\"choices\":[{\"delta\":{\"content\":\"ä\"}}]}\n\n",
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}]}}]}\r\n\r\n",
                "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                "data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n",
                "data: nonsense\n\n",
                "data: [DONE]\n\n",
                ": ping\n",
            ]), 0..8),
            cuts in prop::collection::vec(0usize..600, 0..6),
        ) {
            let stream = parts.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&chunks), decode(&[stream.as_bytes()]));
        }

        #[test]
        fn no_chunk_panics(data in "[\\[\\]{}:,\"a-z0-9]{0,60}") {
            outline(&format!("data: {data}\n\n"));
        }
    }

    #[test]
    fn stream_without_an_end_is_truncated_and_keeps_what_came() {
        let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
        assert_eq!(outline(begun), ["text half", "it ended before it was complete"]);
        assert_eq!(outline(""), ["it ended before it was complete"]);
        let finished =
            format!("{begun}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}]}}");
        assert_eq!(outline(&finished), ["text half", "Length"]);
    }

    #[test]
    fn error_in_the_stream_keeps_what_came_and_ends_it() {
        let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
        for (error, message) in [
            (r#"{"error":{"message":"overloaded\u001b[1m","code":529}}"#, "the server says: overloaded[1m"),
            (r#"{"error":"no memory"}"#, "the server says: no memory"),
            (r#"{"error":{"type":"odd"}}"#, r#"the server says: {"type":"odd"}"#),
            ("<html>", "it holds what is no part of an answer: <html>"),
            ("[1]", "it holds what is no part of an answer: [1]"),
        ] {
            let stream = format!("{begun}data: {error}\n\ndata: [DONE]\n\n");
            assert_eq!(outline(&stream), ["text half", message]);
        }
    }

    #[test]
    fn calls_are_told_apart_by_index_or_by_id() {
        let piece =
            |call: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n");
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
        let mut decoder = decoder();
        let mut events = VecDeque::new();
        let chunk = [b'x'; 1 << 20];
        let pushed = (0..20).take_while(|_| decoder.push(&chunk, &mut events).is_ok()).count();
        assert_eq!((pushed, decoder.has_ended()), (8, true));
    }
}
