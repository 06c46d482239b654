use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::details::Details;
use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    calls::{CallCollector, CallPiece},
    chat::{Dialect, REASONING_DETAILS},
    decode::{Flow, Protocol, Run, non_empty, parse_event, provider_fault},
    sse,
};

/// Returns a decoder of completion chunks.
///
/// Choices beyond the first and whatever is unknown are passed over.
#[must_use]
pub fn decoder(dialect: Dialect) -> Decoder {
    let details = match dialect {
        Dialect::Generic => None,
        Dialect::OpenRouter => Some(Details::default()),
    };
    Decoder::for_events(ChatStream {
        details,
        ..ChatStream::default()
    })
}

#[derive(Debug, Default)]
struct ChatStream {
    /// The reasoning that goes back; `None` if none does.
    details: Option<Details>,
    open: Option<Run>,
    calls: CallCollector,
    usage: Option<Usage>,
    /// From llama.cpp's timings, where the usage does not say.
    cached_read: Option<u64>,
    finish: Option<FinishReason>,
}

#[derive(Deserialize)]
struct ChatChunk {
    choices: Option<Vec<Choice>>,
    usage: Option<ChatUsage>,
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
    reasoning_details: Option<Vec<Value>>,
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
struct ChatUsage {
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

impl Protocol for ChatStream {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        if message.data.trim() == "[DONE]" {
            return Ok(Flow::End);
        }
        if let Some(chunk) = parse_event(message)? {
            self.chunk(chunk, events)?;
        }
        Ok(Flow::Continue)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, events: &mut VecDeque<StreamEvent>) {
        self.end_part(events);
        events.extend(self.calls.end_all());
        if let Some(mut usage) = self.usage.take() {
            usage.cached_read = usage.cached_read.or(self.cached_read);
            events.push_back(StreamEvent::Usage(usage));
        }
        events.push_back(StreamEvent::Finish(
            self.finish.take().unwrap_or(FinishReason::Stop),
        ));
    }
}

impl ChatStream {
    fn chunk(&mut self, chunk: ChatChunk, events: &mut VecDeque<StreamEvent>) -> Result<(), Fault> {
        if let Some(error) = chunk.error {
            return Err(provider_fault(&error));
        }
        for choice in chunk
            .choices
            .into_iter()
            .flatten()
            .filter(|choice| choice.index == 0)
        {
            if let Some(delta) = choice.delta {
                self.delta(delta, events);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(finish_reason(reason));
                self.end_part(events);
                events.extend(self.calls.end_all());
            }
        }
        self.cached_read = chunk
            .timings
            .and_then(|timings| timings.cache_n)
            .or(self.cached_read);
        // If a server sends figures with each chunk, the last ones count.
        self.usage = chunk.usage.map(Usage::from).or(self.usage.take());
        Ok(())
    }

    fn delta(&mut self, delta: Delta, events: &mut VecDeque<StreamEvent>) {
        // Servers in transition send both names with the same text.
        if let Some(text) = non_empty(delta.reasoning_content).or(non_empty(delta.reasoning)) {
            self.begin(Run::Reasoning, events);
            events.push_back(StreamEvent::Reasoning(text));
        }
        if let Some(details) = &mut self.details {
            delta
                .reasoning_details
                .into_iter()
                .flatten()
                .for_each(|piece| details.add(piece));
        }
        for text in [non_empty(delta.content), non_empty(delta.refusal)]
            .into_iter()
            .flatten()
        {
            self.begin(Run::Text, events);
            events.push_back(StreamEvent::Text(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.calls.add(call.into());
        }
    }

    /// Ends the part before if this piece is of another.
    fn begin(&mut self, run: Run, events: &mut VecDeque<StreamEvent>) {
        if self.open != Some(run) {
            self.end_part(events);
            self.open = Some(run);
        }
    }

    /// Hands out the reasoning that goes back, where some came: also after words, which it then goes with.
    fn end_part(&mut self, events: &mut VecDeque<StreamEvent>) {
        let details = self.details.as_mut().map(Details::take).unwrap_or_default();
        if !details.is_empty() {
            let metadata = [(REASONING_DETAILS.to_owned(), details.into())];
            events.push_back(StreamEvent::EndPart(metadata.into_iter().collect()));
        }
    }
}

impl From<CallDelta> for CallPiece {
    fn from(delta: CallDelta) -> Self {
        let (name, arguments) = delta
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        Self {
            index: delta.index,
            id: delta.id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            arguments: arguments.unwrap_or_default(),
        }
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

impl From<ChatUsage> for Usage {
    fn from(wire: ChatUsage) -> Self {
        let prompt = wire.prompt_tokens_details;
        Self {
            model: String::new(),
            input: wire.prompt_tokens,
            cached_read: prompt.as_ref().and_then(|details| details.cached_tokens),
            cached_write: prompt
                .as_ref()
                .and_then(|details| details.cache_write_tokens),
            output: wire.completion_tokens,
            reasoning: wire
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens),
        }
    }
}

#[cfg(test)]
mod tests;
