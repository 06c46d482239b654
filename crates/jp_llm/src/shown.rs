//! Loads the part of stored content that a model sees, at the moment it is written.

use std::{borrow::Cow, error::Error as StdError};

use jp_conversation::{ToolCallRequest, view};
use jp_resource::{BlobRef, Payload, ResourceContent, Snapshot};
use jp_tool::{Media, StoredBlock};

use crate::{
    Contents, Error, Note,
    later::{Text, TextForm},
    parts::{essence, essence_of, result_of, subject},
};

/// The part of a resource that a model sees.
pub(crate) enum Shown<'a, T = Cow<'a, str>> {
    /// The formatted text, or content that is text.
    Text(T),
    /// Other content.
    Binary(Cow<'a, [u8]>),
}

/// The part of a block of a tool's result that a model sees.
pub(crate) enum ShownBlock<'a> {
    /// Text, a resource's with what it is around it.
    Text(Cow<'a, str>),
    /// Other content.
    Binary(Binary<'a>),
}

/// Content that is no text.
pub(crate) struct Binary<'a> {
    /// Label for the user.
    pub(crate) subject: String,
    /// Label for the model: its name and its URI, if it has them.
    pub(crate) label: String,
    /// Its media type, without parameters.
    pub(crate) mime: String,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl Binary<'_> {
    /// Returns why a model whose capabilities lack this is not shown it.
    pub(crate) fn why_not_taken(&self) -> String {
        format!("this model does not accept {}", self.mime)
    }

    /// Returns why it is not shown in the results of a model that takes text there.
    pub(crate) fn why_not_in_results(&self) -> String {
        format!("tool results can only contain text, not {}", self.mime)
    }

    /// Notes that the model is not shown this attachment, and returns the text that stands for it.
    pub(crate) fn omit_attached(
        &self,
        turn: usize,
        reason: String,
        notes: &mut Vec<Note>,
    ) -> String {
        let text = format!("[not shown: {reason}; {} bytes]", self.bytes.len());
        self.note(turn, reason, notes);
        text
    }

    /// Notes that the model is not shown this part of a result, and returns the line that stands for it.
    pub(crate) fn omit_from_result(
        &self,
        turn: usize,
        reason: String,
        notes: &mut Vec<Note>,
    ) -> String {
        let Self { label, bytes, .. } = self;
        let line = format!("[{label} is not shown: {reason}; {} bytes]", bytes.len());
        self.note(turn, reason, notes);
        line
    }

    fn note(&self, turn: usize, reason: String, notes: &mut Vec<Note>) {
        let (subject, size) = (self.subject.clone(), self.bytes.len());
        notes.push(Note::not_shown(turn, subject, reason, size));
    }
}

/// Loads a block of the result of `call`.
pub(crate) fn load_block<'a>(
    call: &ToolCallRequest,
    block: &'a StoredBlock,
    contents: &mut dyn Contents,
) -> Result<ShownBlock<'a>, Error> {
    match block {
        StoredBlock::Text { text, .. } => {
            load_result_text(call, block, text, contents).map(ShownBlock::Text)
        }
        StoredBlock::Resource { resource, .. } => {
            Ok(match load_result_resource(block, resource, contents)? {
                Shown::Text(text) => ShownBlock::Text(view::resource_block(resource, &text).into()),
                Shown::Binary(bytes) => ShownBlock::Binary(Binary::from_resource(resource, bytes)),
            })
        }
        StoredBlock::Image(media) | StoredBlock::Audio(media) => {
            let bytes = load_media(media, &result_of(call), contents)?;
            Ok(ShownBlock::Binary(Binary::from_media(
                call,
                &media.mime_type,
                bytes,
            )))
        }
        StoredBlock::Question { question } => Ok(ShownBlock::Text(question.text.as_str().into())),
        StoredBlock::Unknown(block) => Ok(ShownBlock::Text(block.note().into())),
    }
}

/// Loads the text of a block of the result of `call`, as much of it as the block says.
pub(crate) fn load_result_text<'a>(
    call: &ToolCallRequest,
    block: &StoredBlock,
    text: &'a Payload<String>,
    contents: &mut dyn Contents,
) -> Result<Cow<'a, str>, Error> {
    let text = load_text(text, &result_of(call), contents)?;
    Ok(view::shown_text(block, text))
}

/// Loads the resource of a block of a result, as much of its text as the block says.
pub(crate) fn load_result_resource<'a>(
    block: &StoredBlock,
    resource: &'a Snapshot,
    contents: &mut dyn Contents,
) -> Result<Shown<'a>, Error> {
    Ok(match load_resource(resource, contents)? {
        Shown::Text(text) => Shown::Text(view::shown_text(block, text)),
        binary @ Shown::Binary(_) => binary,
    })
}

impl<'a> Shown<'a> {
    pub(crate) fn now(self) -> Shown<'a, Text<'a>> {
        match self {
            Self::Text(text) => Shown::Text(Text::Now(text)),
            Self::Binary(bytes) => Shown::Binary(bytes),
        }
    }
}

impl<'a> Binary<'a> {
    /// Wraps a resource's content.
    pub(crate) fn from_resource(resource: &Snapshot, bytes: Cow<'a, [u8]>) -> Self {
        let mime = essence_of(resource.mime_type.as_deref());
        Self {
            subject: subject(resource),
            label: view::resource_label(resource),
            mime,
            bytes,
        }
    }

    /// Wraps an image or a sound that a call returned; neither has a name or a URI.
    pub(crate) fn from_media(call: &ToolCallRequest, mime: &str, bytes: Cow<'a, [u8]>) -> Self {
        Self {
            subject: result_of(call),
            label: result_of(call),
            mime: essence(mime),
            bytes,
        }
    }
}

/// Loads what [`load_resource`] loads, but leaves room for a text where its measure is known; `form` is how it is
/// written then.
pub(crate) fn load_attached<'a>(
    resource: &'a Snapshot,
    form: TextForm,
    contents: &mut dyn Contents,
) -> Result<Shown<'a, Text<'a>>, Error> {
    // Formatted text and inline content are in memory anyway.
    if let (None, Payload::Stored(blob)) = (&resource.formatted, &resource.content)
        && let Some(later) = contents.later()
        && let Some(measure) = later.leave_room(blob, &resource.uri, form)
    {
        return Ok(Shown::Text(Text::Later(measure)));
    }
    load_resource(resource, contents).map(Shown::now)
}

/// Loads a resource's formatted text, or its content if there is none.
pub(crate) fn load_resource<'a>(
    resource: &'a Snapshot,
    contents: &mut dyn Contents,
) -> Result<Shown<'a>, Error> {
    if let Some(formatted) = &resource.formatted {
        return load_text(formatted, &resource.uri, contents).map(Shown::Text);
    }
    match &resource.content {
        Payload::Inline(ResourceContent::Text(text)) => Ok(Shown::Text(text.into())),
        Payload::Inline(ResourceContent::Blob(bytes)) => Ok(Shown::Binary(bytes.into())),
        Payload::Stored(blob) => Ok(match load(blob, &resource.uri, contents)? {
            ResourceContent::Text(text) => Shown::Text(text.into()),
            ResourceContent::Blob(bytes) => Shown::Binary(bytes.into()),
        }),
    }
}

/// Loads text; `subject` names it in errors.
pub(crate) fn load_text<'a>(
    text: &'a Payload<String>,
    subject: &str,
    contents: &mut dyn Contents,
) -> Result<Cow<'a, str>, Error> {
    match text {
        Payload::Inline(text) => Ok(text.into()),
        Payload::Stored(blob) => match load(blob, subject, contents)? {
            ResourceContent::Text(text) => Ok(text.into()),
            ResourceContent::Blob(bytes) => {
                let text = String::from_utf8(bytes);
                text.map(Cow::Owned)
                    .map_err(|error| load_error(subject, error.utf8_error().into()))
            }
        },
    }
}

/// Loads an image or a sound; `subject` names it in errors.
pub(crate) fn load_media<'a>(
    media: &'a Media<Payload<Vec<u8>>>,
    subject: &str,
    contents: &mut dyn Contents,
) -> Result<Cow<'a, [u8]>, Error> {
    match &media.data {
        Payload::Inline(bytes) => Ok(bytes.into()),
        Payload::Stored(blob) => load_bytes(blob, subject, contents).map(Cow::Owned),
    }
}

/// Loads a payload as bytes; `subject` names it in errors.
fn load_bytes(
    blob: &BlobRef,
    subject: &str,
    contents: &mut dyn Contents,
) -> Result<Vec<u8>, Error> {
    load(blob, subject, contents).map(ResourceContent::into_bytes)
}

/// Loads a payload; `subject` names it in errors.
fn load(
    blob: &BlobRef,
    subject: &str,
    contents: &mut dyn Contents,
) -> Result<ResourceContent, Error> {
    contents
        .load(blob)
        .map_err(|source| load_error(subject, source))
}

fn load_error(subject: &str, source: Box<dyn StdError + Send + Sync>) -> Error {
    Error::Load {
        subject: subject.to_owned(),
        source,
    }
}
