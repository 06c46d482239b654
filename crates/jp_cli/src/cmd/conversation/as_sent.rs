//! `jp conversation print --as-sent`: what a model would get of a conversation now.

use std::borrow::Cow;

use jp_conversation::{
    ResponseContent, transcript,
    view::{self, AnswerPart, Delivery, Message, Thread},
};
use jp_llm::{ERROR_LINE, attached_text};
use jp_resource::{Payload, ResourceContent, Snapshot};
use jp_storage::Store;
use jp_tool::StoredBlock;
use serde::Serialize;
use serde_json::json;

use super::print::parse_range;
use crate::{
    cmd::query::{
        delivered,
        model::{self, Model},
    },
    error::{Code, Failure},
    size,
    workspace::Context,
};

/// A message with its content.
#[derive(Serialize)]
struct Sent {
    role: &'static str,
    turn: usize,
    /// Of the result of a tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    blocks: Vec<Block>,
}

/// One block of a message.
#[derive(Serialize)]
struct Block {
    /// The kinds of `jp query --explain`.
    kind: &'static str,
    /// The tool, for its call and its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    delivery: &'static str,
    /// Where the content stands that this one builds on.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Text {
        text: String,
    },
    Binary {
        #[serde(rename = "mimeType")]
        mime_type: String,
        bytes: u64,
    },
}

pub(super) fn run(context: &Context<'_>, id: Option<&str>, turns: Option<&str>) -> Result<Code, Failure> {
    let found = context.selected(id)?;
    let conversation = context.read(&found)?;
    let all = conversation.stream.turns().len();
    let wanted = turns.map_or(Ok(0..=all), |text| parse_range(text, all))?;
    let config = context.config(Some(&conversation), &[])?;
    let mut thread = delivered::stored(&conversation.stream, &config.config, found.store.blobs());
    if let Some(model) = model::configured(&config).ok().flatten() {
        leave_out(&mut thread, &model);
    }
    let wanted = thread.messages.iter().filter(|message| wanted.contains(&message.turn()));
    let output = context.output;
    if output.is_json() {
        let messages = wanted.map(|message| sent(message, &found.store)).collect::<Result<Vec<_>, _>>()?;
        output.json(&json!({"messages": messages}))?;
    } else {
        let mut separator = "";
        for message in wanted {
            output.text(&format!("{separator}{}", text(&sent(message, &found.store)?)))?;
            separator = "\n";
        }
    }
    Ok(Code::Done)
}

/// Leaves out what the model does not get back of its answers, and answers of which nothing is left.
fn leave_out(thread: &mut Thread<'_>, model: &Model) {
    thread.messages.retain_mut(|message| match message {
        Message::Assistant { parts, .. } => {
            parts.retain(|part| model.takes_back(part));
            !parts.is_empty()
        }
        _ => true,
    });
}

fn sent(message: &Message<'_>, store: &Store) -> Result<Sent, Failure> {
    let (role, blocks) = match message {
        Message::User { request, deliveries, .. } => {
            let mut blocks = vec![words("request", request.content.clone())];
            for (index, resource) in request.resources.iter().enumerate() {
                let content = attached(resource, store)?;
                let block =
                    Block { uri: Some(resource.uri.clone()), content, ..words("resource", String::new()) };
                blocks.push(block.delivered(deliveries.get(index)));
            }
            ("user", blocks)
        }
        Message::Assistant { parts, .. } => {
            ("assistant", parts.iter().map(part).collect::<Result<Vec<_>, _>>()?)
        }
        Message::NoAnswer { .. } => {
            ("assistant", vec![words("message", view::text_of_missing_answer().to_owned())])
        }
        Message::Tool { call, response: None, .. } => {
            let missing = words("tool_result", view::text_of_missing_result().to_owned());
            ("tool", vec![Block { tool: Some(call.name.clone()), ..missing }])
        }
        Message::Tool { call, response: Some(response), deliveries, .. } => {
            let mut blocks = Vec::new();
            for (index, returned) in response.content.iter().enumerate() {
                let block = Block { tool: Some(call.name.clone()), ..result(returned, store)? };
                blocks.push(block.delivered(deliveries.get(index)));
            }
            ("tool", blocks)
        }
    };
    let is_error = matches!(message, Message::Tool { response: Some(response), .. } if response.is_error);
    Ok(Sent { role, turn: message.turn(), is_error, blocks })
}

fn part(part: &AnswerPart<'_>) -> Result<Block, Failure> {
    Ok(match part {
        AnswerPart::Response(response) => match &response.content {
            ResponseContent::Message(text) => words("message", text.clone()),
            ResponseContent::Reasoning(text) => words("reasoning", text.clone()),
        },
        AnswerPart::Call(call) => {
            let arguments = words("tool_call", serde_json::to_string(&call.arguments)?);
            Block { tool: Some(call.name.clone()), ..arguments }
        }
    })
}

fn words(kind: &'static str, text: String) -> Block {
    let content = Content::Text { text };
    Block { kind, tool: None, uri: None, delivery: Delivery::default().name(), reason: None, content }
}

impl Block {
    fn delivered(mut self, delivery: Option<&Delivery>) -> Self {
        if let Some(delivery) = delivery {
            self.delivery = delivery.name();
            self.reason = delivery.places().next().map(|_| delivery.reason());
        }
        self
    }
}

fn payload_text(text: &Payload<String>, store: &Store) -> Result<String, Failure> {
    Ok(transcript::text_of(text, &|blob| store.blobs().read(blob))?)
}

fn attached(resource: &Snapshot, store: &Store) -> Result<Content, Failure> {
    let text = |text: &str| Content::Text { text: attached_text(resource, text) };
    Ok(match &resource.formatted {
        Some(formatted) => text(&payload_text(formatted, store)?),
        None => match content(resource, store)? {
            ResourceContent::Text(content) => text(&content),
            ResourceContent::Blob(bytes) => binary(resource.mime_type.as_deref(), bytes.len() as u64),
        },
    })
}

/// Renders a block of a result, as much of it as is shown.
fn result(block: &StoredBlock, store: &Store) -> Result<Block, Failure> {
    let shown = |text: String| view::shown_text(block, text.into()).into_owned();
    let of_resource = |resource: &Snapshot| {
        Ok::<_, Failure>(match &resource.formatted {
            Some(formatted) => Content::Text { text: shown(payload_text(formatted, store)?) },
            None => match content(resource, store)? {
                ResourceContent::Text(text) => {
                    Content::Text { text: view::resource_block(resource, &shown(text)) }
                }
                ResourceContent::Blob(bytes) => binary(resource.mime_type.as_deref(), bytes.len() as u64),
            },
        })
    };
    let content = match block {
        StoredBlock::Text { text, .. } => Content::Text { text: shown(payload_text(text, store)?) },
        StoredBlock::Resource { resource, .. } => of_resource(resource)?,
        StoredBlock::Image(media) | StoredBlock::Audio(media) => {
            let bytes = media.data.stored().map(|blob| blob.size);
            let bytes = bytes.or_else(|| media.data.inline().map(|data| data.len() as u64));
            binary(Some(&media.mime_type), bytes.unwrap_or_default())
        }
        StoredBlock::Question { question } => Content::Text { text: question.text.clone() },
        StoredBlock::Unknown(block) => Content::Text { text: block.note() },
    };
    let uri = match block {
        StoredBlock::Resource { resource, .. } => Some(resource.uri.clone()),
        _ => None,
    };
    Ok(Block { uri, content, ..words("tool_result", String::new()) })
}

fn content(resource: &Snapshot, store: &Store) -> Result<ResourceContent, Failure> {
    match &resource.content {
        Payload::Inline(content) => Ok(content.clone()),
        Payload::Stored(blob) => Ok(store.blobs().read_content(blob)?),
    }
}

fn binary(mime_type: Option<&str>, bytes: u64) -> Content {
    let mime_type = mime_type.unwrap_or("application/octet-stream").to_owned();
    Content::Binary { mime_type, bytes }
}

/// Renders a message under a heading, a blank line before each block.
fn text(message: &Sent) -> String {
    let Sent { role, turn, is_error, blocks } = message;
    let mut text = format!("## Turn {turn}, {role}\n");
    for (index, block) in blocks.iter().enumerate() {
        if let Some(tool) = &block.tool {
            let what = if block.kind == "tool_call" { "call" } else { "result" };
            text += &format!("\n### {what} of {tool}\n");
        }
        let lead = if *is_error && index == 0 { ERROR_LINE } else { "" };
        match &block.content {
            Content::Text { text: words } if lead.is_empty() && words.is_empty() => {}
            Content::Text { text: words } => {
                text += &format!("\n{}\n", format!("{lead}{words}").trim_end_matches('\n'));
            }
            Content::Binary { mime_type, bytes } => {
                let uri = block.uri.as_ref().map_or_else(String::new, |uri| format!("{uri}, "));
                text += &format!("\n{lead}[{uri}{mime_type}, {}]\n", size::bytes(*bytes));
            }
        }
    }
    text
}
