//! What the encoders of several formats share: small pieces of JSON and the words for what is not shown.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use jp_conversation::ToolCallRequest;
use jp_resource::Snapshot;
use serde::Serialize;

use crate::{Error, json::JsonText};

/// Stands before what a failed tool returned.
pub const ERROR_LINE: &str = "The tool reported an error:\n";
/// The images that models take.
pub(crate) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
pub(crate) const PDF: &str = "application/pdf";
/// The type of content that has none.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// Writes a comma, but for the first time.
#[derive(Default)]
pub(crate) struct Separator {
    is_due: bool,
}

impl Separator {
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.is_due, true) {
            out.write_all(b",")
        } else {
            Ok(())
        }
    }
}

/// Puts each text on a line of its own.
#[derive(Default)]
pub(crate) struct LineBreak {
    is_due: bool,
}

impl LineBreak {
    pub(crate) fn push(&mut self, text: &str, out: &mut JsonText<'_>) -> io::Result<()> {
        let is_due = !text.is_empty() && !text.ends_with('\n');
        out.push(if std::mem::replace(&mut self.is_due, is_due) {
            "\n"
        } else {
            ""
        })?;
        out.push(text)
    }
}

pub(crate) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> Result<(), Error> {
    Ok(serde_json::to_writer(out, value).map_err(io::Error::from)?)
}

/// Writes an object without its closing brace: more fields follow.
pub(crate) fn write_head(head: &impl Serialize, out: &mut dyn Write) -> Result<(), Error> {
    let mut json = serde_json::to_vec(head).map_err(io::Error::from)?;
    json.pop();
    Ok(out.write_all(&json)?)
}

/// Writes a `data:` URL (RFC 2397) as a JSON string; `mime` is one of those that a format takes.
pub(crate) fn write_data_url(mime: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\"data:{mime};base64,")?;
    write_base64(bytes, out)?;
    out.write_all(b"\"")
}

/// Writes bytes as base64 (RFC 4648 §4).
pub(crate) fn write_base64(bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut encoder = EncoderWriter::new(out, &STANDARD);
    encoder.write_all(bytes)?;
    encoder.finish().map(|_| ())
}

/// Returns whether there is nothing in a text; the Messages API would refuse it.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns what a resource is called in notes.
pub(crate) fn subject(resource: &Snapshot) -> String {
    resource.name.as_ref().unwrap_or(&resource.uri).clone()
}

/// Returns the last segment of a resource's name, or of its URI.
pub(crate) fn file_name(resource: &Snapshot) -> &str {
    let path = resource.name.as_deref().unwrap_or(&resource.uri);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// How many characters the name of a called tool may have in most APIs.
const LONGEST_NAME: usize = 64;

/// Returns the name of a call as it goes back: models make names up, and the APIs refuse those that no tool can have.
pub(crate) fn name_of(call: &ToolCallRequest) -> Cow<'_, str> {
    name_within(call, LONGEST_NAME)
}

/// Like [`name_of`], where an API has a longest name of its own.
pub(crate) fn name_within(call: &ToolCallRequest, longest: usize) -> Cow<'_, str> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    let name = call.name.as_str();
    match name {
        "" => "_".into(),
        name if name.len() <= longest && name.chars().all(fits) => name.into(),
        name => name
            .chars()
            .take(longest)
            .map(|character| if fits(character) { character } else { '_' })
            .collect(),
    }
}

pub(crate) fn result_of(call: &ToolCallRequest) -> String {
    format!("a result of `{}`", call.name)
}

/// Returns the last part of a name or URI.
pub(crate) fn filename(subject: &str) -> &str {
    subject.rsplit(['/', '\\']).next().unwrap_or(subject)
}

/// Returns the [`essence`] of content; of unknown content the general type.
pub(crate) fn essence_of(mime: Option<&str>) -> String {
    essence(mime.unwrap_or(UNKNOWN))
}

/// Returns type and subtype, without parameters, in lower case.
pub(crate) fn essence(mime: &str) -> String {
    mime.split(';')
        .next()
        .unwrap_or(mime)
        .trim()
        .to_ascii_lowercase()
}
