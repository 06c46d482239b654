//! Small things that the encoders of several formats share: media types, labels, and names of calls.

use std::{borrow::Cow, io};

use jp_conversation::ToolCallRequest;
use jp_resource::Snapshot;
use serde::Serialize;

use crate::json::JsonText;

/// Precedes the result of a failed tool.
pub const ERROR_LINE: &str = "The tool reported an error:\n";
/// The images that models take.
pub(crate) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
pub(crate) const PDF: &str = "application/pdf";
/// The media type of content that has none.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// A message of nothing but text, as Chat Completions and Ollama want it.
#[derive(Serialize)]
pub(crate) struct PlainMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a str,
}

/// A cache mark of Anthropic's, which OpenRouter passes on: the provider caches the request up to the end of the part
/// that has it.
#[derive(Serialize)]
pub(crate) struct CacheControl {
    r#type: &'static str,
}

/// A mark without a `ttl`, which lasts 5 minutes.
pub(crate) const EPHEMERAL: CacheControl = CacheControl {
    r#type: "ephemeral",
};

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

/// Returns the name of a resource in notes.
pub(crate) fn subject(resource: &Snapshot) -> String {
    resource.name.as_ref().unwrap_or(&resource.uri).clone()
}

/// Returns the last segment of a name or URI.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Most characters that the name of a called tool may have in most APIs.
const LONGEST_NAME: usize = 64;

/// Returns the name of a call as it goes back: models make names up, and the APIs refuse those that no tool can have.
pub(crate) fn sendable_name(call: &ToolCallRequest) -> Cow<'_, str> {
    sendable_name_within(call, LONGEST_NAME)
}

/// Like [`sendable_name`], if an API has a longest name of its own.
pub(crate) fn sendable_name_within(call: &ToolCallRequest, longest: usize) -> Cow<'_, str> {
    let name = call.name.as_str();
    match name {
        "" => "_".into(),
        name if name.len() <= longest && name.chars().all(is_word) => name.into(),
        name => name.chars().take(longest).map(replace_foreign).collect(),
    }
}

/// Returns a character that names and ids may have in its place: itself, or `_`.
pub(crate) fn replace_foreign(character: char) -> char {
    if is_word(character) { character } else { '_' }
}

/// Returns whether names and ids may have a character.
fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-".contains(character)
}

/// Returns the label of a call's result in notes.
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
