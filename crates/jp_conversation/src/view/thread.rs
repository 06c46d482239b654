//! A conversation as messages for a model.

use std::borrow::Cow;

use jp_resource::{BlobRef, Encoding, Payload, Snapshot};
use jp_tool::StoredBlock;

use super::Delivery;
use crate::{ChatRequest, ChatResponse, ToolCallRequest, ToolCallResponse};

/// A conversation in the form that a model receives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Thread<'a> {
    /// The messages, oldest first.
    pub messages: Vec<Message<'a>>,
}

/// One message of a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    /// A message of the user: the words first, then the attached resources in order.
    User {
        /// The turn, from 1.
        turn: usize,
        /// The words and the resources in the form that the model receives.
        request: Cow<'a, ChatRequest>,
        /// The delivery of each resource.
        deliveries: Vec<Delivery>,
    },
    /// An answer of the model.
    Assistant {
        /// The turn, from 1.
        turn: usize,
        /// Words, reasoning and tool calls, in order; never empty.
        parts: Vec<AnswerPart<'a>>,
    },
    /// A placeholder for a missing answer between two requests, because many models require alternating messages.
    NoAnswer {
        /// The turn, from 1.
        turn: usize,
    },
    /// A tool's result. Results follow the message with their calls, in call order.
    Tool {
        /// The turn, from 1.
        turn: usize,
        /// The number of the call in its turn, from 1.
        number: usize,
        /// The call.
        call: &'a ToolCallRequest,
        /// The response in the form that the model receives; `None` if the turn was interrupted before.
        response: Option<Cow<'a, ToolCallResponse>>,
        /// The delivery of each of its blocks.
        deliveries: Vec<Delivery>,
    },
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnswerPart<'a> {
    /// Words or reasoning.
    Response(&'a ChatResponse),
    /// A tool call.
    Call(&'a ToolCallRequest),
}

impl Message<'_> {
    /// Returns the turn, from 1.
    #[must_use]
    pub fn turn(&self) -> usize {
        match self {
            Self::User { turn, .. }
            | Self::Assistant { turn, .. }
            | Self::NoAnswer { turn }
            | Self::Tool { turn, .. } => *turn,
        }
    }

    /// Returns the deliveries of its resources or blocks.
    #[must_use]
    pub fn deliveries(&self) -> &[Delivery] {
        match self {
            Self::User { deliveries, .. } | Self::Tool { deliveries, .. } => deliveries,
            Self::Assistant { .. } | Self::NoAnswer { .. } => &[],
        }
    }

    /// Returns a resource by its index among the resources or blocks.
    pub(super) fn resource(&self, block: usize) -> Option<&Snapshot> {
        match self {
            Self::User { request, .. } => request.resources.get(block),
            Self::Tool {
                response: Some(response),
                ..
            } => match response.content.get(block)? {
                StoredBlock::Resource { resource, .. } => Some(resource),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Thread<'_> {
    /// Returns true if any attachment or result is binary.
    #[must_use]
    pub fn has_binaries(&self) -> bool {
        self.messages.iter().any(|message| match message {
            Message::User { request, .. } => request.resources.iter().any(is_binary),
            Message::Tool {
                response: Some(response),
                ..
            } => response.content.iter().any(is_binary_block),
            Message::Assistant { .. }
            | Message::NoAnswer { .. }
            | Message::Tool { response: None, .. } => false,
        })
    }

    /// Returns true if anything isn't delivered whole.
    #[must_use]
    pub fn is_shortened(&self) -> bool {
        let deliveries = self.messages.iter().flat_map(Message::deliveries);
        deliveries
            .into_iter()
            .any(|delivery| !matches!(delivery, Delivery::Full(_)))
    }

    /// Returns true if any answer must match a schema.
    #[must_use]
    pub fn has_schema(&self) -> bool {
        self.messages.iter().any(|message| match message {
            Message::User { request, .. } => request.schema.is_some(),
            _ => false,
        })
    }

    /// Returns the stored payloads that a request of this thread needs, in the order of the request.
    #[must_use]
    pub fn blobs(&self) -> Vec<BlobRef> {
        let mut blobs = Vec::new();
        for message in &self.messages {
            match message {
                Message::User { request, .. } => {
                    blobs.extend(request.resources.iter().filter_map(shown_blob));
                }
                Message::Tool {
                    response: Some(response),
                    ..
                } => {
                    blobs.extend(response.content.iter().filter_map(block_blob));
                }
                Message::Assistant { .. }
                | Message::NoAnswer { .. }
                | Message::Tool { response: None, .. } => {}
            }
        }
        blobs
    }
}

/// Returns the payload of a resource that a model receives: formatted text, or else the content.
fn shown_blob(snapshot: &Snapshot) -> Option<BlobRef> {
    match &snapshot.formatted {
        Some(formatted) => formatted.blob(),
        None => snapshot.content.blob(),
    }
}

fn block_blob(block: &StoredBlock) -> Option<BlobRef> {
    match block {
        StoredBlock::Text { text, .. } => text.blob(),
        StoredBlock::Resource { resource, .. } => shown_blob(resource),
        StoredBlock::Image(media) | StoredBlock::Audio(media) => media.data.blob(),
        StoredBlock::Question { .. } | StoredBlock::Unknown(_) => None,
    }
}

fn is_binary(snapshot: &Snapshot) -> bool {
    match &snapshot.content {
        _ if snapshot.formatted.is_some() => false,
        Payload::Inline(content) => content.as_text().is_none(),
        Payload::Stored(blob) => blob.encoding == Encoding::Binary,
    }
}

fn is_binary_block(block: &StoredBlock) -> bool {
    match block {
        StoredBlock::Image(_) | StoredBlock::Audio(_) => true,
        StoredBlock::Resource { resource, .. } => is_binary(resource),
        _ => false,
    }
}
