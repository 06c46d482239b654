use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ID, SIGNATURE, SIGNED_BYTES, THOUGHT};
use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    calls::{Arguments, CallCollector},
    decode::{Flow, Protocol, non_empty, parse_event, provider_fault},
    sse,
};

/// Returns a decoder of `GenerateContentResponse` chunks.
///
/// Candidates beyond the first, parts other than text and function calls, and whatever is unknown are
/// passed over. The stream has no end mark: it is complete when the connection ends after a finish reason.
/// A call without an id gets `call-N`, N being its place in the answer.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::for_events(GeminiStream::default())
}

#[derive(Debug, Default)]
struct GeminiStream {
    /// The run of words or of reasoning that has not ended.
    run: Option<OpenRun>,
    calls: CallCollector,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

#[derive(Debug)]
struct OpenRun {
    is_thought: bool,
    bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk {
    candidates: Option<Vec<AnswerCandidate>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<UsageMetadata>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerCandidate {
    index: Option<u64>,
    content: Option<CandidateContent>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct CandidateContent {
    parts: Option<Vec<CandidatePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidatePart {
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

impl Protocol for GeminiStream {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        // Not Google's, but that of servers in between.
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
        events.extend(self.usage.take().map(StreamEvent::Usage));
        let finish = match self.finish.take().unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if self.calls.count() > 0 => FinishReason::ToolCalls,
            reason => reason,
        };
        events.push_back(StreamEvent::Finish(finish));
    }
}

impl GeminiStream {
    fn chunk(
        &mut self,
        chunk: GeminiChunk,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), Fault> {
        if let Some(error) = chunk.error {
            return Err(provider_fault(&error));
        }
        let candidates = chunk.candidates.into_iter().flatten();
        for candidate in candidates.filter(AnswerCandidate::is_first) {
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

    fn part(&mut self, part: CandidatePart, events: &mut VecDeque<StreamEvent>) {
        let is_thought = part.thought.unwrap_or_default();
        let signature = non_empty(part.thought_signature);
        match (part.function_call, part.text) {
            (Some(call), _) => events.push_back(self.call(call, signature)),
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
                *run = Some(OpenRun {
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
        // Deltas of a run are stored as one text, so the length of the signed end has to be
        // remembered.
        if self.run.take().is_some_and(|run| run.bytes > bytes) {
            metadata.insert(SIGNED_BYTES.to_owned(), bytes.into());
        }
        if is_thought {
            metadata.insert(THOUGHT.to_owned(), true.into());
        }
        StreamEvent::EndPart(metadata)
    }

    fn call(&mut self, call: FunctionCall, signature: Option<String>) -> StreamEvent {
        let own_id = non_empty(call.id);
        let mut metadata = Map::new();
        if let Some(id) = &own_id {
            metadata.insert(ID.to_owned(), id.as_str().into());
        }
        if let Some(signature) = signature {
            metadata.insert(SIGNATURE.to_owned(), signature.into());
        }
        self.calls.complete(
            own_id.unwrap_or_else(|| self.free_id()),
            call.name.unwrap_or_default(),
            Arguments::Json(call.args.unwrap_or_default()),
            metadata,
        )
    }

    /// Makes an id that no call of this answer has.
    fn free_id(&self) -> String {
        (self.calls.count() + 1..)
            .map(|number| format!("call-{number}"))
            .find(|id| !self.calls.has_id(id))
            .expect("numbers do not run out")
    }
}

impl AnswerCandidate {
    fn is_first(&self) -> bool {
        self.index.unwrap_or_default() == 0
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
        Self {
            model: String::new(),
            input: add(wire.prompt_token_count, wire.tool_use_prompt_token_count),
            cached_read: wire.cached_content_token_count,
            cached_write: None,
            output: add(wire.candidates_token_count, wire.thoughts_token_count),
            reasoning: wire.thoughts_token_count,
        }
    }
}

/// Adds counts; `None` if there is neither.
fn add(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.saturating_add(second)),
        (first, second) => first.or(second),
    }
}

#[cfg(test)]
mod tests;
