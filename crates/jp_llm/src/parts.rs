//! What the encoders of several formats share: small pieces of JSON and the words for what is not shown.

use std::{borrow::Cow, io};

use jp_conversation::ToolCallRequest;
use jp_resource::Snapshot;
use serde::Serialize;

use crate::json::JsonText;

/// Stands before what a failed tool returned.
pub const ERROR_LINE: &str = "The tool reported an error:\n";
/// The images that models take.
pub(crate) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
pub(crate) const PDF: &str = "application/pdf";
/// The type of content that has none.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// A message of nothing but text, as Chat Completions and Ollama want it.
#[derive(Serialize)]
pub(crate) struct PlainMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a str,
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

/// Returns whether there is nothing in a text; the Messages API would refuse it.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns what a resource is called in notes.
pub(crate) fn subject(resource: &Snapshot) -> String {
    resource.name.as_ref().unwrap_or(&resource.uri).clone()
}

/// Returns the last segment of a name or URI.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// How many characters the name of a called tool may have in most APIs.
const LONGEST_NAME: usize = 64;

/// Returns the name of a call as it goes back: models make names up, and the APIs refuse those that no tool can have.
pub(crate) fn sendable_name(call: &ToolCallRequest) -> Cow<'_, str> {
    sendable_name_within(call, LONGEST_NAME)
}

/// Like [`sendable_name`], where an API has a longest name of its own.
pub(crate) fn sendable_name_within(call: &ToolCallRequest, longest: usize) -> Cow<'_, str> {
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
