//! `jp conversation print --as-sent`: a conversation as a model would receive it now.
//!
//! The encoder of the provider's format writes each resource and each block of a result, and jp reads the text from that
//! JSON. The printed text is therefore the text of a request.

mod readable;

use std::borrow::Cow;

use jp_config::Resolved;
use jp_conversation::{
    ChatRequest, EventKind, ResponseContent, Stream, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Delivery, Message, Thread},
};
use jp_llm::{Capabilities, Contents, ERROR_LINE, Format, Loaded, Request, models};
use jp_resource::BlobRef;
use jp_storage::Store;
use jp_tool::StoredBlock;
use serde::Serialize;
use serde_json::json;

use self::readable::Part;
use crate::{
    cmd::conversation::print::parse_range,
    context::Context,
    error::{Code, SessionError},
};
use jp_session::{
    model::{self, Model, facts},
    query::delivery,
    size,
};

/// A message with its content.
#[derive(Serialize)]
struct SentMessage {
    role: &'static str,
    turn: usize,
    /// Set if the result of a tool is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    blocks: Vec<SentBlock>,
}

/// One block of a message.
#[derive(Serialize)]
struct SentBlock {
    /// The kind, as in `jp query --explain`.
    kind: &'static str,
    /// The tool of a call or a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    delivery: &'static str,
    /// The place of the content that this content refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    #[serde(flatten)]
    content: Content,
}

/// The content of a block: its text, or the type and size of binary content.
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

/// Encodes messages for a model.
struct MessageEncoder<'s> {
    label: String,
    format: Format,
    capabilities: Capabilities,
    store: &'s Store,
}

pub(super) fn run(
    context: &Context<'_>,
    id: Option<&str>,
    turns: Option<&str>,
) -> Result<Code, SessionError> {
    let found = context.session.select(id)?;
    let conversation = context.session.read(&found)?;
    let all = conversation.stream.turns().len();
    // Turn 0 is content from before the first message.
    let wanted = turns.map_or(Ok(0..=all), |text| parse_range(text, all))?;
    let config = context.session.config(Some(&conversation), &[])?;
    let mut thread =
        delivery::deliver_stored(&conversation.stream, &config.config, found.store.blobs());
    // Without a usable model in the configuration, the model of the last answer decides.
    let model = model::find_configured(&config)
        .ok()
        .flatten()
        .or_else(|| find_last_model(&conversation.stream, &config));
    if let Some(model) = &model {
        remove_unsent_parts(&mut thread, model);
    }
    let encoder = MessageEncoder::new(model.as_ref(), context, &found.store);
    let wanted = thread
        .messages
        .iter()
        .filter(|message| wanted.contains(&message.turn()));
    let output = context.output;
    if output.is_json() {
        let messages = wanted
            .map(|message| encoder.encode_message(message))
            .collect::<Result<Vec<_>, _>>()?;
        output.json(&json!({"messages": messages}))?;
    } else {
        let mut separator = "";
        for message in wanted {
            let message = encoder.encode_message(message)?;
            output.text(&format!("{separator}{}", format_message(&message)))?;
            separator = "\n";
        }
    }
    Ok(Code::Done)
}

/// Removes the parts of answers that the model does not receive again, and answers without any other part.
fn remove_unsent_parts(thread: &mut Thread<'_>, model: &Model) {
    thread.messages.retain_mut(|message| match message {
        Message::Assistant { parts, .. } => {
            parts.retain(|part| model.takes_back(part));
            !parts.is_empty()
        }
        _ => true,
    });
}

/// Returns the model of the last answer, if the configuration still has its provider.
fn find_last_model(stream: &Stream, config: &Resolved) -> Option<Model> {
    let label = stream
        .events()
        .iter()
        .rev()
        .find_map(|event| match &event.kind {
            EventKind::ChatResponse(response) => response.metadata.get("model")?.as_str(),
            _ => None,
        })?;
    let (provider, name) = label.split_once('/')?;
    model::resolve(config, provider, name).ok()
}

impl<'s> MessageEncoder<'s> {
    /// Creates an encoder; without a model it uses the format of Chat Completions.
    fn new(model: Option<&Model>, context: &Context<'_>, store: &'s Store) -> Self {
        let (label, format, facts) = match model {
            Some(model) => (
                model.label.clone(),
                model.endpoint.format,
                facts::recall_facts(model, &context.session),
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

    fn encode_message(&self, message: &Message<'_>) -> Result<SentMessage, SessionError> {
        let role = match message {
            Message::User { .. } => "user",
            Message::Assistant { .. } | Message::NoAnswer { .. } => "assistant",
            Message::Tool { .. } => "tool",
        };
        let blocks = match message {
            Message::User {
                turn,
                request,
                deliveries,
            } => self.encode_request(*turn, request, deliveries)?,
            Message::Assistant { parts, .. } => {
                parts.iter().map(encode_part).collect::<Result<_, _>>()?
            }
            // Providers want answers between requests, so jp sends a text in place of a missing one.
            Message::NoAnswer { .. } => vec![SentBlock::from_text(
                "message",
                view::text_of_missing_answer(),
            )],
            Message::Tool {
                call,
                response: None,
                ..
            } => vec![SentBlock {
                tool: Some(call.name.clone()),
                ..SentBlock::from_text("tool_result", view::text_of_missing_result())
            }],
            Message::Tool {
                turn,
                call,
                response: Some(response),
                deliveries,
                ..
            } => self.encode_result(*turn, call, response, deliveries)?,
        };
        let is_error =
            matches!(message, Message::Tool { response: Some(response), .. } if response.is_error);
        Ok(SentMessage {
            role,
            turn: message.turn(),
            is_error,
            blocks,
        })
    }

    /// Encodes a request: its text, and each resource in a message of its own.
    fn encode_request(
        &self,
        turn: usize,
        request: &ChatRequest,
        deliveries: &[Delivery],
    ) -> Result<Vec<SentBlock>, SessionError> {
        let mut blocks = vec![SentBlock::from_text("request", &request.content)];
        for (index, resource) in request.resources.iter().enumerate() {
            let request = ChatRequest {
                resources: vec![resource.clone()],
                ..ChatRequest::new("")
            };
            let content = self.encode(Message::User {
                turn,
                request: Cow::Owned(request),
                deliveries: Vec::new(),
            })?;
            let block = SentBlock {
                uri: Some(resource.uri.clone()),
                ..SentBlock::new("resource", content)
            };
            blocks.push(block.with_delivery(deliveries.get(index)));
        }
        Ok(blocks)
    }

    /// Encodes each block of a result in a result of its own.
    fn encode_result(
        &self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        deliveries: &[Delivery],
    ) -> Result<Vec<SentBlock>, SessionError> {
        let mut blocks = Vec::new();
        for (index, block) in response.content.iter().enumerate() {
            let content = self.encode(Message::Tool {
                turn,
                number: 1,
                call,
                response: Some(Cow::Owned(ToolCallResponse {
                    id: response.id.clone(),
                    content: vec![block.clone()],
                    is_error: response.is_error,
                    // It belongs to the whole result, not to one block.
                    structured_content: None,
                    meta: serde_json::Map::new(),
                })),
                deliveries: Vec::new(),
            })?;
            let uri = match block {
                StoredBlock::Resource { resource, .. } => Some(resource.uri.clone()),
                _ => None,
            };
            let block = SentBlock {
                tool: Some(call.name.clone()),
                uri,
                ..SentBlock::new("tool_result", content)
            };
            blocks.push(block.with_delivery(deliveries.get(index)));
        }
        Ok(blocks)
    }

    /// Encodes a request with one message, and reads the content of the message from it.
    fn encode(&self, message: Message<'_>) -> Result<Content, SessionError> {
        let thread = Thread {
            messages: vec![message],
        };
        let request = Request {
            capabilities: self.capabilities,
            ..Request::new(&self.label, &thread)
        };
        let mut body = Vec::new();
        self.format
            .encode(&request, &mut StoreContents(self.store), &mut body)?;
        Ok(join_parts(readable::read_parts(&serde_json::from_slice(
            &body,
        )?)))
    }
}

/// Loads stored content for an encoder.
struct StoreContents<'s>(&'s Store);

impl Contents for StoreContents<'_> {
    fn load(&mut self, blob: &BlobRef) -> Loaded {
        Ok(self.0.blobs().read_content(blob)?)
    }
}

/// Joins the texts of a block. Removes the line that marks an error, because the heading of the result has it.
fn join_parts(parts: Vec<Part>) -> Content {
    let (mut texts, mut binary) = (Vec::new(), None);
    for part in parts {
        match part {
            Part::Text(text) if text.trim_end() == ERROR_LINE.trim_end() => {}
            Part::Text(text) => {
                texts.push(text.strip_prefix(ERROR_LINE).unwrap_or(&text).to_owned());
            }
            Part::Binary { mime_type, bytes } => binary = Some(Binary { mime_type, bytes }),
        }
    }
    let text = (!texts.is_empty() || binary.is_none()).then(|| texts.join("\n"));
    Content { text, binary }
}

fn encode_part(part: &AnswerPart<'_>) -> Result<SentBlock, SessionError> {
    Ok(match part {
        AnswerPart::Response(response) => match &response.content {
            ResponseContent::Message(text) => SentBlock::from_text("message", text),
            ResponseContent::Reasoning(text) => SentBlock::from_text("reasoning", text),
        },
        AnswerPart::Call(call) => SentBlock {
            tool: Some(call.name.clone()),
            ..SentBlock::from_text("tool_call", &serde_json::to_string(&call.arguments)?)
        },
    })
}

impl SentBlock {
    fn new(kind: &'static str, content: Content) -> Self {
        Self {
            kind,
            tool: None,
            uri: None,
            delivery: Delivery::default().name(),
            reason: None,
            content,
        }
    }

    fn from_text(kind: &'static str, text: &str) -> Self {
        let content = Content {
            text: Some(text.to_owned()),
            binary: None,
        };
        Self::new(kind, content)
    }

    fn with_delivery(mut self, delivery: Option<&Delivery>) -> Self {
        if let Some(delivery) = delivery {
            self.delivery = delivery.name();
            // The reason of whole content names no place, and would only repeat `delivery`.
            self.reason = delivery.places().next().map(|_| delivery.reason());
        }
        self
    }
}

/// Formats a message below a heading, with an empty line before each block.
fn format_message(message: &SentMessage) -> String {
    let SentMessage {
        role,
        turn,
        is_error,
        blocks,
    } = message;
    let mut text = format!("## Turn {turn}, {role}\n");
    for (index, block) in blocks.iter().enumerate() {
        if let Some(tool) = &block.tool {
            let subject = match block.kind {
                "tool_call" => "call",
                _ => "result",
            };
            text += &format!("\n### {subject} of {tool}\n");
        }
        let mut content = block.content.text.clone().unwrap_or_default();
        // The line stands once, before the first block, as in the request.
        if *is_error && index == 0 {
            content.insert_str(0, ERROR_LINE);
        }
        if !content.is_empty() {
            text += &format!("\n{}\n", content.trim_end_matches('\n'));
        }
        if let Some(Binary { mime_type, bytes }) = &block.content.binary {
            text += &format!("\n[{mime_type}, {}]\n", size::bytes(*bytes));
        }
    }
    text
}
