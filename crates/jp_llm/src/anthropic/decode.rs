use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{REDACTED_THINKING, SIGNATURE};
use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    decode::{self, Flow, Protocol},
    error::excerpt,
    sse,
};

/// Returns a decoder of the events of a message.
///
/// Blocks of tools that the provider runs itself, citations, and whatever is unknown are passed over.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::of_events(Blocks::default())
}

#[derive(Debug, Default)]
struct Blocks {
    /// What has begun and is kept until it ends, by index.
    open: Vec<(u64, Open)>,
    usage: WireUsage,
    finish: Option<FinishReason>,
}

#[derive(Debug)]
enum Open {
    /// Its signature so far.
    Thinking(String),
    ToolUse(PartialCall),
}

#[derive(Debug)]
struct PartialCall {
    id: String,
    name: String,
    /// As the block began; the pieces that follow count for more.
    input: Option<Map<String, Value>>,
    json: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    MessageStart {
        message: Option<Start>,
    },
    ContentBlockStart {
        #[serde(default)]
        index: u64,
        content_block: BlockStart,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: u64,
        delta: BlockDelta,
    },
    ContentBlockStop {
        #[serde(default)]
        index: u64,
    },
    MessageDelta {
        delta: Option<End>,
        usage: Option<WireUsage>,
    },
    MessageStop,
    Error {
        #[serde(default)]
        error: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockStart {
    Text {
        text: Option<String>,
    },
    Thinking {
        thinking: Option<String>,
        signature: Option<String>,
    },
    RedactedThinking {
        data: Option<String>,
    },
    ToolUse {
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: Option<String>,
    },
    ThinkingDelta {
        thinking: Option<String>,
    },
    SignatureDelta {
        signature: Option<String>,
    },
    InputJsonDelta {
        partial_json: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct End {
    stop_reason: Option<String>,
}

/// Figures for the whole message; each event may bring newer ones.
#[derive(Debug, Default, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl Protocol for Blocks {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        match serde_json::from_str(&message.data) {
            Ok(Part::MessageStop) => return Ok(Flow::End),
            Ok(Part::Error { error }) => return Err(provider_fault(&error)),
            Ok(part) => self.part(part, events),
            Err(_) if is_foreign(message) => {}
            Err(_) => return Err(fault_without_type(&message.data)),
        }
        Ok(Flow::Continue)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, events: &mut VecDeque<StreamEvent>) {
        for (_, open) in std::mem::take(&mut self.open) {
            events.extend(open.into_event());
        }
        events.extend(self.usage.total().map(StreamEvent::Usage));
        events.push_back(StreamEvent::Finish(
            self.finish.take().unwrap_or(FinishReason::Stop),
        ));
    }
}

impl Blocks {
    fn part(&mut self, part: Part, events: &mut VecDeque<StreamEvent>) {
        match part {
            Part::MessageStart { message } => {
                self.usage.update(message.and_then(|start| start.usage))
            }
            Part::ContentBlockStart {
                index,
                content_block,
            } => self.begin(index, content_block, events),
            Part::ContentBlockDelta { index, delta } => self.delta(index, delta, events),
            Part::ContentBlockStop { index } => events.extend(self.close(index)),
            Part::MessageDelta { delta, usage } => {
                self.usage.update(usage);
                let reason = delta.and_then(|delta| delta.stop_reason);
                self.finish = reason.map(finish_reason).or(self.finish.take());
            }
            Part::MessageStop | Part::Error { .. } | Part::Unknown => {}
        }
    }

    fn begin(&mut self, index: u64, block: BlockStart, events: &mut VecDeque<StreamEvent>) {
        match block {
            BlockStart::Text { text } => events.extend(some(text).map(StreamEvent::Text)),
            BlockStart::Thinking {
                thinking,
                signature,
            } => {
                events.extend(some(thinking).map(StreamEvent::Reasoning));
                self.open
                    .push((index, Open::Thinking(signature.unwrap_or_default())));
            }
            BlockStart::RedactedThinking { data } => {
                events.extend(some(data).map(|data| end_part(REDACTED_THINKING, data)));
            }
            BlockStart::ToolUse { id, name, input } => {
                let input = input.and_then(|input| match input {
                    Value::Object(input) => Some(input),
                    _ => None,
                });
                let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
                let call = PartialCall {
                    id,
                    name,
                    input,
                    json: String::new(),
                };
                self.open.push((index, Open::ToolUse(call)));
            }
            BlockStart::Unknown => {}
        }
    }

    fn delta(&mut self, index: u64, delta: BlockDelta, events: &mut VecDeque<StreamEvent>) {
        let open = self
            .open
            .iter_mut()
            .rfind(|(open, _)| *open == index)
            .map(|(_, open)| open);
        match (delta, open) {
            (BlockDelta::TextDelta { text }, _) => events.extend(some(text).map(StreamEvent::Text)),
            (BlockDelta::ThinkingDelta { thinking }, _) => {
                events.extend(some(thinking).map(StreamEvent::Reasoning));
            }
            (
                BlockDelta::SignatureDelta {
                    signature: Some(piece),
                },
                Some(Open::Thinking(signature)),
            ) => {
                signature.push_str(&piece);
            }
            (
                BlockDelta::InputJsonDelta {
                    partial_json: Some(piece),
                },
                Some(Open::ToolUse(call)),
            ) => {
                call.json.push_str(&piece);
            }
            _ => {}
        }
    }

    fn close(&mut self, index: u64) -> Option<StreamEvent> {
        let at = self.open.iter().rposition(|(open, _)| *open == index)?;
        self.open.remove(at).1.into_event()
    }
}

impl Open {
    fn into_event(self) -> Option<StreamEvent> {
        match self {
            Self::Thinking(signature) => {
                some(Some(signature)).map(|signature| end_part(SIGNATURE, signature))
            }
            Self::ToolUse(PartialCall {
                id,
                name,
                input,
                json,
            }) => {
                let mut call = decode::tool_call(id, name, &json);
                if json.trim().is_empty() {
                    call.arguments = input.unwrap_or_default();
                }
                Some(StreamEvent::ToolCall(call))
            }
        }
    }
}

impl WireUsage {
    /// Takes the newer of each figure.
    fn update(&mut self, newer: Option<Self>) {
        let Some(newer) = newer else { return };
        let older = std::mem::take(self);
        *self = Self {
            input_tokens: newer.input_tokens.or(older.input_tokens),
            cache_read_input_tokens: newer
                .cache_read_input_tokens
                .or(older.cache_read_input_tokens),
            cache_creation_input_tokens: newer
                .cache_creation_input_tokens
                .or(older.cache_creation_input_tokens),
            output_tokens: newer.output_tokens.or(older.output_tokens),
            output_tokens_details: newer.output_tokens_details.or(older.output_tokens_details),
        };
    }

    /// Returns the figures, if there are any; the provider counts cached input apart.
    fn total(&self) -> Option<Usage> {
        let cached = [
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        let cached: u64 = cached.into_iter().flatten().fold(0, u64::saturating_add);
        let usage = Usage {
            model: String::new(),
            input: self.input_tokens.map(|input| input.saturating_add(cached)),
            cached_read: self.cache_read_input_tokens,
            cached_write: self.cache_creation_input_tokens,
            output: self.output_tokens,
            reasoning: self
                .output_tokens_details
                .as_ref()
                .and_then(|details| details.thinking_tokens),
        };
        (usage != Usage::default()).then_some(usage)
    }
}

fn some(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn end_part(key: &str, value: String) -> StreamEvent {
    StreamEvent::EndPart([(key.to_owned(), Value::from(value))].into_iter().collect())
}

/// Returns whether an event is of a kind that this format does not have, or has nothing to say.
fn is_foreign(event: &sse::Event) -> bool {
    let is_known = matches!(event.name.as_str(), "" | "message" | "error")
        || event.name.starts_with("message_")
        || event.name.starts_with("content_block_");
    !is_known || event.data.is_empty()
}

/// Makes a fault of what has no type: an error as servers in between write it, or no part of an answer.
fn fault_without_type(data: &str) -> Fault {
    let json: Option<Value> = serde_json::from_str(data).ok();
    match json.as_ref().and_then(|json| json.get("error")) {
        Some(error) => provider_fault(error),
        None => Fault::Malformed {
            excerpt: excerpt(data),
        },
    }
}

fn provider_fault(error: &Value) -> Fault {
    Fault::provider(
        error.get("type").and_then(Value::as_str).and_then(status),
        error,
    )
}

/// Returns the HTTP status that an error of this type has outside a stream.
fn status(kind: &str) -> Option<u16> {
    match kind {
        "invalid_request_error" => Some(400),
        "authentication_error" => Some(401),
        "billing_error" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "conflict_error" => Some(409),
        "request_too_large" => Some(413),
        "rate_limit_error" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    }
}

fn finish_reason(reason: String) -> FinishReason {
    match reason.as_str() {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason),
    }
}

#[cfg(test)]
mod tests;
