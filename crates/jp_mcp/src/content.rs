//! What a server sends as content, read from the JSON that came, block by block.

use std::time::Duration;

use jp_resource::{Annotations, Resource, ResourceContent, mime};
use jp_tool::{ContentBlock, ToolResponse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Fault, Limits, raw::quoted};

/// The prefix of what jp notes in `_meta`, which no server does.
const OWN: &str = "computer.jp/";
const ERROR: &str = "computer.jp/error";

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Returned {
    pub(crate) response: ToolResponse,
    /// What stands for a resource without its content, with where in [`ToolResponse::content`] it belongs, in order.
    pub(crate) links: Vec<(usize, ResourceLink)>,
    /// How many links were the same as one before them.
    repeated: usize,
    /// What was passed over, and why.
    pub(crate) warnings: Vec<String>,
}

/// A resource that a server names without its content (MCP, "Resource Links").
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceLink {
    pub(crate) uri: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) annotations: Option<Annotations>,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<Map<String, Value>>,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Its contents, in the server's order, with the server's URIs byte for byte.
    pub contents: Vec<Resource>,
    /// How long it may be taken for current, as the server says (MCP 2026-07-28, `ttlMs`).
    pub ttl: Option<Duration>,
    /// What was passed over, and why.
    pub warnings: Vec<String>,
}

/// Reads the result of `tools/call`.
pub(crate) fn result(answer: Value, limits: &Limits) -> Result<Returned, Fault> {
    let Value::Object(mut object) = answer else {
        return Err(Fault::Malformed("its result is no object".to_owned()));
    };
    let blocks = match object.insert("content".to_owned(), Value::Array(Vec::new())) {
        Some(Value::Array(blocks)) => blocks,
        // Some servers leave it out where there is structured content.
        None | Some(Value::Null) if object.contains_key("structuredContent") => Vec::new(),
        _ => return Err(Fault::Malformed("its result has no `content`".to_owned())),
    };
    if blocks.len() > limits.blocks {
        return Err(Fault::TooMany { what: "blocks in one result", limit: limits.blocks });
    }
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.retain(|key, _| !key.starts_with(OWN) || key == ERROR);
    }
    let read = ToolResponse::from_json(Value::Object(object));
    let (response, warnings) = read.map_err(|error| Fault::Malformed(error.to_string()))?;
    let mut returned = Returned { response, warnings, ..Returned::default() };
    for (index, block) in blocks.into_iter().enumerate() {
        returned.take(block, limits).unwrap_or_else(|reason| {
            returned.warnings.push(format!("content block {} was passed over: {reason}", index + 1));
        });
    }
    if returned.repeated > 0 {
        let count = returned.repeated;
        returned.warnings.push(format!("{count} of its links were passed over: each is there before"));
    }
    returned.add_structured(limits);
    Ok(returned)
}

impl Returned {
    fn take(&mut self, mut block: Value, limits: &Limits) -> Result<(), String> {
        match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => {
                let link = ResourceLink::deserialize(&block).map_err(|error| error.to_string())?;
                if self.links.iter().any(|(_, other)| *other == link) {
                    self.repeated += 1;
                } else {
                    self.links.push((self.response.content.len(), link));
                }
                return Ok(());
            }
            // Only local tools ask in their results.
            Some("question") => return Err("unknown block type `question`".to_owned()),
            _ => {}
        }
        without_formatted(&mut block);
        let mut block = ContentBlock::from_json(block).map_err(|error| error.to_string())?;
        check_length(&block, limits)?;
        if let ContentBlock::Resource { resource, .. } = &mut block {
            as_text(resource);
        }
        self.response.content.push(block);
        Ok(())
    }

    /// Adds structured content as text, unless the text says the same. What is too long is passed over.
    fn add_structured(&mut self, limits: &Limits) {
        let Some(structured) = &self.response.structured_content else { return };
        let length = structured.to_string().len();
        if length > limits.text {
            let limit = limits.text;
            self.warnings.push(format!(
                "its structured content was passed over: it has {length} bytes, and {limit} are the most"
            ));
            self.response.structured_content = None;
            return;
        }
        // Alone it is shown in any case.
        if self.response.content.is_empty() && self.links.is_empty() {
            return;
        }
        if !repeats(&self.response.content, structured) {
            self.response.content.push(ContentBlock::text(structured.to_string()));
        }
    }
}

/// Returns whether texts say what structured content says, as MCP asks servers to.
fn repeats(content: &[ContentBlock], structured: &Value) -> bool {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => Some(text.clone()),
        _ => None,
    };
    let texts: Vec<String> = content.iter().filter_map(text).collect();
    let says = |text: &String, value: &Value| {
        value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
    };
    // Common servers wrap what is no object, under whatever name, and lists may have a block an item.
    let only = structured.as_object().filter(|object| object.len() == 1);
    let inner = only.and_then(|object| object.values().next());
    let each = |items: &Vec<Value>| {
        items.len() == texts.len() && items.iter().zip(&texts).all(|(item, text)| says(text, item))
    };
    texts.iter().any(|text| says(text, structured) || inner.is_some_and(|inner| says(text, inner)))
        || inner.and_then(Value::as_array).is_some_and(each)
}

/// Removes what only jp's own tools say of a resource.
fn without_formatted(block: &mut Value) {
    for at in ["", "/resource"] {
        if let Some(Value::Object(object)) = block.pointer_mut(at) {
            object.remove("formatted");
        }
    }
}

/// Takes a blob for the text that its type says it is, where it can be: its bytes, and so its checksum, stay what they are.
/// Without a type, what can be text and has no byte of zero is some.
fn as_text(resource: &mut Resource) {
    let ResourceContent::Blob(bytes) = &resource.content else { return };
    let is_text = resource.mime_type.as_deref().map_or_else(|| !bytes.contains(&0), mime::is_text);
    if let (true, Ok(text)) = (is_text, str::from_utf8(bytes)) {
        resource.content = ResourceContent::Text(text.to_owned());
    }
}

fn check_length(block: &ContentBlock, limits: &Limits) -> Result<(), String> {
    let (length, limit) = match block {
        ContentBlock::Text { text, .. } => (text.len(), limits.text),
        ContentBlock::Resource { resource, .. } => {
            return check_resource(resource, limits).map_err(|fault| fault.to_string());
        }
        ContentBlock::Image(media) | ContentBlock::Audio(media) => (media.data.len(), limits.blob),
        ContentBlock::Question { .. } => (0, 0),
        ContentBlock::Unknown(never) => match *never {},
    };
    if length > limit { Err(format!("it has {length} bytes, and {limit} are the most")) } else { Ok(()) }
}

fn check_resource(resource: &Resource, limits: &Limits) -> Result<(), Fault> {
    let limit = match &resource.content {
        ResourceContent::Text(_) => limits.text,
        ResourceContent::Blob(_) => limits.blob,
    };
    if resource.content.as_bytes().len() > limit {
        return Err(Fault::TooLong { what: format!("the content of {}", quoted(&resource.uri)), limit });
    }
    Ok(())
}

/// Reads the result of `resources/read`.
pub(crate) fn contents(answer: &Value, limits: &Limits) -> Result<Read, Fault> {
    let Some(all) = answer.get("contents").and_then(Value::as_array) else {
        return Err(Fault::Malformed("its result has no `contents`".to_owned()));
    };
    if all.len() > limits.blocks {
        return Err(Fault::TooMany { what: "contents of one resource", limit: limits.blocks });
    }
    let mut read = Read { contents: Vec::new(), ttl: ttl(answer), warnings: Vec::new() };
    for contents in all {
        let mut block = json!({"resource": contents});
        without_formatted(&mut block);
        match Resource::deserialize(&block["resource"]) {
            Ok(mut resource) => {
                check_resource(&resource, limits)?;
                as_text(&mut resource);
                read.contents.push(resource);
            }
            Err(error) => {
                let uri = contents.get("uri").and_then(Value::as_str).unwrap_or_default();
                read.warnings.push(format!("the content of {} can't be read: {error}", quoted(uri)));
            }
        }
    }
    match (read.contents.is_empty(), read.warnings.first()) {
        (true, Some(warning)) => Err(Fault::Malformed(warning.clone())),
        _ => Ok(read),
    }
}

fn ttl(answer: &Value) -> Option<Duration> {
    let milliseconds = answer.get("ttlMs")?.as_u64()?;
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
}

impl ResourceLink {
    /// Describes what was not read, for a model.
    pub(crate) fn describe(&self, reason: &str) -> String {
        let name = self.title.as_ref().or(self.name.as_ref()).filter(|name| **name != self.uri);
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        let facts =
            [self.mime_type.clone(), self.size.map(|size| format!("{size} bytes")), self.description.clone()];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        format!("A link to the resource {name}{}{facts}. {reason}", self.uri)
    }

    /// Makes a block of the content that it led to, with what the content itself does not say. Names stay with attachments.
    pub(crate) fn block(&self, mut resource: Resource) -> ContentBlock {
        if resource.mime_type.is_none() {
            resource.mime_type.clone_from(&self.mime_type);
        }
        if resource.annotations.is_none() {
            resource.annotations.clone_from(&self.annotations);
        }
        if resource.title.is_none() {
            resource.title.clone_from(&self.title);
        }
        if resource.description.is_none() {
            resource.description.clone_from(&self.description);
        }
        as_text(&mut resource);
        ContentBlock::Resource { resource, meta: self.meta.clone() }
    }
}

/// Fills in what a resource's content itself does not say from how the server lists it.
pub(crate) fn complete(resource: &mut Resource, listed: &crate::ResourceInfo) {
    let fill = |field: &mut Option<String>, value: &Option<String>| {
        if field.is_none() {
            field.clone_from(value);
        }
    };
    fill(&mut resource.name, &Some(listed.name.clone()));
    fill(&mut resource.title, &listed.title);
    fill(&mut resource.description, &listed.description);
    fill(&mut resource.mime_type, &listed.mime_type);
    if resource.annotations.is_none() {
        resource.annotations.clone_from(&listed.annotations);
    }
    as_text(resource);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Elicitation, LogMessage, Progress, raw};

    fn read(answer: Value) -> Returned {
        result(answer, &Limits::USUAL).unwrap()
    }

    /// MCP 2025-11-25 "Tool Result": a block of each type, with all that is optional once.
    #[test]
    fn blocks_keep_their_json() {
        let annotations =
            json!({"audience": ["user"], "priority": 0.9, "lastModified": "2025-05-03T14:30:00Z"});
        let blocks = json!([
            {"type": "text", "text": "x", "annotations": annotations, "_meta": {"k": 1}},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png", "annotations": annotations},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "_meta": {"k": {"n": null}}},
            {"type": "resource", "annotations": annotations, "_meta": {"outer": 1}, "resource": {
                "uri": "file:///a.png", "mimeType": "image/png", "blob": "iVBORw==", "_meta": {"inner": 1},
            }},
        ]);
        let returned = read(json!({"content": blocks, "resultType": "complete", "ttlMs": 5}));
        assert_eq!(serde_json::to_value(&returned.response.content).unwrap(), blocks);
        assert!(returned.warnings.is_empty());
    }

    #[test]
    fn annotations_inside_the_resource_are_kept_as_well() {
        let inside = json!({"uri": "a:b", "text": "x", "annotations": {"priority": 0.7}});
        let returned = read(json!({"content": [{"type": "resource", "resource": inside}]}));
        let ContentBlock::Resource { resource, .. } = &returned.response.content[0] else {
            panic!("{returned:?}")
        };
        assert_eq!(resource.annotations.as_ref().unwrap().priority, Some(0.7));
    }

    #[test]
    fn block_that_can_not_be_read_costs_itself() {
        let returned = read(json!({"content": [
            {"type": "hologram"}, {"type": "text", "text": "a"}, {"type": "resource_link"}, 1,
            {"type": "question", "question": {"id": "q", "text": "?", "schema": {}}},
            {"type": "image", "data": "?", "mimeType": "image/png"}, {"type": "text", "text": "b"},
        ]}));
        assert_eq!(returned.response.content, ["a", "b"].map(ContentBlock::text));
        let numbers: Vec<_> = returned.warnings.iter().map(|warning| &warning[..15]).collect();
        assert_eq!(numbers, [1, 3, 4, 5, 6].map(|number| format!("content block {number}")));
    }

    #[test]
    fn what_jp_alone_says_is_dropped() {
        let meta = json!({"a": 1, "computer.jp/server": "other", "computer.jp/error": {"transient": true, "trace": []}});
        let block = json!({"type": "resource", "formatted": "f", "resource": {"uri": "a:b", "text": "x", "formatted": "g"}});
        let Returned { response, .. } = read(json!({"content": [block], "isError": true, "_meta": meta}));
        let ContentBlock::Resource { resource, .. } = &response.content[0] else { panic!("{response:?}") };
        assert_eq!((resource.formatted.as_ref(), response.meta.len()), (None, 1));
        assert!(response.error.unwrap().transient);
    }

    #[test]
    fn structured_content_alone_needs_no_blocks() {
        let returned = read(json!({"structuredContent": {"n": 1}}));
        assert_eq!(returned.response.structured_content, Some(json!({"n": 1})));
        assert!(result(json!({}), &Limits::USUAL).is_err() && result(json!([]), &Limits::USUAL).is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let word = prop::sample::select(vec![
            "type",
            "text",
            "resource",
            "image",
            "resource_link",
            "uri",
            "blob",
            "data",
            "mimeType",
            "content",
            "contents",
            "structuredContent",
            "isError",
            "_meta",
            "annotations",
            "ttlMs",
            "mode",
            "url",
            "form",
            "message",
            "requestedSchema",
            "progress",
            "total",
            "level",
            "elicitations",
            "name",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            word.clone().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((word.clone().prop_map(str::to_owned), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_message_panics(json in any_json(), id in 0i64..3) {
            _ = result(json.clone(), &Limits::USUAL);
            _ = contents(&json, &Limits::USUAL);
            _ = Elicitation::read(&json);
            _ = LogMessage::read(&json);
            _ = Progress::read(&json);
            let raw = raw::Raw::default();
            _ = raw.received(json.clone());
            _ = raw.received(json!({"jsonrpc": "2.0", "id": id, "result": json}));
            _ = raw.received(json!({"jsonrpc": "2.0", "id": json, "method": json, "params": json}));
        }

        #[test]
        fn values_are_counted_whatever_the_text_is(text in "\\PC{0,40}") {
            let json = json!([text, {"a": text}]).to_string();
            prop_assert_eq!(raw::values(json.as_bytes()), 3);
        }
    }
}
