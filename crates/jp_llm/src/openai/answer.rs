//! The items of an answer, as the API takes them back.

use std::{borrow::Cow, io};

use jp_conversation::{ChatResponse, ResponseContent, ToolCallRequest, view::AnswerPart};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Error, parts::sendable_name};

/// An item of an answer.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    #[serde(rename = "message")]
    Words {
        role: &'static str,
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
    },
    /// Words with the id that the API gave them.
    #[serde(rename = "message")]
    OutputWords {
        id: &'a Value,
        role: &'static str,
        status: &'static str,
        content: [OutputText<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Value>,
        summary: &'a [Value],
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a Value>,
    },
    FunctionCall {
        call_id: &'a str,
        name: Cow<'a, str>,
        /// JSON in a string.
        arguments: String,
    },
}

#[derive(Serialize)]
pub(super) struct OutputText<'a> {
    r#type: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

/// The metadata that the API gave with a part of an answer.
type Metadata = Map<String, Value>;

/// Returns the items of an answer, in order; `label` is the model that gets them.
///
/// Reasoning that can't be sent back is left out, and so is some that nothing of the answer follows: the API
/// refuses it ("without its required following item"). It ties words to the reasoning before them by their
/// ids, so where reasoning is left out the words after it have none.
pub(super) fn items<'a>(parts: &[AnswerPart<'a>], label: &str) -> Result<Vec<Item<'a>>, Error> {
    let mut items = Vec::new();
    let mut has_left_out = false;
    for part in parts {
        match part {
            AnswerPart::Call(call) => items.push(function_call(call)?),
            AnswerPart::Response(response) => {
                let item = response_item(response, label, has_left_out);
                has_left_out |=
                    item.is_none() && matches!(response.content, ResponseContent::Reasoning(_));
                items.extend(item);
            }
        }
    }
    // An answer that was cut off while the model reasoned.
    while let Some(Item::Reasoning { .. }) = items.last() {
        items.pop();
    }
    Ok(items)
}

/// Returns whether a part of an answer that is reasoning goes back to the model `label`.
pub(crate) fn sends_back(response: &ChatResponse, label: &str) -> bool {
    response_item(response, label, false).is_some()
}

fn response_item<'a>(
    response: &'a ChatResponse,
    label: &str,
    has_left_out: bool,
) -> Option<Item<'a>> {
    let is_own = response
        .metadata
        .get("model")
        .is_some_and(|model| model == label);
    let metadata = is_own.then_some(&response.metadata);
    match (&response.content, metadata) {
        (ResponseContent::Reasoning(_), metadata) => reasoning(metadata?),
        (ResponseContent::Message(text), _) if text.is_empty() => None,
        (ResponseContent::Message(text), Some(metadata)) if !has_left_out => {
            Some(output_words(text, metadata))
        }
        (ResponseContent::Message(text), metadata) => Some(words(text, metadata)),
    }
}

/// Returns words that have no id, or lose it.
pub(super) fn words<'a>(text: &'a str, metadata: Option<&'a Metadata>) -> Item<'a> {
    let phase = metadata.and_then(|metadata| metadata.get("phase"));
    Item::Words {
        role: "assistant",
        content: text,
        phase,
    }
}

/// Returns words as the API gave them.
fn output_words<'a>(text: &'a str, metadata: &'a Metadata) -> Item<'a> {
    let Some(id) = metadata.get("id") else {
        return words(text, Some(metadata));
    };
    let content = [OutputText {
        r#type: "output_text",
        text,
        annotations: [],
    }];
    Item::OutputWords {
        id,
        role: "assistant",
        status: "completed",
        content,
        phase: metadata.get("phase"),
    }
}

/// Returns reasoning as the API gave it; `None` if it gave no more than an id, which it does not remember.
fn reasoning(metadata: &Metadata) -> Option<Item<'_>> {
    let (content, encrypted_content) = (metadata.get("content"), metadata.get("encrypted_content"));
    if content.is_none() && encrypted_content.is_none() {
        return None;
    }
    let summary = metadata
        .get("summary")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    Some(Item::Reasoning {
        id: metadata.get("id"),
        summary,
        content,
        encrypted_content,
    })
}

fn function_call(call: &ToolCallRequest) -> Result<Item<'_>, Error> {
    let arguments = serde_json::to_string(&call.arguments).map_err(io::Error::from)?;
    Ok(Item::FunctionCall {
        call_id: &call.id,
        name: sendable_name(call),
        arguments,
    })
}
