//! Puts a tool's question to the model.
//!
//! The request contains the conversation with the calls of the answer, then the blocks that the
//! tool returned before its question, then the question. It starts with the bytes of the previous
//! request, so the prompt cache stays valid. Only its usage becomes part of the conversation.

use jp_conversation::{ChatRequest, ChatResponse, EventKind, Usage};
use jp_llm::{Error, FinishReason, Format, StreamEvent};
use jp_tool::{ContentBlock, InputRequest, ToolResponse};
use serde_json::{Map, Value, json};

use crate::{
    host::{Host, Turn, TurnEvent, describe_failure},
    line::Inquiry,
    record,
    schema::Schema,
};

/// The number of times that the model is asked for a valid answer. A model that fails twice rarely
/// succeeds later, and each try sends the conversation again.
const TRIES: usize = 2;

/// Asks the model until its answer fits, which it has two tries for; the error says why there is
/// none.
///
/// `pending` are the ids of the other calls that still run: providers reject a request if a call
/// has no result.
pub(crate) async fn infer(
    inquiry: Inquiry,
    pending: &[&str],
    turn: &Turn<'_>,
    host: &mut dyn Host,
) -> Result<Value, String> {
    let input = &inquiry.input;
    let schema = Schema::compile(&input.schema).map_err(|error| error.to_string())?;
    let format = turn.client.endpoint().format;
    let mut aside = build_aside(&inquiry, pending, format);
    let mut fault = String::new();
    for _ in 0..TRIES {
        let said = ask_model(&aside, turn, host).await?;
        match said.answer(&input.id, &schema) {
            Ok(answer) => return Ok(answer),
            Err(reason) => fault = reason,
        }
        let again = format!(
            "This does not answer the question: {fault}.\n\n{}",
            write_instruction(input, format)
        );
        if !said.words.trim().is_empty() {
            aside.push(EventKind::ChatResponse(ChatResponse::message(said.words)));
        }
        aside.push(make_request(again, input, format));
    }
    Err(fault)
}

/// Builds the events that only this request contains: a result for each call, and the question.
fn build_aside(inquiry: &Inquiry, pending: &[&str], format: Format) -> Vec<EventKind> {
    const PENDING: &str = "This call has not ended yet.";
    const NOTHING_YET: &str = "The tool has returned nothing yet: it asks a question first.";
    let Inquiry {
        call,
        context,
        input,
    } = inquiry;
    let context = if context.is_empty() {
        vec![ContentBlock::text(NOTHING_YET)]
    } else {
        context.clone()
    };
    let mut aside = vec![result_event(&call.id, context)];
    aside.extend(
        pending
            .iter()
            .map(|id| result_event(id, vec![ContentBlock::text(PENDING)])),
    );
    aside.push(make_request(
        write_question(&call.name, input, format),
        input,
        format,
    ));
    aside
}

fn result_event(id: &str, content: Vec<ContentBlock>) -> EventKind {
    EventKind::ToolCallResponse(record::to_event(id, ToolResponse::new(content)))
}

fn write_question(tool: &str, input: &InputRequest, format: Format) -> String {
    let InputRequest { text, default, .. } = input;
    let default = default.as_ref().map_or_else(String::new, |default| {
        format!("\nIts default is {default}.")
    });
    format!(
        "The tool \"{tool}\" asks: {text}{default}\n\n{}",
        write_instruction(input, format)
    )
}

/// Writes the instruction. Some providers put a schema before the conversation, which would
/// invalidate the prompt cache, so the instruction contains it instead.
fn write_instruction(input: &InputRequest, format: Format) -> String {
    let told = "Answer with one JSON object and nothing else. Do not call a tool.";
    if format.holds_to_schema_apart() {
        return format!("{told} Put the answer in its property `{}`.", input.id);
    }
    format!(
        "{told} It must match this JSON Schema:\n{}",
        Value::Object(wrap_schema(input))
    )
}

fn make_request(words: String, input: &InputRequest, format: Format) -> EventKind {
    let schema = format.holds_to_schema_apart().then(|| wrap_schema(input));
    EventKind::ChatRequest(ChatRequest {
        schema,
        ..ChatRequest::new(words)
    })
}

/// Makes the schema of an object that has the answer as its one property.
fn wrap_schema(input: &InputRequest) -> Map<String, Value> {
    let id = &input.id;
    let mut answer = Value::Object(input.schema.clone());
    // If the schema has an `$id`, its references are relative to that and stay valid.
    if answer.get("$id").is_none() {
        rebase(
            &mut answer,
            &format!("#/properties/{}", pointer_segment(id)),
        );
    }
    let object = [
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({ id: answer })),
        ("required".to_owned(), json!([id])),
        ("additionalProperties".to_owned(), json!(false)),
    ];
    object.into_iter().collect()
}

/// Rewrites local references in a schema that is now below `root`.
fn rebase(schema: &mut Value, root: &str) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| rebase(one, root)),
        Value::Object(all) => {
            for (key, value) in all {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        if let Some(place) = reference.strip_prefix('#')
                            && (place.is_empty() || place.starts_with('/'))
                        {
                            *reference = format!("{root}{place}");
                        }
                    }
                    value => rebase(value, root),
                }
            }
        }
        _ => {}
    }
}

/// Writes a key as a segment of a JSON Pointer in a URI fragment (RFC 6901 §6).
fn pointer_segment(key: &str) -> String {
    let escaped = key.replace('~', "~0").replace('/', "~1");
    escaped
        .bytes()
        .map(|byte| match byte {
            // The unreserved characters (RFC 3986 §2.3) need no encoding.
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => char::from(b).to_string(),
            b => format!("%{b:02X}"),
        })
        .collect()
}

/// The model's reply to a question.
#[derive(Default)]
struct ModelReply {
    words: String,
    has_called: bool,
    /// The reason why the reply is incomplete, if it is.
    cut_off: Option<String>,
}

/// Sends the question and collects the model's reply. Fails if the request gets no answer.
async fn ask_model(
    aside: &[EventKind],
    turn: &Turn<'_>,
    host: &mut dyn Host,
) -> Result<ModelReply, String> {
    let body = match host.body(aside) {
        Ok(body) => body,
        Err(error) => {
            // It may say where content is stored, which no event may hold.
            host.take(TurnEvent::Notice(&format!(
                "the question to the model can't be built: {error}"
            )));
            return Err("the request can't be built".to_owned());
        }
    };
    let sent = turn
        .client
        .send(&body, &mut |notice| host.take(TurnEvent::Retry(notice)))
        .await;
    let mut response = sent.map_err(|error| describe_failure(&error))?;
    let (mut said, mut usage) = (ModelReply::default(), None);
    loop {
        match response.next().await {
            Ok(None) => break,
            Ok(Some(event)) => said.take(event, &mut usage),
            Err(error) => {
                said.cut_off = Some(describe_loss(&error));
                break;
            }
        }
    }
    if let Some(usage) = usage {
        let usage = Usage {
            model: turn.model.to_owned(),
            ..usage
        };
        // Record the usage even if the answer is invalid: the provider charges for it.
        host.take(TurnEvent::Record(vec![EventKind::Usage(usage)]));
    }
    Ok(said)
}

fn describe_loss(error: &Error) -> String {
    match error {
        Error::Stream { fault, .. } => fault.to_string(),
        error => describe_failure(error),
    }
}

impl ModelReply {
    fn take(&mut self, event: StreamEvent, usage: &mut Option<Usage>) {
        match event {
            StreamEvent::Text(text) => self.words.push_str(&text),
            StreamEvent::ToolCall(_) => self.has_called = true,
            StreamEvent::Usage(figures) => *usage = Some(figures),
            StreamEvent::Finish(FinishReason::Length) => {
                self.cut_off = Some("the length limit was reached".to_owned());
            }
            StreamEvent::Finish(FinishReason::ContentFilter) => {
                self.cut_off = Some("it was blocked by the provider's content filter".to_owned());
            }
            StreamEvent::Reasoning(_) | StreamEvent::EndPart(_) | StreamEvent::Finish(_) => {}
        }
    }

    /// Reads and checks the answer.
    fn answer(&self, id: &str, schema: &Schema) -> Result<Value, String> {
        if self.has_called {
            return Err("a tool was called".to_owned());
        }
        if let Some(reason) = &self.cut_off {
            return Err(format!("it was cut off: {reason}"));
        }
        let mut object: Map<String, Value> = serde_json::from_str(strip_fence(&self.words))
            .map_err(|error| format!("it is not a JSON object: {error}"))?;
        let answer = object
            .shift_remove(id)
            .ok_or_else(|| format!("it has no `{id}`"))?;
        schema
            .check_value(&answer)
            .map_err(|faults| format!("its `{id}` does not match the schema: {faults}"))?;
        Ok(answer)
    }
}

/// Returns the content of the first code fence, or the whole text if it has none.
fn strip_fence(words: &str) -> &str {
    // An object may contain fences itself, in its strings.
    if words.trim_start().starts_with('{') {
        words
    } else {
        find_fenced(words).unwrap_or(words)
    }
}

fn find_fenced(words: &str) -> Option<&str> {
    let (_, opened) = words.split_once("```")?;
    // The rest of the first line names the language.
    let (_, content) = opened.split_once('\n')?;
    let (content, _) = content.rsplit_once("```")?;
    Some(content)
}

#[cfg(test)]
mod tests;
