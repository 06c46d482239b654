use std::collections::VecDeque;

use jp_conversation::{ToolCallRequest, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ID, SIGNATURE, SIGNED_BYTES, THOUGHT};
use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    decode::{Flow, INVALID_ARGUMENTS, Protocol, are_shallow, is_foreign, provider_fault},
    error::excerpt,
    sse,
};

/// Returns a decoder of `GenerateContentResponse` chunks.
///
/// Candidates beyond the first, parts other than text and function calls, and whatever is unknown are
/// passed over. The stream has no end mark: it is complete when the connection ends after a finish reason.
/// A call without an id gets `call-N`, N being its place in the answer.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::of_events(Chunks::default())
}

#[derive(Debug, Default)]
struct Chunks {
    /// The run of words or of reasoning that has not ended.
    run: Option<Run>,
    /// The ids of the calls so far.
    calls: Vec<String>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

#[derive(Debug)]
struct Run {
    is_thought: bool,
    bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<UsageMetadata>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
    /// Data of other kinds.
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMetadata {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Protocol for Chunks {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        // Not Google's, but that of servers in between.
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
        events.extend(self.usage.take().map(StreamEvent::Usage));
        let finish = match self.finish.take().unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            reason => reason,
        };
        events.push_back(StreamEvent::Finish(finish));
    }
}

impl Chunks {
    fn chunk(&mut self, chunk: Chunk, events: &mut VecDeque<StreamEvent>) -> Result<(), Fault> {
        if let Some(error) = chunk.error {
            return Err(provider_fault(&error));
        }
        let is_first = |candidate: &Candidate| candidate.index.unwrap_or_default() == 0;
        for candidate in chunk.candidates.into_iter().flatten().filter(is_first) {
            let parts = candidate.content.and_then(|content| content.parts);
            parts
                .into_iter()
                .flatten()
                .for_each(|part| self.part(part, events));
            self.finish = candidate
                .finish_reason
                .and_then(finish_reason)
                .or(self.finish.take());
        }
        if chunk
            .prompt_feedback
            .is_some_and(|feedback| feedback.block_reason.is_some())
        {
            self.finish = Some(FinishReason::ContentFilter);
        }
        self.usage = chunk.usage_metadata.map(Usage::from).or(self.usage.take());
        Ok(())
    }

    fn part(&mut self, part: Part, events: &mut VecDeque<StreamEvent>) {
        let is_thought = part.thought.unwrap_or_default();
        let signature = part
            .thought_signature
            .filter(|signature| !signature.is_empty());
        match (part.function_call, part.text) {
            (Some(call), _) => events.push_back(StreamEvent::ToolCall(self.call(call, signature))),
            // What the signature belongs to can't be sent back.
            (None, None) if !part.others.is_empty() => {}
            (None, text) => {
                let text = text.unwrap_or_default();
                let bytes = text.len();
                self.text(text, is_thought, events);
                events.extend(signature.map(|signature| self.sign(signature, bytes, is_thought)));
            }
        }
    }

    fn text(&mut self, text: String, is_thought: bool, events: &mut VecDeque<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        match &mut self.run {
            Some(run) if run.is_thought == is_thought => run.bytes += text.len(),
            run => {
                *run = Some(Run {
                    is_thought,
                    bytes: text.len(),
                })
            }
        }
        events.push_back(if is_thought {
            StreamEvent::Reasoning(text)
        } else {
            StreamEvent::Text(text)
        });
    }

    /// Ends the run with the signature of its last part, which has this many bytes of it.
    fn sign(&mut self, signature: String, bytes: usize, is_thought: bool) -> StreamEvent {
        let mut metadata = Map::from_iter([(SIGNATURE.to_owned(), signature.into())]);
        if self.run.take().is_some_and(|run| run.bytes > bytes) {
            metadata.insert(SIGNED_BYTES.to_owned(), bytes.into());
        }
        if is_thought {
            metadata.insert(THOUGHT.to_owned(), true.into());
        }
        StreamEvent::EndPart(metadata)
    }

    fn call(&mut self, call: FunctionCall, signature: Option<String>) -> ToolCallRequest {
        let mut metadata = Map::new();
        let mut remember = |key: &str, value: &str| metadata.insert(key.to_owned(), value.into());
        let own = call.id.filter(|id| !id.is_empty());
        if let Some(id) = &own {
            remember(ID, id);
        }
        if let Some(signature) = signature {
            remember(SIGNATURE, &signature);
        }
        let arguments = match call.args {
            Some(Value::Object(arguments)) if are_shallow(&arguments) => arguments,
            None | Some(Value::Null) => Map::new(),
            Some(other) => {
                remember(INVALID_ARGUMENTS, &other.to_string());
                Map::new()
            }
        };
        let id = own.unwrap_or_else(|| self.free_id());
        self.calls.push(id.clone());
        ToolCallRequest {
            id,
            name: call.name.unwrap_or_default(),
            arguments,
            metadata,
        }
    }

    /// Makes an id that no call of this answer has.
    fn free_id(&self) -> String {
        let ids = (self.calls.len() + 1..).map(|number| format!("call-{number}"));
        ids.into_iter()
            .find(|id| !self.calls.contains(id))
            .expect("numbers do not run out")
    }
}

fn finish_reason(reason: String) -> Option<FinishReason> {
    Some(match reason.as_str() {
        "" | "FINISH_REASON_UNSPECIFIED" => return None,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason),
    })
}

impl From<UsageMetadata> for Usage {
    /// Thoughts are no part of the candidates' tokens, cached content is one of the prompt's.
    fn from(wire: UsageMetadata) -> Self {
        let sum = |first: Option<u64>, second: Option<u64>| match (first, second) {
            (None, None) => None,
            _ => Some(
                first
                    .unwrap_or_default()
                    .saturating_add(second.unwrap_or_default()),
            ),
        };
        Self {
            model: String::new(),
            input: sum(wire.prompt_token_count, wire.tool_use_prompt_token_count),
            cached_read: wire.cached_content_token_count,
            cached_write: None,
            output: sum(wire.candidates_token_count, wire.thoughts_token_count),
            reasoning: wire.thoughts_token_count,
        }
    }
}

#[cfg(test)]
mod tests;
