//! Puts a tool's question to the model.

use jp_conversation::{ChatRequest, EventKind};
use jp_llm::StreamEvent;
use jp_tool::ToolResponse;
use serde_json::{Map, Value, json};

use crate::{Host, Turn, TurnEvent, calls::Inquiry, record};

/// Asks the model, with the conversation so far, what the tool returned and the question: a structured request whose
/// schema is an object with the question's property. Nothing of it is part of the conversation but its cost.
pub(crate) async fn infer(inquiry: Inquiry, turn: &Turn<'_>, host: &mut dyn Host) -> Result<Value, String> {
    let Inquiry { call, context, input } = inquiry;
    let result = record::response(&call.id, ToolResponse::new(context));
    let request =
        ChatRequest { schema: Some(schema(&input.id, &input.schema)), ..ChatRequest::new(input.text) };
    let body = host
        .body(&[EventKind::ToolCallResponse(result), EventKind::ChatRequest(request)])
        .map_err(|error| error.to_string())?;
    let words = words(&body, turn, host).await.map_err(|error| error.to_string())?;
    let mut answer: Map<String, Value> =
        serde_json::from_str(&words).map_err(|error| format!("its answer is no JSON object: {error}"))?;
    answer.shift_remove(&input.id).ok_or_else(|| format!("its answer has no `{}`", input.id))
}

fn schema(id: &str, schema: &Map<String, Value>) -> Map<String, Value> {
    let object = json!({
        "type": "object", "properties": {id: schema}, "required": [id], "additionalProperties": false,
    });
    match object {
        Value::Object(object) => object,
        _ => unreachable!("an object was written"),
    }
}

async fn words(body: &jp_llm::Body, turn: &Turn<'_>, host: &mut dyn Host) -> Result<String, jp_llm::Error> {
    let mut response = turn.client.send(body, &mut |notice| host.take(TurnEvent::Retry(notice))).await?;
    let mut words = String::new();
    while let Some(event) = response.next().await? {
        match event {
            StreamEvent::Text(text) => words.push_str(&text),
            StreamEvent::Usage(usage) => {
                let usage = jp_conversation::Usage { model: turn.model.to_owned(), ..usage };
                host.take(TurnEvent::Record(EventKind::Usage(usage)));
            }
            _ => {}
        }
    }
    Ok(words)
}
