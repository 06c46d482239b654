use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};

use crate::ContentBlock;

/// The key of [`ToolResponse::error`] in `_meta`.
const ERROR: &str = "computer.jp/error";
/// The key of [`ToolResponse::status`] in `_meta`.
const STATUS: &str = "computer.jp/status";

/// A tool's answer: MCP's `CallToolResult` with jp's `_meta` fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResponse {
    /// The blocks, in the tool's order.
    pub content: Vec<ContentBlock>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// MCP's `structuredContent`.
    pub structured_content: Option<Value>,
    /// Details of the failure (`computer.jp/error`).
    pub error: Option<ToolError>,
    /// The state of a stateful tool (`computer.jp/status`). If it is absent, the tool has stopped.
    pub status: Option<Status>,
    /// The other keys of `_meta`, unchanged.
    pub meta: Map<String, Value>,
}

/// Details of a failed tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolError {
    /// Whether another attempt may succeed.
    #[serde(default)]
    pub transient: bool,
    /// The chain of causes, outermost first.
    #[serde(default)]
    pub trace: Vec<String>,
}

/// The state of a tool that outlives one call (seed RFD 058, "Stateful tool responses").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Active; there may be partial output.
    Running,
    /// Needs input: the content has questions.
    Waiting,
    /// Finished: the content is the final result.
    Stopped,
}

/// The error of a JSON value that is not a tool response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// There is no `content` array: the output is plain text.
    #[error("no `content` array")]
    NoContent,
}

impl ToolResponse {
    /// Creates a successful response.
    pub fn new(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self {
            content: content.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a failed response.
    pub fn error(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self {
            is_error: true,
            ..Self::new(content)
        }
    }

    /// Creates a failed response from an error message.
    pub fn from_error(text: impl Into<String>) -> Self {
        Self::error([ContentBlock::text(text)])
    }

    /// Reads a response. Skips malformed parts and returns a warning for each.
    pub fn from_json(value: Value) -> Result<(Self, Vec<String>), ResponseError> {
        let Value::Object(mut object) = value else {
            return Err(ResponseError::NoContent);
        };
        let Some(Value::Array(blocks)) = object.remove("content") else {
            return Err(ResponseError::NoContent);
        };
        // Nothing fails after this point, because the rest of the output is still useful.
        let mut warnings = Vec::new();
        let content = read_blocks(blocks, &mut warnings);
        let mut meta: Map<String, Value> =
            read_part(&mut object, "_meta", &mut warnings).unwrap_or_default();
        let response = Self {
            content,
            is_error: read_part(&mut object, "isError", &mut warnings).unwrap_or_default(),
            structured_content: object.remove("structuredContent"),
            error: read_part(&mut meta, ERROR, &mut warnings),
            status: read_part(&mut meta, STATUS, &mut warnings),
            meta,
        };
        Ok((response, warnings))
    }

    /// Returns the complete `_meta`, with [`Self::error`] and [`Self::status`].
    #[must_use]
    pub fn full_meta(&self) -> Map<String, Value> {
        let mut meta = self.meta.clone();
        if let Some(ToolError { transient, trace }) = &self.error {
            meta.insert(
                ERROR.to_owned(),
                json!({"transient": transient, "trace": trace}),
            );
        }
        if let Some(status) = self.status {
            meta.insert(STATUS.to_owned(), status.name().into());
        }
        meta
    }
}

impl Status {
    /// Returns the name of the status in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
        }
    }
}

fn read_blocks(blocks: Vec<Value>, warnings: &mut Vec<String>) -> Vec<ContentBlock> {
    let mut read = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        match ContentBlock::from_json(block) {
            Ok(block) => read.push(block),
            Err(error) => warnings.push(format!("content block {} skipped: {error}", index + 1)),
        }
    }
    read
}

fn read_part<V: serde::de::DeserializeOwned>(
    object: &mut Map<String, Value>,
    key: &str,
    warnings: &mut Vec<String>,
) -> Option<V> {
    let value = object.remove(key).filter(|value| !value.is_null())?;
    serde_json::from_value(value)
        .map_err(|error| warnings.push(format!("`{key}` ignored: {error}")))
        .ok()
}

impl Serialize for ToolResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = self.full_meta();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &self.content)?;
        if let Some(structured) = &self.structured_content {
            map.serialize_entry("structuredContent", structured)?;
        }
        if self.is_error {
            map.serialize_entry("isError", &true)?;
        }
        if !meta.is_empty() {
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_reads_what_it_writes() {
        let value = json!({
            "content": [{"type": "text", "text": "File not found: foo.rs"}],
            "structuredContent": {"n": 1},
            "isError": true,
            "_meta": {
                "other": 1,
                "computer.jp/error": {"transient": true, "trace": ["io error"]},
                "computer.jp/status": "stopped",
            },
        });
        let (response, warnings) = ToolResponse::from_json(value.clone()).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(response.status, Some(Status::Stopped));
        assert!(response.error.as_ref().is_some_and(|error| error.transient));
        assert_eq!(serde_json::to_value(&response).unwrap(), value);
    }

    #[test]
    fn malformed_part_costs_only_itself() {
        let (response, warnings) = ToolResponse::from_json(json!({
            "content": [{"type": "text", "text": "a"}, {"type": "video"}, {"type": "text", "text": "b"}],
            "isError": "yes",
            "_meta": {"computer.jp/status": "asleep"},
        }))
        .unwrap();
        assert_eq!(
            response,
            ToolResponse::new([ContentBlock::text("a"), ContentBlock::text("b")])
        );
        assert_eq!(
            warnings,
            [
                "content block 2 skipped: unknown block type `video`",
                "`isError` ignored: invalid type: string \"yes\", expected a boolean",
                "`computer.jp/status` ignored: unknown variant `asleep`, expected one of `running`, `waiting`, `stopped`",
            ]
        );
    }

    #[test]
    fn output_without_a_content_array_is_not_a_response() {
        for value in [json!("text"), json!({}), json!({"content": "text"})] {
            assert_eq!(
                ToolResponse::from_json(value),
                Err(ResponseError::NoContent)
            );
        }
    }
}
