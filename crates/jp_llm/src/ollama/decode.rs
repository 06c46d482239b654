use std::collections::VecDeque;

use jp_conversation::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    calls::{Arguments, CallCollector},
    decode::{Flow, Protocol, malformed, non_empty},
    error_text::unpack,
    sse,
};

/// The metadata key that marks reasoning which is complete and may go back.
const THINKING: &str = "thinking";

/// Returns a decoder of the lines of an answer. Whatever is unknown is passed over.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::for_lines(OllamaStream::default())
}

#[derive(Debug, Default)]
struct OllamaStream {
    is_thinking: bool,
    calls: CallCollector,
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
    tool_calls: Option<Vec<MadeCall>>,
}

#[derive(Deserialize)]
struct MadeCall {
    id: Option<String>,
    function: Option<MadeFunction>,
}

#[derive(Deserialize)]
struct MadeFunction {
    name: Option<String>,
    arguments: Option<Value>,
}

impl Protocol for OllamaStream {
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault> {
        let line = serde_json::from_str(&message.data).map_err(|_| malformed(message))?;
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

impl OllamaStream {
    fn line(&mut self, line: Line, events: &mut VecDeque<StreamEvent>) -> Result<Flow, Fault> {
        if let Some(error) = line.error {
            return Err(Fault::provider(line.status_code, &unpack(&error)));
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
        // Ollama says `stop` for calls too.
        self.finish = Some(finish_reason(line.done_reason, self.calls.count() > 0));
        Ok(Flow::End)
    }

    fn take(&mut self, message: Message, events: &mut VecDeque<StreamEvent>) {
        if let Some(text) = non_empty(message.thinking) {
            self.is_thinking = true;
            events.push_back(StreamEvent::Reasoning(text));
        }
        if let Some(text) = non_empty(message.content) {
            self.end_thinking(events);
            events.push_back(StreamEvent::Text(text));
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.end_thinking(events);
            events.push_back(self.call(call));
        }
    }

    /// Completes a call. One without an id, as older servers send it, is named by its place in the answer.
    fn call(&mut self, call: MadeCall) -> StreamEvent {
        let (name, arguments) = call
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let arguments = match arguments {
            Some(Value::String(text)) => Arguments::Text(text),
            other => Arguments::Json(other.unwrap_or_default()),
        };
        let id = non_empty(call.id).unwrap_or_else(|| format!("call_{}", self.calls.count()));
        self.calls
            .complete(id, name.unwrap_or_default(), arguments, Map::new())
    }

    fn end_thinking(&mut self, events: &mut VecDeque<StreamEvent>) {
        if std::mem::take(&mut self.is_thinking) {
            let metadata = [(THINKING.to_owned(), true.into())];
            events.push_back(StreamEvent::EndPart(metadata.into_iter().collect()));
        }
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
