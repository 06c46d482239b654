use std::{borrow::Cow, fmt};

use jp_conversation::{ChatRequest, view};
use jp_resource::BlobRef;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Later, Loaded};

/// A request to a model, independent of a provider's wire format.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the server calls it.
    pub model: &'a str,
    /// The model as `provider/name`: reasoning is sent back to the model that made it alone.
    pub label: &'a str,
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The conversation; its newest request's `schema` is what the answer must fit. A model that takes no
    /// schemas is told of each in words.
    pub thread: &'a view::Thread<'a>,
    /// The tools it may call, always in this order. A model that takes none is sent none.
    pub tools: &'a [Tool],
    /// The most tokens that the answer may have.
    pub max_output: Option<u64>,
    /// Number of tokens the server should make room for, if that is chosen with the request (Ollama).
    pub context: Option<u64>,
    /// Names the conversation to providers that keep caches by a key.
    pub cache_key: Option<&'a str>,
    /// The content that the model takes beside text.
    pub capabilities: Capabilities,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its purpose, in words for the model.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: Map<String, Value>,
}

/// The content that a model takes beside text.
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
    /// Tools.
    pub tools: bool,
}

/// The source of a thread's stored payloads.
pub trait Contents {
    /// Gives a payload. Asked for each of
    /// [`Thread::blobs`](jp_conversation::view::Thread::blobs) that [`later`](Self::later) leaves, in that order.
    fn load(&mut self, blob: &BlobRef) -> Loaded;

    /// Returns the record of gaps for texts that need not be loaded yet; by default, everything is loaded.
    ///
    /// The encoder writes a NUL for each gap; [`Format::body`](crate::Format::body) makes a body of that.
    fn later(&mut self) -> Option<&mut Later> {
        None
    }
}

/// Label of the tools in a note.
const TOOLS: &str = "the list of tools";

/// A note about something that the model does not receive unchanged: it is described, or left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The turn it belongs to, from 1.
    pub turn: usize,
    /// Its label: a resource's name or URI, a tool's result, or another part of a request.
    pub subject: String,
    /// The reason: `this model does not accept image/png`.
    pub reason: String,
    /// Its size, if it is content.
    pub bytes: Option<u64>,
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
            context: None,
            cache_key: None,
            capabilities: Capabilities::default(),
        }
    }

    /// Returns the schema that the provider enforces: that of the newest message, if the model takes one.
    pub(crate) fn schema(&self) -> Option<&'a Map<String, Value>> {
        self.newest()?
            .1
            .schema
            .as_ref()
            .filter(|_| self.capabilities.schema)
    }

    /// Returns the request without tools if its model takes none, and a note about that.
    pub(crate) fn without_refused_tools(self) -> (Self, Option<Note>) {
        if self.tools.is_empty() || self.capabilities.tools {
            return (self, None);
        }
        let note = Note::without_tools(self.newest_turn(), "this model does not support tools");
        (Self { tools: &[], ..self }, Some(note))
    }

    /// Makes the note that this model gets the schema of the newest message only in words.
    pub(crate) fn schema_note(&self) -> Option<Note> {
        let (turn, newest) = self.newest()?;
        let is_told = newest.schema.is_some() && !self.capabilities.schema;
        is_told.then(|| {
            Note::left_out(
                turn,
                "the schema",
                "this model does not support schemas, so the message describes it",
            )
        })
    }

    /// Returns the turn of the person's newest message, from 1.
    pub(crate) fn newest_turn(&self) -> usize {
        self.newest().map_or(0, |(turn, _)| turn)
    }

    fn newest(&self) -> Option<(usize, &'a ChatRequest)> {
        self.thread
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                view::Message::User { turn, request, .. } => Some((*turn, &**request)),
                _ => None,
            })
    }
}

impl Capabilities {
    /// Returns the words of a message, followed by its schema if the model takes no schemas.
    ///
    /// They depend on the message alone, so that they don't change when it is history.
    pub(crate) fn words<'a>(self, request: &'a ChatRequest) -> Cow<'a, str> {
        const ANSWER: &str =
            "Answer with one JSON document and nothing else. It must match this JSON Schema:\n";
        let words = request.content.as_str();
        match &request.schema {
            Some(schema) if !self.schema => {
                let gap = if words.is_empty() { "" } else { "\n\n" };
                let schema = serde_json::to_string(schema).unwrap_or_default();
                format!("{words}{gap}{ANSWER}{schema}").into()
            }
            _ => words.into(),
        }
    }
}

impl Note {
    /// Returns whether it is about the tools that the model is not offered.
    #[must_use]
    pub fn is_about_tools(&self) -> bool {
        self.bytes.is_none() && self.subject == TOOLS
    }

    /// Makes the note that the model gets no tools.
    pub(crate) fn without_tools(turn: usize, reason: &str) -> Self {
        Self::left_out(turn, TOOLS, reason)
    }

    /// Makes the note that content is not shown.
    pub(crate) fn not_shown(turn: usize, subject: String, reason: String, bytes: usize) -> Self {
        Self {
            turn,
            subject,
            reason,
            bytes: Some(bytes as u64),
        }
    }

    /// Makes the note that something other than content is left out.
    pub(crate) fn left_out(turn: usize, subject: &str, reason: &str) -> Self {
        Self {
            turn,
            subject: subject.to_owned(),
            reason: reason.to_owned(),
            bytes: None,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject, reason, ..
        } = self;
        match self.bytes {
            Some(bytes) => write!(f, "{subject} is not shown: {reason} ({bytes} bytes)"),
            None => write!(f, "{subject} is left out: {reason}"),
        }
    }
}
