use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{REDACTED_THINKING, SIGNATURE};
use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    calls::{CallCollector, CallPiece},
    decode::{Flow, Protocol, non_empty},
    error_text::excerpt,
    sse,
};

/// Returns a decoder of the events of a message.
///
/// Blocks of tools that the provider runs itself, citations, and whatever is unknown are passed over.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::for_events(AnthropicStream::default())
}

#[derive(Debug, Default)]
struct AnthropicStream {
    /// The index and the signature so far of each reasoning that has not ended.
    thinking: Vec<(u64, String)>,
    calls: CallCollector,
    usage: MessageUsage,
    finish: Option<FinishReason>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamPart {
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
        usage: Option<MessageUsage>,
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
    usage: Option<MessageUsage>,
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
struct MessageUsage {
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

impl Protocol for AnthropicStream {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        match serde_json::from_str(&message.data) {
            Ok(StreamPart::MessageStop) => return Ok(Flow::End),
            Ok(StreamPart::Error { error }) => return Err(provider_fault(&error)),
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
        for (_, signature) in std::mem::take(&mut self.thinking) {
            events.extend(end_thinking(signature));
        }
        events.extend(self.calls.end_all());
        events.extend(self.usage.total().map(StreamEvent::Usage));
        events.push_back(StreamEvent::Finish(
            self.finish.take().unwrap_or(FinishReason::Stop),
        ));
    }
}

impl AnthropicStream {
    fn part(&mut self, part: StreamPart, events: &mut VecDeque<StreamEvent>) {
        match part {
            StreamPart::MessageStart { message } => {
                self.usage.update(message.and_then(|start| start.usage))
            }
            StreamPart::ContentBlockStart {
                index,
                content_block,
            } => self.begin(index, content_block, events),
            StreamPart::ContentBlockDelta { index, delta } => self.delta(index, delta, events),
            StreamPart::ContentBlockStop { index } => events.extend(self.close(index)),
            StreamPart::MessageDelta { delta, usage } => {
                self.usage.update(usage);
                let reason = delta.and_then(|delta| delta.stop_reason);
                self.finish = reason.map(finish_reason).or(self.finish.take());
            }
            StreamPart::MessageStop | StreamPart::Error { .. } | StreamPart::Unknown => {}
        }
    }

    fn begin(&mut self, index: u64, block: BlockStart, events: &mut VecDeque<StreamEvent>) {
        match block {
            BlockStart::Text { text } => events.extend(non_empty(text).map(StreamEvent::Text)),
            BlockStart::Thinking {
                thinking,
                signature,
            } => {
                events.extend(non_empty(thinking).map(StreamEvent::Reasoning));
                self.thinking.push((index, signature.unwrap_or_default()));
            }
            BlockStart::RedactedThinking { data } => {
                events.extend(non_empty(data).map(|data| end_part(REDACTED_THINKING, data)));
            }
            BlockStart::ToolUse { id, name, input } => {
                let initial = match input {
                    Some(Value::Object(input)) => input,
                    _ => Map::new(),
                };
                let piece = CallPiece {
                    index: Some(index),
                    id: id.unwrap_or_default(),
                    name: name.unwrap_or_default(),
                    arguments: String::new(),
                };
                self.calls.begin(piece, initial);
            }
            BlockStart::Unknown => {}
        }
    }

    fn delta(&mut self, index: u64, delta: BlockDelta, events: &mut VecDeque<StreamEvent>) {
        match delta {
            BlockDelta::TextDelta { text } => {
                events.extend(non_empty(text).map(StreamEvent::Text));
            }
            BlockDelta::ThinkingDelta { thinking } => {
                events.extend(non_empty(thinking).map(StreamEvent::Reasoning));
            }
            BlockDelta::SignatureDelta { signature } => {
                if let Some((_, all)) = self.thinking.iter_mut().rfind(|(open, _)| *open == index) {
                    all.push_str(&signature.unwrap_or_default());
                }
            }
            BlockDelta::InputJsonDelta { partial_json } => {
                self.calls.append(index, &partial_json.unwrap_or_default());
            }
            BlockDelta::Unknown => {}
        }
    }

    fn close(&mut self, index: u64) -> Option<StreamEvent> {
        // A block is either a call or reasoning, and only one of them is found.
        self.calls.end(index).or_else(|| {
            let at = self.thinking.iter().rposition(|(open, _)| *open == index)?;
            end_thinking(self.thinking.remove(at).1)
        })
    }
}

/// Ends reasoning, whose signature goes back with it.
fn end_thinking(signature: String) -> Option<StreamEvent> {
    non_empty(Some(signature)).map(|signature| end_part(SIGNATURE, signature))
}

impl MessageUsage {
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
        // `input_tokens` leaves out what was read from or written to the cache; other providers
        // include it.
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
