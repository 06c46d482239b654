use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::details::Details;
use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    chat::{Dialect, REASONING_DETAILS},
    decode::{Flow, Protocol, is_foreign, provider_fault, tool_call},
    error::excerpt,
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
    Decoder::of_events(Chunks {
        details,
        ..Chunks::default()
    })
}

#[derive(Debug, Default)]
struct Chunks {
    /// The reasoning that goes back; `None` where none does.
    details: Option<Details>,
    open: Option<Run>,
    calls: Vec<PartialCall>,
    usage: Option<Usage>,
    /// From llama.cpp's timings, where the usage does not say.
    cached_read: Option<u64>,
    finish: Option<FinishReason>,
}

/// What the last piece was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Reasoning,
    Words,
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
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        if message.data.trim() == "[DONE]" {
            return Ok(Flow::End);
        }
        match serde_json::from_str(&message.data) {
            Ok(chunk) => self.chunk(chunk, events)?,
            Err(_) if is_foreign(message) => {}
            Err(_) => {
                return Err(Fault::Malformed {
                    excerpt: excerpt(&message.data),
                });
            }
        }
        Ok(Flow::Continue)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, events: &mut VecDeque<StreamEvent>) {
        self.end_part(events);
        events.extend(self.calls.drain(..).map(PartialCall::into_event));
        if let Some(mut usage) = self.usage.take() {
            usage.cached_read = usage.cached_read.or(self.cached_read);
            events.push_back(StreamEvent::Usage(usage));
        }
        events.push_back(StreamEvent::Finish(
            self.finish.take().unwrap_or(FinishReason::Stop),
        ));
    }
}

impl Chunks {
    fn chunk(&mut self, chunk: Chunk, events: &mut VecDeque<StreamEvent>) -> Result<(), Fault> {
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
                events.extend(self.calls.drain(..).map(PartialCall::into_event));
            }
        }
        self.cached_read = chunk
            .timings
            .and_then(|timings| timings.cache_n)
            .or(self.cached_read);
        self.usage = chunk.usage.map(Usage::from).or(self.usage.take());
        Ok(())
    }

    fn delta(&mut self, delta: Delta, events: &mut VecDeque<StreamEvent>) {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        // Servers in transition send both names with the same text.
        if let Some(text) = some(delta.reasoning_content).or(some(delta.reasoning)) {
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
        for text in [some(delta.content), some(delta.refusal)]
            .into_iter()
            .flatten()
        {
            self.begin(Run::Words, events);
            events.push_back(StreamEvent::Text(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call_for(&call).append(call);
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

    /// Finds the call that a piece belongs to: that of its index, unless the id says otherwise.
    ///
    /// Some servers give every call the index 0, some give none.
    fn call_for(&mut self, piece: &CallDelta) -> &mut PartialCall {
        let same_index = |call: &PartialCall| piece.index.is_none() || call.index == piece.index;
        let found = self
            .calls
            .iter()
            .rposition(same_index)
            .filter(|&at| self.calls[at].accepts(piece.id.as_deref()));
        let at = found.unwrap_or(self.calls.len());
        if at == self.calls.len() {
            self.calls.push(PartialCall {
                index: piece.index,
                ..PartialCall::default()
            });
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
        let Some(function) = piece.function else {
            return;
        };
        if let Some(name) = function.name.filter(|_| self.name.is_empty()) {
            self.name = name;
        }
        self.arguments
            .push_str(&function.arguments.unwrap_or_default());
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
