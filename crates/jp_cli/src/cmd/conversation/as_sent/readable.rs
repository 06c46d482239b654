//! Reads the text of a request's messages from its JSON, in any format.

use serde_json::{Map, Value};

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// Binary content.
    Binary {
        mime_type: String,
        bytes: u64,
    },
}

/// Reads the parts of a request's messages, in order.
pub(super) fn read_parts(body: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    let messages = ["messages", "contents", "input"]
        .iter()
        .find_map(|key| body.get(key));
    messages
        .into_iter()
        .for_each(|messages| read(messages, &mut parts));
    parts
}

fn read(value: &Value, parts: &mut Vec<Part>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| read(value, parts)),
        Value::Object(object) if object.get("type").is_some_and(|kind| kind == "document") => {
            read_document(object, parts);
        }
        Value::Object(object) => match read_binary(object) {
            Some(binary) => parts.push(binary),
            None => object
                .iter()
                .for_each(|(key, value)| read_field(key, value, parts)),
        },
        _ => {}
    }
}

/// Reads a field that contains content. Skips ids, types and marks.
fn read_field(key: &str, value: &Value, parts: &mut Vec<Part>) {
    match (key, value) {
        ("text" | "content" | "output" | "error", Value::String(text)) => {
            parts.push(Part::Text(text.clone()))
        }
        ("image_url" | "url" | "file_data", Value::String(url)) => parts.extend(read_data_url(url)),
        ("images", Value::Array(images)) => {
            parts.extend(
                images
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|image| read_base64(detect_image_type(image), image)),
            );
        }
        (
            "content" | "output" | "source" | "image_url" | "file" | "parts" | "functionResponse"
            | "response" | "inlineData",
            value,
        ) => read(value, parts),
        _ => {}
    }
}

/// Reads an Anthropic document: its title and context, then its content.
fn read_document(document: &Map<String, Value>, parts: &mut Vec<Part>) {
    let field = |key: &str| {
        document
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let head = format!("[document: {}]\n{}\n", field("title"), field("context"));
    let source = document.get("source");
    match source
        .and_then(|source| source.get("data"))
        .and_then(Value::as_str)
    {
        Some(text) if source.is_some_and(|source| source["type"] == "text") => {
            parts.push(Part::Text(format!("{head}\n{text}")));
        }
        _ => {
            parts.push(Part::Text(head));
            source.into_iter().for_each(|source| read(source, parts));
        }
    }
}

/// Reads an object with bytes: Anthropic's `source` or Gemini's `inlineData`.
fn read_binary(object: &Map<String, Value>) -> Option<Part> {
    let mime_type = object
        .get("media_type")
        .or_else(|| object.get("mimeType"))?
        .as_str()?;
    Some(read_base64(mime_type, object.get("data")?.as_str()?))
}

/// Reads a `data:` URL (RFC 2397) of base64.
fn read_data_url(url: &str) -> Option<Part> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(read_base64(mime_type, data))
}

/// Describes content in base64 by its type and its size in bytes (RFC 4648 §4).
fn read_base64(mime_type: &str, data: &str) -> Part {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding) as u64;
    Part::Binary {
        mime_type: mime_type.to_owned(),
        bytes,
    }
}

/// Detects the type of an Ollama image by its first bytes in base64, because Ollama's format has no type field.
fn detect_image_type(data: &str) -> &'static str {
    match data.get(..5) {
        Some("iVBOR") => "image/png",
        Some("/9j/4") => "image/jpeg",
        Some("UklGR") => "image/webp",
        _ => "image",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_every_format_are_read_in_order() {
        let text = |text: &str| Part::Text(text.to_owned());
        let image = || Part::Binary {
            mime_type: "image/png".to_owned(),
            bytes: 8,
        };
        let url = "data:image/png;base64,iVBORw0KGgo=";
        let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
        for (body, expected) in [
            (
                json!({"messages": [{"role": "user", "content": [
                    {"type": "document", "title": "a", "context": "URI: a:b", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                    {"type": "document", "title": "c", "context": "URI: c:d", "source": {"type": "content", "content": [{"type": "image", "source": source}]}},
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "y"}]},
                ]}]}),
                vec![
                    text("[document: a]\nURI: a:b\n\nx"),
                    text("[document: c]\nURI: c:d\n"),
                    image(),
                    text("y"),
                ],
            ),
            (
                json!({"messages": [
                    {"role": "tool", "tool_call_id": "1", "content": "x"},
                    {"role": "user", "content": [{"type": "text", "text": "y"}, {"type": "image_url", "image_url": {"url": url}}]},
                ]}),
                vec![text("x"), text("y"), image()],
            ),
            (
                json!({"input": [{"type": "function_call_output", "call_id": "1", "output": [
                    {"type": "input_text", "text": "x"}, {"type": "input_image", "detail": "auto", "image_url": url},
                    {"type": "input_file", "filename": "a", "file_data": url},
                ]}]}),
                vec![text("x"), image(), image()],
            ),
            (
                json!({"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "t",
                    "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}], "response": {"output": "x"}}}]}]}),
                vec![image(), text("x")],
            ),
            (
                json!({"messages": [{"role": "user", "content": "x", "images": ["iVBORw0KGgo="]}]}),
                vec![text("x"), image()],
            ),
        ] {
            assert_eq!(read_parts(&body), expected, "{body}");
        }
    }
}
