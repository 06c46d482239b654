//! The items of a server's lists.

use jp_resource::Annotations;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};

use crate::ServerError;

/// The readable part of a list.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The items, in the server's order.
    pub items: Vec<T>,
    /// The skipped items, with reasons.
    pub warnings: Vec<String>,
    /// The reason why the rest is missing, if it is.
    pub cut: Option<ServerError>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            warnings: Vec::new(),
            cut: None,
        }
    }
}

/// A tool that a server offers (MCP, "Tools"). Nothing in it can be trusted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// JSON Schema of its arguments, an object.
    #[serde(deserialize_with = "schema")]
    pub input_schema: Map<String, Value>,
    /// JSON Schema of its structured content; `None` if the server's isn't an object.
    #[serde(default, deserialize_with = "schema_if_any")]
    pub output_schema: Option<Map<String, Value>>,
    /// Hints about its behaviour, which need not be true.
    pub annotations: Option<ToolAnnotations>,
}

/// A server's hints about a tool's behaviour (MCP, "ToolAnnotations").
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolAnnotations {
    /// True if it changes nothing.
    pub read_only_hint: Option<bool>,
    /// True if it may destroy something.
    pub destructive_hint: Option<bool>,
    /// True if calling it again changes nothing more.
    pub idempotent_hint: Option<bool>,
    /// True if it reaches beyond the server.
    pub open_world_hint: Option<bool>,
}

/// A resource that a server lists (MCP, "Resources").
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInfo {
    /// The URI to read.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// MIME type of its content.
    pub mime_type: Option<String>,
    /// Length of its content in bytes.
    pub size: Option<u64>,
    /// MCP's hints.
    pub annotations: Option<Annotations>,
}

/// A template of resources (MCP, "Resource Templates").
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateInfo {
    /// The template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// MIME type of its resources.
    pub mime_type: Option<String>,
}

fn schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let schema = schema_if_any(deserializer)?;
    schema.ok_or_else(|| D::Error::custom("its `inputSchema` is not an object"))
}

fn schema_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Map<String, Value>>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Object(schema) => Some(schema),
        _ => None,
    })
}
