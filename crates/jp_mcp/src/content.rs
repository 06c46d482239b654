//! Reads the content in a server's answers, block by block, from the original JSON.

use std::time::Duration;

use jp_resource::{Annotations, Resource, ResourceContent, mime, uri};
use jp_tool::{ContentBlock, ToolResponse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Fault, Limits, raw::quote};

/// The prefix of jp's keys in `_meta`. jp drops such keys of a server, except [`ERROR`] of a result.
const OWN: &str = "computer.jp/";
const ERROR: &str = "computer.jp/error";
/// The key for the fields of the link that led to a block's content, without its URI.
const LINK: &str = "computer.jp/link";
/// The key for a server's fields that this version of jp doesn't know.
const UNKNOWN: &str = "computer.jp/unknown";
/// Fields that jp reads of a result; the others belong to the protocol (MCP 2026-07-28, "Results").
const RESULT_KEYS: [&str; 7] = [
    "content",
    "structuredContent",
    "isError",
    "_meta",
    "resultType",
    "ttlMs",
    "cacheScope",
];
/// Fields that jp reads of a block.
const BLOCK_KEYS: [&str; 7] = [
    "type",
    "text",
    "data",
    "mimeType",
    "resource",
    "annotations",
    "_meta",
];
/// Fields that jp reads of a resource's contents.
const CONTENTS_KEYS: [&str; 8] = [
    "uri",
    "name",
    "title",
    "description",
    "mimeType",
    "text",
    "blob",
    "annotations",
];

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Returned {
    pub(crate) response: ToolResponse,
    /// The links to resources, with their indexes in [`ToolResponse::content`], in order.
    pub(crate) links: Vec<(usize, ResourceLink)>,
    /// The number of links that repeat an earlier one.
    repeated: usize,
    /// The skipped parts, with reasons.
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
    /// The original fields of the link.
    #[serde(skip)]
    whole: Map<String, Value>,
}

/// The contents of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Its contents, in the server's order, with the server's URIs byte for byte.
    pub contents: Vec<Resource>,
    /// The time for which the server considers it current (MCP 2026-07-28, `ttlMs`).
    pub ttl: Option<Duration>,
    /// The skipped parts, with reasons.
    pub warnings: Vec<String>,
}

/// Reads the result of `tools/call`.
pub(crate) fn result(answer: Value, limits: &Limits) -> Result<Returned, Fault> {
    let Value::Object(mut object) = answer else {
        return Err(Fault::Malformed("its result is not an object".to_owned()));
    };
    let blocks = match object.insert("content".to_owned(), Value::Array(Vec::new())) {
        Some(Value::Array(blocks)) => blocks,
        // Some servers leave it out if there is structured content.
        None | Some(Value::Null) if object.contains_key("structuredContent") => Vec::new(),
        _ => return Err(Fault::Malformed("its result has no `content`".to_owned())),
    };
    if blocks.len() > limits.blocks {
        return Err(Fault::TooMany {
            what: "blocks in one result",
            limit: limits.blocks,
        });
    }
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.retain(|key, _| !key.starts_with(OWN) || key == ERROR);
    }
    keep_unknown(&mut object, &RESULT_KEYS);
    let read = ToolResponse::from_json(Value::Object(object));
    let (response, warnings) = read.map_err(|error| Fault::Malformed(error.to_string()))?;
    let mut returned = Returned {
        response,
        warnings,
        ..Returned::default()
    };
    for (index, block) in blocks.into_iter().enumerate() {
        returned.take(block, limits).unwrap_or_else(|reason| {
            returned
                .warnings
                .push(format!("content block {} was skipped: {reason}", index + 1));
        });
    }
    if returned.repeated > 0 {
        let count = returned.repeated;
        returned.warnings.push(format!(
            "{count} of its links were skipped because they repeat earlier ones"
        ));
    }
    returned.add_structured(limits);
    Ok(returned)
}

impl Returned {
    fn take(&mut self, mut block: Value, limits: &Limits) -> Result<(), String> {
        remove_own_fields(&mut block);
        match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => {
                let link = ResourceLink::read(block)?;
                if self.links.iter().any(|(_, other)| *other == link) {
                    self.repeated += 1;
                } else {
                    self.links.push((self.response.content.len(), link));
                }
                return Ok(());
            }
            // Only local tools can ask questions in their results.
            Some("question") => return Err("unknown block type `question`".to_owned()),
            _ => {}
        }
        if let Value::Object(object) = &mut block {
            keep_unknown(object, &BLOCK_KEYS);
        }
        if let Some(Value::Object(contents)) = block.get_mut("resource") {
            keep_unknown(contents, &[&CONTENTS_KEYS[..], &["_meta"]].concat());
        }
        let mut block = ContentBlock::from_json(block).map_err(|error| error.to_string())?;
        check_length(&block, limits)?;
        if let ContentBlock::Resource { resource, .. } = &mut block {
            convert_to_text(resource);
        }
        self.response.content.push(block);
        Ok(())
    }

    /// Adds structured content as text, unless the text repeats it. Drops content that is too long.
    fn add_structured(&mut self, limits: &Limits) {
        let Some(structured) = &self.response.structured_content else {
            return;
        };
        let length = structured.to_string().len();
        if length > limits.text {
            let limit = limits.text;
            self.warnings.push(format!(
                "its structured content was skipped: it has {length} bytes, more than {limit}"
            ));
            self.response.structured_content = None;
            return;
        }
        // If there is nothing else, models receive it anyway.
        if self.response.content.is_empty() && self.links.is_empty() {
            return;
        }
        if !repeats(&self.response.content, structured) {
            self.response
                .content
                .push(ContentBlock::text(structured.to_string()));
        }
    }
}

/// Returns true if text blocks repeat the structured content, as MCP recommends.
fn repeats(content: &[ContentBlock], structured: &Value) -> bool {
    let texts: Vec<&str> = content
        .iter()
        // The model doesn't receive blocks for the user.
        .filter(|block| !block.is_for_user())
        .filter_map(|block| match block {
            ContentBlock::Text { text, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    // Common servers wrap a value in an object with one key of any name. A list may have one block for each
    // item.
    let inner = structured
        .as_object()
        .filter(|object| object.len() == 1)
        .and_then(|object| object.values().next());
    let is_repeated = texts.iter().any(|text| {
        is_text_of(text, structured) || inner.is_some_and(|inner| is_text_of(text, inner))
    });
    is_repeated
        || inner.and_then(Value::as_array).is_some_and(|items| {
            items.len() == texts.len()
                && items
                    .iter()
                    .zip(&texts)
                    .all(|(item, text)| is_text_of(text, item))
        })
}

/// Returns true if a text is the string `value`, or JSON of `value`.
fn is_text_of(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text)
        || serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *value)
}

/// Moves unknown fields into `_meta`, which events keep.
fn keep_unknown(object: &mut Map<String, Value>, known: &[&str]) {
    let is_known = |key: &String| known.contains(&key.as_str());
    if object.keys().all(is_known) {
        return;
    }
    let unknown: Map<_, _> = object
        .clone()
        .into_iter()
        .filter(|(key, _)| !is_known(key))
        .collect();
    object.retain(|key, _| is_known(key));
    let meta = object.entry("_meta").or_insert(Value::Null);
    if meta.is_null() {
        *meta = json!({});
    }
    // If it isn't an object, the parser refuses the block later.
    if let Value::Object(meta) = meta {
        meta.insert(UNKNOWN.to_owned(), Value::Object(unknown));
    }
}

/// Removes the fields of a block and of its resource that only jp may set. From a server, they
/// would look like jp's own.
fn remove_own_fields(block: &mut Value) {
    for at in ["", "/resource"] {
        let Some(Value::Object(object)) = block.pointer_mut(at) else {
            continue;
        };
        object.remove("formatted");
        if let Some(Value::Object(meta)) = object.get_mut("_meta") {
            meta.retain(|key, _| !key.starts_with(OWN));
        }
    }
}

/// Converts a blob to text if its MIME type is one of text and it is UTF-8. Its bytes and checksum stay the
/// same.
///
/// Without a type, UTF-8 without zero bytes counts as text.
fn convert_to_text(resource: &mut Resource) {
    let ResourceContent::Blob(bytes) = &resource.content else {
        return;
    };
    let is_text = resource
        .mime_type
        .as_deref()
        .map_or_else(|| !bytes.contains(&0), mime::is_text);
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
    if length > limit {
        Err(format!("it has {length} bytes, more than {limit}"))
    } else {
        Ok(())
    }
}

fn check_resource(resource: &Resource, limits: &Limits) -> Result<(), Fault> {
    let limit = match &resource.content {
        ResourceContent::Text(_) => limits.text,
        ResourceContent::Blob(_) => limits.blob,
    };
    if resource.content.as_bytes().len() > limit {
        return Err(Fault::TooLong {
            what: format!("the content of {}", quote(&resource.uri)),
            limit,
        });
    }
    Ok(())
}

/// Reads the result of `resources/read`.
pub(crate) fn contents(answer: &Value, limits: &Limits) -> Result<Read, Fault> {
    let Some(all) = answer.get("contents").and_then(Value::as_array) else {
        return Err(Fault::Malformed("its result has no `contents`".to_owned()));
    };
    if all.len() > limits.blocks {
        return Err(Fault::TooMany {
            what: "contents of one resource",
            limit: limits.blocks,
        });
    }
    let mut read = Read {
        contents: Vec::new(),
        ttl: ttl(answer),
        warnings: Vec::new(),
    };
    for contents in all {
        let mut block = json!({"resource": contents});
        remove_own_fields(&mut block);
        if let Some(Value::Object(contents)) = block.get_mut("resource") {
            keep_unknown(contents, &[&CONTENTS_KEYS[..], &["_meta"]].concat());
        }
        match Resource::deserialize(&block["resource"]) {
            Ok(mut resource) => {
                check_resource(&resource, limits)?;
                convert_to_text(&mut resource);
                read.contents.push(resource);
            }
            Err(error) => {
                let uri = contents
                    .get("uri")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                read.warnings.push(format!(
                    "the content of {} can't be read: {error}",
                    quote(uri)
                ));
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
    fn read(block: Value) -> Result<Self, String> {
        let mut link = Self::deserialize(&block).map_err(|error| error.to_string())?;
        if let Value::Object(whole) = block {
            link.whole = whole
                .into_iter()
                .filter(|(key, _)| !matches!(&**key, "type" | "_meta"))
                .collect();
        }
        Ok(link)
    }

    /// Returns the `_meta` of the block that replaces the link: the link's own `_meta` and its other fields.
    fn block_meta(&self) -> Map<String, Value> {
        let mut meta = self.meta.clone().unwrap_or_default();
        meta.insert(LINK.to_owned(), Value::Object(self.whole.clone()));
        meta
    }

    /// Makes a block that describes an unread link to a model.
    pub(crate) fn description_block(&self, reason: &str) -> ContentBlock {
        let (text, annotations) = (self.describe(reason), self.annotations.clone());
        ContentBlock::Text {
            text,
            annotations,
            meta: Some(self.block_meta()),
        }
    }

    fn describe(&self, reason: &str) -> String {
        let names: Vec<_> = [&self.title, &self.name]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let name = match names[..] {
            [] => String::new(),
            [name] if name == self.uri => String::new(),
            [title, name] if title != name && name != self.uri => format!("{title} ({name}): "),
            [name, ..] => format!("{name}: "),
        };
        let facts = [
            self.mime_type.clone(),
            self.size.map(|size| format!("{size} bytes")),
            self.description.clone(),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let facts = if facts.is_empty() {
            String::new()
        } else {
            format!(" ({})", facts.join(", "))
        };
        format!("A link to the resource {name}{}{facts}. {reason}", self.uri)
    }

    /// Makes a block of the linked content, with the fields of the link that the content lacks.
    pub(crate) fn block(&self, mut resource: Resource) -> ContentBlock {
        fill(&mut resource.mime_type, &self.mime_type);
        // Models receive the URI, so a name that it ends with would be redundant.
        fill(
            &mut resource.name,
            &self
                .name
                .clone()
                .filter(|name| !uri::ends_with_name(&resource.uri, name)),
        );
        fill(&mut resource.title, &self.title);
        fill(&mut resource.description, &self.description);
        if let Some(hints) = &self.annotations {
            let annotations = resource.annotations.get_or_insert_default();
            if annotations.audience.is_none() {
                annotations.audience.clone_from(&hints.audience);
            }
            annotations.priority = annotations.priority.or(hints.priority);
            fill(&mut annotations.last_modified, &hints.last_modified);
        }
        convert_to_text(&mut resource);
        ContentBlock::Resource {
            resource,
            meta: Some(self.block_meta()),
        }
    }
}

fn fill(field: &mut Option<String>, value: &Option<String>) {
    if field.is_none() {
        field.clone_from(value);
    }
}

/// Fills in the fields that a resource's content lacks from the server's list.
pub(crate) fn complete(resource: &mut Resource, listed: &crate::ResourceInfo) {
    fill(&mut resource.name, &Some(listed.name.clone()));
    fill(&mut resource.title, &listed.title);
    fill(&mut resource.description, &listed.description);
    fill(&mut resource.mime_type, &listed.mime_type);
    if resource.annotations.is_none() {
        resource.annotations.clone_from(&listed.annotations);
    }
    convert_to_text(resource);
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
        assert_eq!(
            serde_json::to_value(&returned.response.content).unwrap(),
            blocks
        );
        assert!(returned.warnings.is_empty());
    }

    #[test]
    fn annotations_inside_the_resource_are_kept() {
        let inside = json!({"uri": "a:b", "text": "x", "annotations": {"priority": 0.7}});
        let returned = read(json!({"content": [{"type": "resource", "resource": inside}]}));
        let ContentBlock::Resource { resource, .. } = &returned.response.content[0] else {
            panic!("{returned:?}")
        };
        assert_eq!(resource.annotations.as_ref().unwrap().priority, Some(0.7));
    }

    #[test]
    fn malformed_block_is_skipped() {
        let returned = read(json!({"content": [
            {"type": "hologram"}, {"type": "text", "text": "a"}, {"type": "resource_link"}, 1,
            {"type": "question", "question": {"id": "q", "text": "?", "schema": {}}},
            {"type": "image", "data": "?", "mimeType": "image/png"}, {"type": "text", "text": "b"},
        ]}));
        assert_eq!(
            returned.response.content,
            ["a", "b"].map(ContentBlock::text)
        );
        let numbers: Vec<_> = returned
            .warnings
            .iter()
            .map(|warning| &warning[..15])
            .collect();
        assert_eq!(
            numbers,
            [1, 3, 4, 5, 6].map(|number| format!("content block {number}"))
        );
    }

    #[test]
    fn fields_of_jp_are_dropped() {
        let meta = json!({"a": 1, "computer.jp/server": "other", "computer.jp/error": {"transient": true, "trace": []}});
        let block = json!({"type": "resource", "formatted": "f", "resource": {"uri": "a:b", "text": "x", "formatted": "g"}});
        let Returned { response, .. } =
            read(json!({"content": [block], "isError": true, "_meta": meta}));
        let ContentBlock::Resource { resource, .. } = &response.content[0] else {
            panic!("{response:?}")
        };
        assert_eq!(
            (resource.formatted.as_ref(), response.meta.len()),
            (None, 1)
        );
        assert!(response.error.unwrap().transient);
    }

    #[test]
    fn keys_of_jp_are_dropped_everywhere() {
        let meta =
            json!({"k": 1, UNKNOWN: {"tone": "low"}, ERROR: {}, "computer.jp/reachesEnd": true});
        let resource = json!({"uri": "a:b", "text": "x", "_meta": meta, "icons": [1]});
        let link = json!({"type": "resource_link", "uri": "a:c", "name": "c", "_meta": meta});
        let Returned {
            response, links, ..
        } = read(json!({"content": [
            {"type": "text", "text": "t", "_meta": meta},
            {"type": "resource", "resource": resource, "_meta": meta},
            link,
        ]}));
        let (kept, beside_icons) = (json!({"k": 1}), json!({"k": 1, UNKNOWN: {"icons": [1]}}));
        let blocks = serde_json::to_value(&response.content).unwrap();
        assert_eq!((&blocks[0]["_meta"], &blocks[1]["_meta"]), (&kept, &kept));
        assert_eq!(blocks[1]["resource"]["_meta"], beside_icons);
        assert_eq!(links[0].1.meta.clone().map(Value::Object), Some(kept));
        let read = contents(&json!({"contents": [resource]}), &Limits::USUAL).unwrap();
        assert_eq!(
            read.contents[0].meta.clone().map(Value::Object),
            Some(beside_icons)
        );
    }

    #[test]
    fn unknown_fields_are_kept() {
        let contents = json!({"uri": "a:b", "text": "x", "icons": [1], "_meta": {"k": 1}});
        let answer = json!({
            "content": [{"type": "text", "text": "t", "tone": "low"}, {"type": "resource", "resource": contents}],
            "resultType": "complete", "elapsed": 3,
        });
        let Returned {
            response, warnings, ..
        } = read(answer);
        assert_eq!(response.meta[UNKNOWN], json!({"elapsed": 3}));
        let blocks = serde_json::to_value(&response.content).unwrap();
        assert_eq!(
            blocks[0]["_meta"],
            json!({"computer.jp/unknown": {"tone": "low"}})
        );
        let kept = json!({"k": 1, "computer.jp/unknown": {"icons": [1]}});
        assert_eq!(blocks[1]["resource"]["_meta"], kept);
        assert!(warnings.is_empty());
    }

    #[test]
    fn all_fields_of_a_link_are_kept() {
        let link = json!({
            "type": "resource_link", "uri": "note:1", "name": "report", "title": "The report", "icons": [{"src": "a"}],
            "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": 1},
        });
        let whole = json!({
            "uri": "note:1", "name": "report", "title": "The report", "icons": [{"src": "a"}],
            "annotations": {"audience": ["user"], "priority": 0.5},
        });
        let link = ResourceLink::read(link).unwrap();
        let meta = json!({"k": 1, "computer.jp/link": whole});
        let described = serde_json::to_value(link.description_block("It is gone.")).unwrap();
        assert_eq!(
            described["text"],
            "A link to the resource The report (report): note:1. It is gone."
        );
        assert_eq!(
            (&described["_meta"], &described["annotations"]["audience"]),
            (&meta, &json!(["user"]))
        );
        let mut resource = Resource::new("note:1", ResourceContent::Text("x".to_owned()));
        resource.annotations = Some(Annotations {
            priority: Some(0.1),
            ..Annotations::default()
        });
        let ContentBlock::Resource {
            resource,
            meta: kept,
        } = link.block(resource)
        else {
            unreachable!()
        };
        assert_eq!(
            (resource.name.as_deref(), kept.map(Value::Object)),
            (Some("report"), Some(meta))
        );
        let annotations = resource.annotations.unwrap();
        assert_eq!(
            (annotations.priority, annotations.is_for_user()),
            (Some(0.1), true)
        );
    }

    #[test]
    fn text_for_the_user_does_not_replace_structured_content() {
        let text =
            json!({"type": "text", "text": "{\"n\": 1}", "annotations": {"audience": ["user"]}});
        let returned = read(json!({"structuredContent": {"n": 1}, "content": [text]}));
        assert_eq!(
            returned.response.content[1],
            ContentBlock::text("{\"n\":1}")
        );
    }

    #[test]
    fn structured_content_needs_no_blocks() {
        let returned = read(json!({"structuredContent": {"n": 1}}));
        assert_eq!(returned.response.structured_content, Some(json!({"n": 1})));
        assert!(
            result(json!({}), &Limits::USUAL).is_err()
                && result(json!([]), &Limits::USUAL).is_err()
        );
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
            _ = raw.hand_through(json.clone());
            _ = raw.hand_through(json!({"jsonrpc": "2.0", "id": id, "result": json}));
            _ = raw.hand_through(json!({"jsonrpc": "2.0", "id": json, "method": json, "params": json}));
        }

        #[test]
        fn values_are_counted_in_any_text(text in "\\PC{0,40}") {
            let json = json!([text, {"a": text}]).to_string();
            prop_assert_eq!(raw::count_values(json.as_bytes()), 3);
        }
    }
}
