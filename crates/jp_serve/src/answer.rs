//! What clients receive: content, and refusals that say what to do instead.

use std::fmt::Display;

use jp_resource::ResourceContent;
use mcp_resources::{Content, ReadError};

/// Returns content in the form that MCP has for it.
pub(crate) fn to_content(content: ResourceContent) -> Content {
    match content {
        ResourceContent::Text(text) => Content::text(text),
        ResourceContent::Blob(bytes) => Content::bytes(bytes),
    }
}

/// Says what can't be given, and what to do instead.
pub(crate) fn refusal(what: impl Display, instead: &str) -> ReadError {
    ReadError::bad_parameters(format!("{what}; {instead}"))
}
