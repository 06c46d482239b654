//! `jp conversation print --as-sent`: what a model would get of a conversation now.
//!
//! The encoder of the provider's format writes each resource and each block of a result, and the text
//! is read from its JSON, so what is printed is what is sent.

mod readable;

use std::borrow::Cow;

use jp_config::Resolved;
use jp_conversation::{
    ChatRequest, EventKind, ResponseContent, Stream, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Delivery, Message, Thread},
};
use jp_llm::{Capabilities, Contents, ERROR_LINE, Format, Loaded, Request, models};
use jp_resource::{BlobRef, Snapshot};
use jp_storage::Store;
use jp_tool::StoredBlock;
use serde::Serialize;
use serde_json::json;

use self::readable::Part;
use crate::{
    cmd::conversation::print::parse_range,
    context::Context,
    error::{Code, Failure},
};
use jp_session::{
    model::{self, Model, facts},
    query::delivery,
    size,
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

/// A block as it is sent: text, or the type and size of binary content.
#[derive(Default, Serialize)]
struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    binary: Option<Binary>,
}

#[derive(Serialize)]
struct Binary {
    #[serde(rename = "mimeType")]
    mime_type: String,
    bytes: u64,
}

/// The model that messages are written for.
struct Recipient<'s> {
    label: String,
    format: Format,
    capabilities: Capabilities,
    store: &'s Store,
}

pub(super) fn run(
    context: &Context<'_>,
    id: Option<&str>,
    turns: Option<&str>,
) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let all = conversation.stream.turns().len();
    let wanted = turns.map_or(Ok(0..=all), |text| parse_range(text, all))?;
    let config = context.session.config(Some(&conversation), &[])?;
    let mut thread = delivery::stored(&conversation.stream, &config.config, found.store.blobs());
    let model = model::configured(&config)
        .ok()
        .flatten()
        .or_else(|| last_used(&conversation.stream, &config));
    if let Some(model) = &model {
        leave_out(&mut thread, model);
    }
    let recipient = Recipient::new(model.as_ref(), context, &found.store);
    let wanted = thread
        .messages
        .iter()
        .filter(|message| wanted.contains(&message.turn()));
    let output = context.output;
    if output.is_json() {
        let messages = wanted
            .map(|message| recipient.sent(message))
            .collect::<Result<Vec<_>, _>>()?;
        output.json(&json!({"messages": messages}))?;
    } else {
        let mut separator = "";
        for message in wanted {
            output.text(&format!("{separator}{}", text(&recipient.sent(message)?)))?;
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

/// Returns the model that answered last, if the configuration can still reach it.
fn last_used(stream: &Stream, config: &Resolved) -> Option<Model> {
    let label = stream
        .events()
        .iter()
        .rev()
        .find_map(|event| match &event.kind {
            EventKind::ChatResponse(response) => response.metadata.get("model")?.as_str(),
            _ => None,
        })?;
    let (provider, name) = label.split_once('/')?;
    model::of_provider(config, provider, name).ok()
}

impl<'s> Recipient<'s> {
    /// Uses Chat Completions if no model is known.
    fn new(model: Option<&Model>, context: &Context<'_>, store: &'s Store) -> Self {
        let (label, format, facts) = match model {
            Some(model) => (
                model.label.clone(),
                model.endpoint.format,
                facts::known(model, &context.session),
            ),
            None => (
                String::new(),
                Format::Chat,
                models::built_in(Format::Chat, ""),
            ),
        };
        Self {
            label,
            format,
            capabilities: facts.capabilities(),
            store,
        }
    }

    fn sent(&self, message: &Message<'_>) -> Result<Sent, Failure> {
        let (role, blocks) = match message {
            Message::User {
                turn,
                request,
                deliveries,
            } => {
                let mut blocks = vec![words("request", request.content.clone())];
                for (index, resource) in request.resources.iter().enumerate() {
                    let content = self.attached(*turn, resource)?;
                    let block = Block {
                        uri: Some(resource.uri.clone()),
                        content,
                        ..words("resource", String::new())
                    };
                    blocks.push(block.delivered(deliveries.get(index)));
                }
                ("user", blocks)
            }
            Message::Assistant { parts, .. } => (
                "assistant",
                parts.iter().map(part).collect::<Result<Vec<_>, _>>()?,
            ),
            Message::NoAnswer { .. } => (
                "assistant",
                vec![words("message", view::text_of_missing_answer().to_owned())],
            ),
            Message::Tool {
                call,
                response: None,
                ..
            } => {
                let missing = words("tool_result", view::text_of_missing_result().to_owned());
                (
                    "tool",
                    vec![Block {
                        tool: Some(call.name.clone()),
                        ..missing
                    }],
                )
            }
            Message::Tool {
                turn,
                call,
                response: Some(response),
                deliveries,
                ..
            } => {
                let mut blocks = Vec::new();
                for (index, block) in response.content.iter().enumerate() {
                    let uri = match block {
                        StoredBlock::Resource { resource, .. } => Some(resource.uri.clone()),
                        _ => None,
                    };
                    let content = self.returned(*turn, call, response, block)?;
                    let tool = Some(call.name.clone());
                    let block = Block {
                        tool,
                        uri,
                        content,
                        ..words("tool_result", String::new())
                    };
                    blocks.push(block.delivered(deliveries.get(index)));
                }
                ("tool", blocks)
            }
        };
        let is_error =
            matches!(message, Message::Tool { response: Some(response), .. } if response.is_error);
        Ok(Sent {
            role,
            turn: message.turn(),
            is_error,
            blocks,
        })
    }

    /// Writes a resource that is attached, in a message of its own.
    fn attached(&self, turn: usize, resource: &Snapshot) -> Result<Content, Failure> {
        let request = ChatRequest {
            resources: vec![resource.clone()],
            ..ChatRequest::new("")
        };
        self.content(Message::User {
            turn,
            request: Cow::Owned(request),
            deliveries: Vec::new(),
        })
    }

    /// Writes a block of a result, in a result of its own.
    fn returned(
        &self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        block: &StoredBlock,
    ) -> Result<Content, Failure> {
        let response = Some(Cow::Owned(ToolCallResponse {
            id: response.id.clone(),
            content: vec![block.clone()],
            is_error: response.is_error,
            structured_content: None,
            meta: serde_json::Map::new(),
        }));
        self.content(Message::Tool {
            turn,
            number: 1,
            call,
            response,
            deliveries: Vec::new(),
        })
    }

    fn content(&self, message: Message<'_>) -> Result<Content, Failure> {
        let thread = Thread {
            messages: vec![message],
        };
        let request = Request {
            capabilities: self.capabilities,
            ..Request::new(&self.label, &thread)
        };
        let mut body = Vec::new();
        self.format
            .encode(&request, &mut Stored(self.store), &mut body)?;
        Ok(content(readable::parts(&serde_json::from_slice(&body)?)))
    }
}

/// The content of a conversation.
struct Stored<'s>(&'s Store);

impl Contents for Stored<'_> {
    fn load(&mut self, blob: &BlobRef) -> Loaded {
        Ok(self.0.blobs().read_content(blob)?)
    }
}

/// Joins the texts of a block. The result, not the block, says if the call failed.
fn content(parts: Vec<Part>) -> Content {
    let (mut texts, mut binary) = (Vec::new(), None);
    for part in parts {
        match part {
            Part::Text(text) if text.trim_end() == ERROR_LINE.trim_end() => {}
            Part::Text(text) => {
                texts.push(text.strip_prefix(ERROR_LINE).unwrap_or(&text).to_owned())
            }
            Part::Binary { mime_type, bytes } => binary = Some(Binary { mime_type, bytes }),
        }
    }
    let text = (!texts.is_empty() || binary.is_none()).then(|| texts.join("\n"));
    Content { text, binary }
}

fn part(part: &AnswerPart<'_>) -> Result<Block, Failure> {
    Ok(match part {
        AnswerPart::Response(response) => match &response.content {
            ResponseContent::Message(text) => words("message", text.clone()),
            ResponseContent::Reasoning(text) => words("reasoning", text.clone()),
        },
        AnswerPart::Call(call) => {
            let arguments = words("tool_call", serde_json::to_string(&call.arguments)?);
            Block {
                tool: Some(call.name.clone()),
                ..arguments
            }
        }
    })
}

fn words(kind: &'static str, text: String) -> Block {
    let content = Content {
        text: Some(text),
        binary: None,
    };
    Block {
        kind,
        tool: None,
        uri: None,
        delivery: Delivery::default().name(),
        reason: None,
        content,
    }
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

/// Renders a message under a heading, a blank line before each block.
fn text(message: &Sent) -> String {
    let Sent {
        role,
        turn,
        is_error,
        blocks,
    } = message;
    let mut text = format!("## Turn {turn}, {role}\n");
    for (index, block) in blocks.iter().enumerate() {
        if let Some(tool) = &block.tool {
            let what = if block.kind == "tool_call" {
                "call"
            } else {
                "result"
            };
            text += &format!("\n### {what} of {tool}\n");
        }
        let lead = if *is_error && index == 0 {
            ERROR_LINE
        } else {
            ""
        };
        let Content {
            text: words,
            binary,
        } = &block.content;
        let words = format!("{lead}{}", words.as_deref().unwrap_or_default());
        if !words.is_empty() {
            text += &format!("\n{}\n", words.trim_end_matches('\n'));
        }
        if let Some(Binary { mime_type, bytes }) = binary {
            text += &format!("\n[{mime_type}, {}]\n", size::bytes(*bytes));
        }
    }
    text
}
