use std::{error::Error as StdError, fmt};

use jp_conversation::{ChatRequest, view};
use jp_resource::BlobRef;

/// What a model is asked: independent of how a provider wants it written.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the server calls it.
    pub model: &'a str,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The conversation; its newest request's `schema` is what the answer must fit.
    pub thread: &'a view::Thread<'a>,
    /// What the model takes beside text.
    pub capabilities: Capabilities,
}

/// What a model takes beside text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// PNG, JPEG, GIF and WebP images.
    pub images: bool,
    /// PDF documents.
    pub files: bool,
}

/// Where the stored payloads of a thread are.
pub trait Contents {
    /// Gives a payload's bytes. Asked for each of
    /// [`Thread::blobs`](jp_conversation::view::Thread::blobs), in that order.
    fn load(&mut self, blob: &BlobRef) -> Result<Vec<u8>, Box<dyn StdError + Send + Sync>>;
}

/// Something that the model is told of but not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The turn it belongs to, from 1.
    pub turn: usize,
    /// What it is: a resource's name or URI, or a tool's result.
    pub subject: String,
    /// Why it is not shown: `this model does not take image/png`.
    pub reason: String,
    /// Its size.
    pub bytes: u64,
}

impl Request<'_> {
    /// Returns the newest message of the person.
    pub(crate) fn newest(&self) -> Option<&ChatRequest> {
        self.thread.messages.iter().rev().find_map(|message| match message {
            view::Message::User { request, .. } => Some(*request),
            _ => None,
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not shown: {} ({} bytes)", self.subject, self.reason, self.bytes)
    }
}
