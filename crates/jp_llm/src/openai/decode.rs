use std::collections::VecDeque;

use jp_conversation::Usage;
use serde_json::{Map, Value};

use crate::{
    Decoder, Fault, FinishReason, StreamEvent,
    calls::{Arguments, CallCollector},
    decode::{Flow, Protocol, Run, malformed},
    sse,
};

/// Returns a decoder of response events.
///
/// Words and reasoning come from the deltas, everything else from the finished items: calls, and with
/// [`StreamEvent::EndPart`] what stands for words (`id`, `phase`) and reasoning (`id`, `summary`, `content`,
/// `encrypted_content`) in the next request. An item that was cut off has no such end: it can't be sent
/// back. Whatever is unknown is passed over.
#[must_use]
pub fn decoder() -> Decoder {
    Decoder::for_events(ResponsesStream::default())
}

#[derive(Debug, Default)]
struct ResponsesStream {
    /// The kind of text that the item being sent has given so far.
    open: Option<Run>,
    has_items: bool,
    calls: CallCollector,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

type Out<'a> = &'a mut VecDeque<StreamEvent>;

impl Protocol for ResponsesStream {
    fn message(&mut self, message: &sse::Event, events: Out<'_>) -> Result<Flow, Fault> {
        match serde_json::from_str::<Value>(&message.data) {
            Ok(event) if event.is_object() => self.event(&message.name, &event, events),
            _ if is_foreign(message) => Ok(Flow::Continue),
            _ => Err(malformed(message)),
        }
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn end(&mut self, events: Out<'_>) {
        events.extend(self.usage.take().map(StreamEvent::Usage));
        events.push_back(StreamEvent::Finish(
            self.finish.take().unwrap_or(FinishReason::Stop),
        ));
    }
}

impl ResponsesStream {
    fn event(&mut self, name: &str, event: &Value, events: Out<'_>) -> Result<Flow, Fault> {
        match event["type"].as_str().unwrap_or(name) {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.piece(Run::Text, text(&event["delta"]), events);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.piece(Run::Reasoning, text(&event["delta"]), events);
            }
            // A further paragraph of the same item.
            "response.reasoning_summary_part.added" if self.open == Some(Run::Reasoning) => {
                self.piece(Run::Reasoning, "\n\n", events);
            }
            "response.output_item.done" => self.item(&event["item"], events),
            "response.completed" | "response.incomplete" => {
                self.response(&event["response"], events);
                return Ok(Flow::End);
            }
            "response.failed" => {
                events.extend(usage(&event["response"]["usage"]).map(StreamEvent::Usage));
                return Err(provider_fault(&event["response"]["error"]));
            }
            "error" if event["error"].is_null() => return Err(provider_fault(event)),
            "error" | "message" | "" if !event["error"].is_null() => {
                return Err(provider_fault(&event["error"]));
            }
            _ => {}
        }
        Ok(Flow::Continue)
    }

    fn piece(&mut self, run: Run, text: &str, events: Out<'_>) {
        if text.is_empty() {
            return;
        }
        self.open = Some(run);
        events.push_back(match run {
            Run::Text => StreamEvent::Text(text.to_owned()),
            Run::Reasoning => StreamEvent::Reasoning(text.to_owned()),
        });
    }

    /// Takes a finished item, with its text where none of it came in deltas.
    fn item(&mut self, item: &Value, events: Out<'_>) {
        self.has_items = true;
        match item["type"].as_str() {
            Some("message") => {
                self.complete(Run::Text, &join_texts(&item["content"], ""), events);
                self.end_part(
                    self.open == Some(Run::Text),
                    pick_fields(item, &["id", "phase"]),
                    item,
                    events,
                );
            }
            Some("reasoning") => {
                self.complete(
                    Run::Reasoning,
                    &join_texts(&item["summary"], "\n\n"),
                    events,
                );
                let metadata =
                    pick_fields(item, &["id", "summary", "content", "encrypted_content"]);
                self.end_part(self.open != Some(Run::Text), metadata, item, events);
            }
            Some("function_call") => {
                events.push_back(self.calls.complete(
                    text(&item["call_id"]).to_owned(),
                    text(&item["name"]).to_owned(),
                    Arguments::Text(text(&item["arguments"]).to_owned()),
                    Map::new(),
                ));
            }
            _ => {}
        }
        self.open = None;
    }

    fn complete(&mut self, run: Run, text: &str, events: Out<'_>) {
        if self.open != Some(run) {
            self.piece(run, text, events);
        }
    }

    /// Ends what the item gave: words, or reasoning with or without a text.
    fn end_part(
        &mut self,
        is_own: bool,
        metadata: Map<String, Value>,
        item: &Value,
        events: Out<'_>,
    ) {
        let has_content = ["content", "encrypted_content"]
            .iter()
            .any(|name| metadata.contains_key(*name));
        let says = self.open.is_some() || has_content;
        if is_own && says && !metadata.is_empty() && item["status"] != "incomplete" {
            events.push_back(StreamEvent::EndPart(metadata));
        }
    }

    /// Takes the last event, which has everything again: items too, where a server did not send them apart.
    fn response(&mut self, response: &Value, events: Out<'_>) {
        if !self.has_items {
            let items = response["output"].as_array();
            items
                .into_iter()
                .flatten()
                .for_each(|item| self.item(item, events));
        }
        self.usage = usage(&response["usage"]);
        self.finish = Some(match &response["incomplete_details"]["reason"] {
            Value::String(reason) => finish_reason(reason),
            _ if response["status"] == "incomplete" => FinishReason::Other("incomplete".to_owned()),
            _ if self.calls.count() > 0 => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        });
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Joins the texts of parts, refusals too.
fn join_texts(parts: &Value, separator: &str) -> String {
    let texts = parts
        .as_array()
        .into_iter()
        .flatten()
        .map(|part| match part["type"].as_str() {
            Some("refusal") => text(&part["refusal"]),
            _ => text(&part["text"]),
        });
    texts.collect::<Vec<_>>().join(separator)
}

/// Returns the fields that say something.
fn pick_fields(item: &Value, names: &[&str]) -> Map<String, Value> {
    let mut fields = Map::new();
    for name in names {
        if let Some(value) = item.get(*name).filter(|value| !is_nothing(value)) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }
    fields
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns whether an event is of a kind that this format does not have, such as a ping or `[DONE]`.
fn is_foreign(event: &sse::Event) -> bool {
    let is_known = matches!(event.name.as_str(), "" | "message" | "error")
        || event.name.starts_with("response.");
    !is_known || matches!(event.data.trim(), "" | "[DONE]")
}

fn provider_fault(error: &Value) -> Fault {
    let status = ["code", "status", "type"]
        .into_iter()
        .find_map(|field| status(&error[field]));
    Fault::provider(status, error)
}

/// Returns the HTTP status that an error's code has, or is.
fn status(code: &Value) -> Option<u16> {
    match code.as_str() {
        None => code.as_u64().and_then(|code| code.try_into().ok()),
        Some("rate_limit_exceeded" | "rate_limit_error") => Some(429),
        Some("server_error") => Some(500),
        Some("server_is_overloaded" | "slow_down") => Some(503),
        Some("invalid_api_key" | "authentication_error") => Some(401),
        Some("invalid_prompt" | "context_length_exceeded" | "invalid_request_error") => Some(400),
        Some(code) => code.parse().ok(),
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "max_output_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason.to_owned()),
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let (input, output) = (
        &usage["input_tokens_details"],
        &usage["output_tokens_details"],
    );
    usage.is_object().then(|| Usage {
        model: String::new(),
        input: usage["input_tokens"].as_u64(),
        cached_read: input["cached_tokens"].as_u64(),
        cached_write: input["cache_write_tokens"].as_u64(),
        output: usage["output_tokens"].as_u64(),
        reasoning: output["reasoning_tokens"].as_u64(),
    })
}

#[cfg(test)]
mod tests;
