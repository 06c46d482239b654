use std::collections::VecDeque;

use jp_conversation::{ToolCallRequest, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    decode::{Flow, INVALID_ARGUMENTS, Protocol, are_shallow},
    error::excerpt,
    http::unpacked,
    sse,
};

/// The metadata key that marks reasoning which is complete and may go back.
const THINKING: &str = "thinking";

/// Returns a decoder of the lines of an answer. Whatever is unknown is passed over.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::of_lines(Lines::default())
}

#[derive(Debug, Default)]
struct Lines {
    is_thinking: bool,
    /// How many calls came: servers before ids give none.
    calls: usize,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
    status_code: Option<u16>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

impl Protocol for Lines {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        let line = serde_json::from_str(&message.data).map_err(|_| Fault::Malformed {
            excerpt: excerpt(&message.data),
        })?;
        self.line(line, events)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, events: &mut VecDeque<StreamEvent>) {
        events.extend(self.usage.take().map(StreamEvent::Usage));
        events.push_back(StreamEvent::Finish(
            self.finish.take().unwrap_or(FinishReason::Stop),
        ));
    }
}

impl Lines {
    fn line(&mut self, line: Line, events: &mut VecDeque<StreamEvent>) -> Result<Flow, Fault> {
        if let Some(error) = line.error {
            return Err(Fault::provider(line.status_code, &unpacked(&error)));
        }
        if let Some(message) = line.message {
            self.take(message, events);
        }
        if !line.done {
            return Ok(Flow::Continue);
        }
        self.end_thinking(events);
        let (input, output) = (line.prompt_eval_count, line.eval_count);
        if input.or(output).is_some() {
            self.usage = Some(Usage {
                input,
                output,
                ..Usage::default()
            });
        }
        self.finish = Some(finish_reason(line.done_reason, self.calls > 0));
        Ok(Flow::End)
    }

    fn take(&mut self, message: Message, events: &mut VecDeque<StreamEvent>) {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(text) = some(message.thinking) {
            self.is_thinking = true;
            events.push_back(StreamEvent::Reasoning(text));
        }
        if let Some(text) = some(message.content) {
            self.end_thinking(events);
            events.push_back(StreamEvent::Text(text));
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.end_thinking(events);
            events.push_back(StreamEvent::ToolCall(call.into_request(self.calls)));
            self.calls += 1;
        }
    }

    fn end_thinking(&mut self, events: &mut VecDeque<StreamEvent>) {
        if std::mem::take(&mut self.is_thinking) {
            let metadata = [(THINKING.to_owned(), true.into())];
            events.push_back(StreamEvent::EndPart(metadata.into_iter().collect()));
        }
    }
}

impl Call {
    /// Makes a call of it; one without an id is named by its place in the answer.
    fn into_request(self, index: usize) -> ToolCallRequest {
        let id = self
            .id
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| format!("call_{index}"));
        let (name, arguments) = self
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let mut call = ToolCallRequest {
            id,
            name: name.unwrap_or_default(),
            arguments: Map::new(),
            metadata: Map::new(),
        };
        match arguments {
            Some(Value::Object(arguments)) if are_shallow(&arguments) => call.arguments = arguments,
            None | Some(Value::Null) => {}
            Some(other) => {
                _ = call
                    .metadata
                    .insert(INVALID_ARGUMENTS.to_owned(), text_of(other).into())
            }
        }
        call
    }
}

/// Returns a string's text, and of anything else its JSON.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn finish_reason(reason: Option<String>, has_calls: bool) -> FinishReason {
    match reason.as_deref() {
        None | Some("stop" | "") if has_calls => FinishReason::ToolCalls,
        None | Some("stop" | "") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
