//! Makes the answers for clients: content, and refusals that say what to do instead.

use std::fmt::Display;

use jp_resource::ResourceContent;
use mcp_resources::{Content, ReadError};

/// Converts content to MCP's form.
pub(crate) fn to_content(content: ResourceContent) -> Content {
    match content {
        ResourceContent::Text(text) => Content::text(text),
        ResourceContent::Blob(bytes) => Content::bytes(bytes),
    }
}

/// Refuses a request and says what to do instead.
pub(crate) fn refusal(what: impl Display, instead: &str) -> ReadError {
    ReadError::bad_parameters(format!("{what}; {instead}"))
}
