use jp_conversation::{ToolCallRequest, Usage};
use serde_json::{Map, Value};

/// A part of an answer, as soon as it is there.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// A piece of the model's words; never empty.
    Text(String),
    /// A piece of its reasoning; never empty.
    Reasoning(String),
    /// The end of the open run of words or reasoning, with the metadata that the provider wants back verbatim. If none is
    /// open, it is reasoning without text. Never empty.
    EndPart(Map<String, Value>),
    /// A complete tool call.
    ///
    /// Arguments that are no JSON object stand as they came in the metadata, under
    /// [`INVALID_ARGUMENTS`](crate::INVALID_ARGUMENTS).
    ToolCall(ToolCallRequest),
    /// The cost of the request; `model` is left empty.
    Usage(Usage),
    /// The answer is complete. Always the last event, and there is always one.
    Finish(FinishReason),
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The model had said everything.
    Stop,
    /// The limit of output or context was reached.
    Length,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The provider held the rest back.
    ContentFilter,
    /// Another reason, in the server's word.
    Other(String),
}
