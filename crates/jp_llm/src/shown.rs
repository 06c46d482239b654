//! What a model is shown of stored content, loaded at the moment it is written.

use std::{borrow::Cow, error::Error as StdError};

use jp_resource::{BlobRef, Payload, ResourceContent, Snapshot};
use jp_tool::Media;

use crate::{Contents, Error};

/// What a model is shown of a resource.
pub(crate) enum Shown<'a> {
    /// The formatted text, or content that is text.
    Text(Cow<'a, str>),
    /// Other content.
    Binary(Cow<'a, [u8]>),
}

/// Loads a resource's formatted text, or its content where there is none.
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
        Payload::Stored(blob) => {
            let bytes = load_bytes(blob, &resource.uri, contents)?;
            match ResourceContent::from_blob(blob, bytes) {
                Ok(ResourceContent::Text(text)) => Ok(Shown::Text(text.into())),
                Ok(ResourceContent::Blob(bytes)) => Ok(Shown::Binary(bytes.into())),
                Err(error) => Err(load_error(&resource.uri, error.into())),
            }
        }
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
        Payload::Stored(blob) => {
            let text = String::from_utf8(load_bytes(blob, subject, contents)?);
            text.map(Cow::Owned).map_err(|error| load_error(subject, error.utf8_error().into()))
        }
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

/// Loads bytes; `subject` names them in errors.
pub(crate) fn load_bytes(
    blob: &BlobRef,
    subject: &str,
    contents: &mut dyn Contents,
) -> Result<Vec<u8>, Error> {
    contents.load(blob).map_err(|source| load_error(subject, source))
}

fn load_error(subject: &str, source: Box<dyn StdError + Send + Sync>) -> Error {
    Error::Load { subject: subject.to_owned(), source }
}
