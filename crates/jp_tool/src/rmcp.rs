//! Conversions from rmcp's tool types, and back (MCP 2025-11-25 and 2026-07-28 "Tools", "Elicitation").
//!
//! A block that is none of ours costs itself, never the result; a link is handed on, to be read. With one block
//! that rmcp can't read there is no [`CallToolResult`] at all: the server's JSON comes as a [`CustomResult`], and
//! is taken too.

use base64::{Engine, engine::general_purpose::STANDARD};
use jp_resource::{Annotations, McpContentsError, Resource, decode_base64};
use rmcp::model::{
    self as mcp, AudioContent, CallToolResult, CustomResult, ElicitRequestParams, EmbeddedResource,
    ImageContent, MetaObject, TextContent,
};
use serde_json::{Map, Value};

use crate::{ContentBlock, InputRequest, Media, ResponseError, ToolResponse};

/// A server's result as ours, with what of it is not in the response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpResponse {
    /// The response, its blocks in the server's order.
    pub response: ToolResponse,
    /// The blocks left out, in the server's order.
    pub skipped: Vec<Skipped>,
    /// What else was passed over, such as a malformed `computer.jp/status`.
    pub warnings: Vec<String>,
}

/// A block that is not in the response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("content block {} skipped: {reason}", index + 1)]
pub struct Skipped {
    /// Its place among the server's blocks, from 0.
    pub index: usize,
    /// Where in [`ToolResponse::content`] what stands for it belongs. Put in from the last to the first, the
    /// others stay right.
    pub place: usize,
    /// What it is.
    pub reason: Unconverted,
}

/// Why a server's block is no [`ContentBlock`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unconverted {
    /// It only names a resource, which `resources/read` gives.
    #[error("`resource_link` to {:?}", .0.uri)]
    ResourceLink(Box<ResourceLink>),
    /// Its resource can't be read.
    #[error(transparent)]
    Contents(#[from] McpContentsError),
    /// The image or sound can't be decoded.
    #[error("`data`: {0}")]
    Base64(String),
    /// rmcp knows a type that this version does not.
    #[error("unknown block type")]
    UnknownType,
    /// rmcp can't read it: an unknown type, a missing or mistyped field.
    #[error("{0}")]
    Malformed(String),
}

/// A resource that a server names without its content (MCP 2025-11-25 "Resource Links").
///
/// All that MCP has but the icons.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLink {
    /// What to read.
    pub uri: String,
    /// Short name.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// What the resource is.
    pub description: Option<String>,
    /// MIME type of the content.
    pub mime_type: Option<String>,
    /// Length of the content in bytes.
    pub size: Option<u64>,
    /// MCP's hints.
    pub annotations: Option<Annotations>,
    /// MCP's `_meta` of the link.
    pub meta: Option<Map<String, Value>>,
}

/// A question has no form in MCP's results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("question {id:?} has no form in an MCP result")]
pub struct QuestionError {
    /// The question.
    pub id: String,
}

/// Why a server's elicitation is no [`InputRequest`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElicitationError {
    /// The person is to go to a page; what they do there is not an answer to us.
    #[error("elicitation asks to visit {url:?}")]
    Url {
        /// What the server says about it.
        message: String,
        /// The page.
        url: String,
        /// The server's name for the elicitation; empty from MCP 2026-07-28 on.
        id: String,
    },
    /// rmcp knows a mode that this version does not.
    #[error("elicitation of an unknown mode")]
    UnknownMode,
}

/// `resultType` is the protocol's and is not kept.
impl From<CallToolResult> for McpResponse {
    fn from(result: CallToolResult) -> Self {
        let fields = [
            ("content", Some(Value::Array(Vec::new()))),
            ("structuredContent", result.structured_content),
            ("isError", result.is_error.map(Value::Bool)),
            ("_meta", inner(result.meta).map(Value::Object)),
        ];
        let present = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        // jp's `_meta` fields are read the way a local tool's are.
        let read = ToolResponse::from_json(Value::Object(present.collect())).expect("`content` is an array");
        Self::with_blocks(read, result.content.into_iter().map(ContentBlock::try_from))
    }
}

/// Reads the answer to `tools/call` that rmcp could make nothing of, block by block.
impl TryFrom<CustomResult> for McpResponse {
    type Error = ResponseError;

    fn try_from(CustomResult(value): CustomResult) -> Result<Self, Self::Error> {
        let Value::Object(mut object) = value else { return Err(ResponseError::NoContent) };
        let Some(Value::Array(blocks)) = object.insert("content".to_owned(), Value::Array(Vec::new())) else {
            return Err(ResponseError::NoContent);
        };
        let read = ToolResponse::from_json(Value::Object(object))?;
        Ok(Self::with_blocks(read, blocks.into_iter().map(read_block)))
    }
}

impl McpResponse {
    fn with_blocks(
        (mut response, warnings): (ToolResponse, Vec<String>),
        blocks: impl Iterator<Item = Result<ContentBlock, Unconverted>>,
    ) -> Self {
        let mut skipped = Vec::new();
        for (index, block) in blocks.enumerate() {
            match block {
                Ok(block) => response.content.push(block),
                Err(reason) => skipped.push(Skipped { index, place: response.content.len(), reason }),
            }
        }
        Self { response, skipped, warnings }
    }
}

fn read_block(block: Value) -> Result<ContentBlock, Unconverted> {
    let block: mcp::ContentBlock =
        serde_json::from_value(block).map_err(|error| Unconverted::Malformed(error.to_string()))?;
    block.try_into()
}

impl TryFrom<mcp::ContentBlock> for ContentBlock {
    type Error = Unconverted;

    fn try_from(block: mcp::ContentBlock) -> Result<Self, Self::Error> {
        match block {
            mcp::ContentBlock::Text(block) => Ok(block.into()),
            mcp::ContentBlock::Image(ImageContent { data, mime_type, annotations, meta, .. }) => {
                read_media(&data, mime_type, annotations, meta).map(Self::Image)
            }
            mcp::ContentBlock::Audio(AudioContent { data, mime_type, annotations, meta, .. }) => {
                read_media(&data, mime_type, annotations, meta).map(Self::Audio)
            }
            mcp::ContentBlock::Resource(block) => Ok(block.try_into()?),
            mcp::ContentBlock::ResourceLink(link) => Err(Unconverted::ResourceLink(Box::new(link.into()))),
            _ => Err(Unconverted::UnknownType),
        }
    }
}

impl From<TextContent> for ContentBlock {
    fn from(block: TextContent) -> Self {
        Self::Text {
            text: block.text,
            annotations: block.annotations.map(Into::into),
            meta: inner(block.meta),
        }
    }
}

/// Keeps both `_meta`: the block's here, that of the contents on the resource.
impl TryFrom<EmbeddedResource> for ContentBlock {
    type Error = McpContentsError;

    fn try_from(mut block: EmbeddedResource) -> Result<Self, Self::Error> {
        let meta = inner(block.meta.take());
        Ok(Self::Resource { resource: Resource::try_from(block)?, meta })
    }
}

fn read_media(
    data: &str,
    mime_type: String,
    annotations: Option<mcp::Annotations>,
    meta: Option<MetaObject>,
) -> Result<Media, Unconverted> {
    let data = decode_base64(data).map_err(Unconverted::Base64)?;
    Ok(Media { data, mime_type, annotations: annotations.map(Into::into), meta: inner(meta) })
}

impl From<mcp::Resource> for ResourceLink {
    fn from(link: mcp::Resource) -> Self {
        Self {
            uri: link.uri,
            name: link.name,
            title: link.title,
            description: link.description,
            mime_type: link.mime_type,
            size: link.size,
            annotations: link.annotations.map(Into::into),
            meta: inner(link.meta),
        }
    }
}

/// Gives what MCP has a field for: a resource's name, title, description and formatted text have none.
impl TryFrom<&ContentBlock> for mcp::ContentBlock {
    type Error = QuestionError;

    fn try_from(block: &ContentBlock) -> Result<Self, Self::Error> {
        Ok(match block {
            ContentBlock::Text { text, annotations, meta } => {
                let mut block = TextContent::new(text);
                (block.annotations, block.meta) = hints(annotations, meta);
                Self::Text(block)
            }
            ContentBlock::Resource { resource, meta } => {
                let mut block = EmbeddedResource::from(resource);
                block.meta = meta.clone().map(MetaObject);
                Self::Resource(block)
            }
            ContentBlock::Image(media) => Self::Image(media.into()),
            ContentBlock::Audio(media) => Self::Audio(media.into()),
            ContentBlock::Question { question } => return Err(QuestionError { id: question.id.clone() }),
        })
    }
}

impl From<&Media> for ImageContent {
    fn from(media: &Media) -> Self {
        let mut block = Self::new(STANDARD.encode(&media.data), &media.mime_type);
        (block.annotations, block.meta) = hints(&media.annotations, &media.meta);
        block
    }
}

impl From<&Media> for AudioContent {
    fn from(media: &Media) -> Self {
        let mut block = Self::new(STANDARD.encode(&media.data), &media.mime_type);
        (block.annotations, block.meta) = hints(&media.annotations, &media.meta);
        block
    }
}

/// The id is `elicitation` and the text the server's message; the schema's properties stay in its order. The
/// request's `_meta` is the transport's.
impl TryFrom<ElicitRequestParams> for InputRequest {
    type Error = ElicitationError;

    fn try_from(request: ElicitRequestParams) -> Result<Self, Self::Error> {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let Ok(Value::Object(schema)) = serde_json::to_value(requested_schema) else {
                    unreachable!("the schema is a struct with text keys");
                };
                Ok(Self::new("elicitation", message, schema))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id: id, .. } => {
                Err(ElicitationError::Url { message, url, id })
            }
            _ => Err(ElicitationError::UnknownMode),
        }
    }
}

fn hints(
    annotations: &Option<Annotations>,
    meta: &Option<Map<String, Value>>,
) -> (Option<mcp::Annotations>, Option<MetaObject>) {
    (annotations.as_ref().map(Into::into), meta.clone().map(MetaObject))
}

fn inner(meta: Option<MetaObject>) -> Option<Map<String, Value>> {
    meta.map(|MetaObject(meta)| meta)
}

#[cfg(test)]
mod tests {
    use jp_resource::ResourceContent;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{Status, ToolError};

    fn read_result(value: Value) -> McpResponse {
        serde_json::from_value::<CallToolResult>(value).unwrap().into()
    }

    fn annotations() -> Value {
        json!({"audience": ["user"], "priority": 0.9, "lastModified": "2025-05-03T14:30:00Z"})
    }

    /// MCP 2025-11-25 "Tools", "Tool Result": one example a content type, with every optional field once.
    fn blocks_of_the_specification() -> Vec<Value> {
        vec![
            json!({"type": "text", "text": "Tool result text"}),
            json!({"type": "text", "text": "x", "annotations": annotations(), "_meta": {"k": 1}}),
            json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png", "annotations": annotations()}),
            json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "_meta": {"k": {"n": null}}}),
            json!({"type": "resource", "resource": {
                "uri": "file:///project/src/main.rs",
                "mimeType": "text/x-rust",
                "text": "fn main() {\n    println!(\"Hello world!\");\n}",
            }}),
            json!({"type": "resource", "annotations": annotations(), "_meta": {"outer": 1}, "resource": {
                "uri": "file:///example.png", "mimeType": "image/png", "blob": "iVBORw==", "_meta": {"inner": 1},
            }}),
        ]
    }

    #[test]
    fn blocks_of_the_specification_keep_their_json() {
        for value in blocks_of_the_specification() {
            let block = read_block(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&block).unwrap(), value);
            let back = serde_json::to_string(&mcp::ContentBlock::try_from(&block).unwrap()).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&back).unwrap(), value);
        }
    }

    #[test]
    fn blocks_read_through_rmcp_and_directly_are_equal() {
        for value in blocks_of_the_specification() {
            assert_eq!(read_block(value.clone()).unwrap(), ContentBlock::from_json(value).unwrap());
        }
    }

    /// MCP's example of an embedded resource has them there, its schema does not; rmcp goes by the schema.
    #[test]
    fn annotations_inside_the_resource_are_lost_by_rmcp() {
        let block = read_block(json!({
            "type": "resource",
            "resource": {"uri": "a:b", "text": "x", "annotations": {"priority": 0.7}},
        }));
        let plain = Resource::new("a:b", ResourceContent::Text("x".into()));
        assert_eq!(block, Ok(ContentBlock::resource(plain)));
    }

    #[test]
    fn result_keeps_error_structure_and_meta() {
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
        let McpResponse { response, skipped, warnings } = read_result(value.clone());
        assert_eq!((skipped, warnings), (vec![], vec![]));
        assert_eq!(response.error, Some(ToolError { transient: true, trace: vec!["io error".into()] }));
        assert_eq!(response.status, Some(Status::Stopped));
        assert_eq!(serde_json::to_value(&response).unwrap(), value);
    }

    #[test]
    fn structured_content_that_is_null_is_not_absent() {
        let null = read_result(json!({"content": [], "structuredContent": null, "resultType": "complete"}));
        assert_eq!(null.response.structured_content, Some(Value::Null));
        assert_eq!(read_result(json!({"content": []})), McpResponse::default());
    }

    #[test]
    fn unusable_block_costs_only_itself() {
        let read = read_result(json!({
            "content": [
                {"type": "image", "data": "?", "mimeType": "image/png"},
                {"type": "text", "text": "a"},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "?"}},
                {"type": "text", "text": "b"},
            ],
            "_meta": {"computer.jp/status": "asleep"},
        }));
        assert_eq!(read.response.content, [ContentBlock::text("a"), ContentBlock::text("b")]);
        let places: Vec<_> = read.skipped.iter().map(|skipped| (skipped.index, skipped.place)).collect();
        assert_eq!(places, [(0, 0), (2, 1), (3, 1)]);
        let messages: Vec<_> = read.skipped.iter().map(ToString::to_string).chain(read.warnings).collect();
        assert_eq!(
            messages,
            [
                "content block 1 skipped: `data`: invalid base64: Invalid symbol 63, offset 0.",
                "content block 3 skipped: `resource_link` to \"file:///a\"",
                "content block 4 skipped: contents of \"file:///b\": invalid base64: Invalid symbol 63, offset 0.",
                "`computer.jp/status` ignored: unknown variant `asleep`, expected one of `running`, `waiting`, `stopped`",
            ]
        );
    }

    /// MCP 2025-11-25 "Tools", "Resource Links".
    #[test]
    fn resource_link_carries_what_reading_it_needs() {
        let link = read_block(json!({
            "type": "resource_link",
            "uri": "file:///project/src/main.rs",
            "name": "main.rs",
            "title": "Main",
            "description": "Primary application entry point",
            "mimeType": "text/x-rust",
            "size": 42,
            "icons": [{"src": "https://example.com/icon.png"}],
            "annotations": {"priority": 0.9},
            "_meta": {"k": 1},
        }));
        let expected = ResourceLink {
            uri: "file:///project/src/main.rs".into(),
            name: "main.rs".into(),
            title: Some("Main".into()),
            description: Some("Primary application entry point".into()),
            mime_type: Some("text/x-rust".into()),
            size: Some(42),
            annotations: Some(Annotations { priority: Some(0.9), ..Annotations::default() }),
            meta: Some(Map::from_iter([("k".into(), json!(1))])),
        };
        assert_eq!(link, Err(Unconverted::ResourceLink(Box::new(expected))));
    }

    #[test]
    fn block_that_rmcp_refuses_costs_only_itself() {
        let read: mcp::ServerResult = serde_json::from_value(json!({
            "resultType": "complete",
            "content": [
                {"type": "video", "data": ""},
                {"type": "text", "text": 1},
                {"type": "resource", "resource": {"uri": "a:b"}},
                {"type": "text", "text": "a"},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
            ],
            "isError": true,
            "_meta": {"k": 1},
        }))
        .unwrap();
        let mcp::ServerResult::CustomResult(result) = read else { panic!("{read:?}") };
        let read = McpResponse::try_from(result).unwrap();
        let meta = Map::from_iter([("k".into(), json!(1))]);
        assert_eq!(read.response, ToolResponse { meta, ..ToolResponse::failed("a") });
        let messages: Vec<_> = read.skipped.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "content block 1 skipped: unknown variant `video`, expected one of `text`, `image`, `audio`, `resource`, `resource_link`",
                "content block 2 skipped: invalid type: integer `1`, expected a string",
                "content block 3 skipped: data did not match any variant of untagged enum ResourceContents",
                "content block 5 skipped: `resource_link` to \"file:///a\"",
            ]
        );
    }

    #[test]
    fn custom_result_without_blocks_is_no_response() {
        for value in [json!(1), json!({}), json!({"content": "text"})] {
            assert_eq!(McpResponse::try_from(CustomResult(value)), Err(ResponseError::NoContent));
        }
    }

    #[test]
    fn question_has_no_form_in_mcp() {
        let question =
            ContentBlock::question(InputRequest::new("confirm", "Apply?", crate::AnswerType::Boolean));
        let error = mcp::ContentBlock::try_from(&question).unwrap_err();
        assert_eq!(error.to_string(), "question \"confirm\" has no form in an MCP result");
    }

    /// MCP 2025-11-25 "Elicitation", "Structured Data".
    #[test]
    fn form_elicitation_becomes_a_question_with_its_schema() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Name", "minLength": 1, "default": "Jean"},
                "email": {"type": "string", "format": "email"},
                "age": {"type": "integer", "minimum": 18, "maximum": 120},
                "share": {"type": "number", "minimum": 0.5},
                "agree": {"type": "boolean", "default": false},
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "tags": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["a", "b"]}},
            },
            "required": ["name", "email"],
        });
        for mode in [json!({}), json!({"mode": "form"})] {
            let mut request = json!({"message": "Who are you?", "requestedSchema": schema});
            request.as_object_mut().unwrap().extend(mode.as_object().unwrap().clone());
            let request: ElicitRequestParams = serde_json::from_value(request).unwrap();
            let question = InputRequest::try_from(request).unwrap();
            assert_eq!((&*question.id, &*question.text), ("elicitation", "Who are you?"));
            assert_eq!(Value::Object(question.schema.clone()), schema);
            assert_eq!(names(&question.schema["properties"]), names(&schema["properties"]));
        }
    }

    fn names(properties: &Value) -> Vec<&String> {
        properties.as_object().unwrap().keys().collect()
    }

    /// A keyword that rmcp's schema types don't have, `pattern` here, never gets to us.
    #[test]
    fn unknown_schema_keyword_is_lost_by_rmcp() {
        let request: ElicitRequestParams = serde_json::from_value(json!({
            "message": "?",
            "requestedSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}},
        }))
        .unwrap();
        let question = InputRequest::try_from(request).unwrap();
        assert_eq!(question.schema["properties"], json!({"a": {"type": "string"}}));
    }

    #[test]
    fn url_elicitation_is_no_question() {
        let request: ElicitRequestParams = serde_json::from_value(json!({
            "mode": "url",
            "message": "Please sign in.",
            "url": "https://example.com/connect",
            "elicitationId": "550e8400",
        }))
        .unwrap();
        let (message, url) = ("Please sign in.".into(), "https://example.com/connect".into());
        let expected = ElicitationError::Url { message, url, id: "550e8400".into() };
        assert_eq!(InputRequest::try_from(request), Err(expected));
    }

    fn hint() -> impl Strategy<Value = (Option<Annotations>, Option<Map<String, Value>>)> {
        let priority = (0..=1000_u32).prop_map(|thousandths| f64::from(thousandths) / 1e3);
        let annotations =
            (prop::option::of(priority), any::<Option<String>>()).prop_map(|(priority, last_modified)| {
                Annotations { priority, last_modified, ..Annotations::default() }
            });
        let meta = prop::collection::hash_map(".*", any::<i64>().prop_map(Value::from), 0..3)
            .prop_map(|map| map.into_iter().collect());
        (prop::option::of(annotations), prop::option::of(meta))
    }

    fn media() -> impl Strategy<Value = Media> {
        (any::<Vec<u8>>(), any::<String>(), hint()).prop_map(|(data, mime_type, (annotations, meta))| Media {
            data,
            mime_type,
            annotations,
            meta,
        })
    }

    fn block() -> impl Strategy<Value = ContentBlock> {
        let text = (any::<String>(), hint()).prop_map(|(text, (annotations, meta))| ContentBlock::Text {
            text,
            annotations,
            meta,
        });
        let resource = (any::<String>(), any::<Vec<u8>>(), any::<Option<String>>(), hint(), hint()).prop_map(
            |(uri, bytes, mime_type, (annotations, inner), (_, meta))| {
                let resource = Resource::new(uri, ResourceContent::from_bytes(bytes));
                ContentBlock::Resource {
                    resource: Resource { mime_type, annotations, meta: inner, ..resource },
                    meta,
                }
            },
        );
        prop_oneof![
            text,
            resource,
            media().prop_map(ContentBlock::Image),
            media().prop_map(ContentBlock::Audio)
        ]
    }

    proptest! {
        #[test]
        fn block_survives_rmcp_and_its_json(block in block()) {
            let converted = mcp::ContentBlock::try_from(&block).unwrap();
            prop_assert_eq!(ContentBlock::try_from(converted.clone()), Ok(block.clone()));
            let json = serde_json::to_string(&converted).unwrap();
            prop_assert_eq!(serde_json::to_value(&block).unwrap(), serde_json::from_str::<Value>(&json).unwrap());
            let read: mcp::ContentBlock = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(ContentBlock::try_from(read), Ok(block));
        }
    }
}
