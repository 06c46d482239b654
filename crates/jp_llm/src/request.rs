use std::{error::Error as StdError, fmt};

use jp_conversation::{ChatRequest, view};
use jp_resource::{BlobRef, ResourceContent};
use serde::Serialize;
use serde_json::{Map, Value};

/// What a model is asked: independent of how a provider wants it written.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the server calls it.
    pub model: &'a str,
    /// The model as `provider/name`: reasoning is sent back to the model that made it alone.
    pub label: &'a str,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The conversation; its newest request's `schema` is what the answer must fit.
    pub thread: &'a view::Thread<'a>,
    /// The tools it may call, always in this order.
    pub tools: &'a [Tool],
    /// The most tokens that the answer may have.
    pub max_output: Option<u64>,
    /// Names the conversation to providers that keep caches by a key.
    pub cache_key: Option<&'a str>,
    /// What the model takes beside text.
    pub capabilities: Capabilities,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: Map<String, Value>,
}

/// What a model takes beside text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// PNG, JPEG, GIF and WebP images.
    pub images: bool,
    /// PDF documents.
    pub pdf: bool,
    /// Office documents and other files, as far as the provider reads them.
    pub files: bool,
    /// Audio.
    pub audio: bool,
    /// Images and documents in the results of tools.
    pub binary_results: bool,
    /// Answers that fit a JSON Schema.
    pub schema: bool,
}

/// Where the stored payloads of a thread are.
pub trait Contents {
    /// Gives a payload. Asked for each of
    /// [`Thread::blobs`](jp_conversation::view::Thread::blobs), in that order.
    fn load(&mut self, blob: &BlobRef) -> Result<ResourceContent, Box<dyn StdError + Send + Sync>>;
}

/// Something that the model is told of but not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

impl<'a> Request<'a> {
    /// Makes a request of `provider/name` that has no more than a thread.
    #[must_use]
    pub fn new(label: &'a str, thread: &'a view::Thread<'a>) -> Self {
        Self {
            model: label.split_once('/').map_or(label, |(_, name)| name),
            label,
            system: None,
            thread,
            tools: &[],
            max_output: None,
            cache_key: None,
            capabilities: Capabilities::default(),
        }
    }

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
