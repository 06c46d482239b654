//! The two JSON forms of a resource.
//!
//! The *flat* form is MCP's ("Resources", `ResourceContents`): `text` or base64 `blob` next to
//! `uri`. Tools, servers and `--format json` use it; its type is [`Resource`]. The *stored* form is
//! that of events; its type is [`Snapshot`]. It has one field `content` with `{"$blob", "size",
//! "encoding"}`, or with `{"text"}` or `{"blob"}` if someone wrote the event by hand. The reader of
//! the stored form also accepts the flat form.

use std::{borrow::Cow, fmt};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::{
    Annotations, BlobRef, Checksum, Encoding, Payload, Resource, ResourceContent, Snapshot,
};

/// Decodes base64 of either alphabet, padded or not (RFC 4648 §4 and §5).
///
/// The error is a reason, as a fragment.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    const ANY_PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING);
    let engine = if text.contains(['-', '_']) {
        URL_SAFE
    } else {
        PLAIN
    };
    engine
        .decode(text)
        .map_err(|error| format!("invalid base64: {error}"))
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    uri: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime_type: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<WireContent<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blob: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<Cow<'a, Annotations>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    formatted: Option<Cow<'a, Payload<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "_meta")]
    meta: Option<Cow<'a, Map<String, Value>>>,
}

#[derive(Default, Serialize, Deserialize)]
struct WireContent<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "$blob")]
    stored: Option<Checksum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blob: Option<Cow<'a, str>>,
}

impl<'a> WireContent<'a> {
    fn from_blob(blob: &BlobRef) -> Self {
        Self {
            stored: Some(blob.checksum),
            size: Some(blob.size),
            encoding: Some(blob.encoding),
            ..Self::default()
        }
    }

    fn from_inline(content: &'a ResourceContent) -> Self {
        let (text, blob) = flat_content(content);
        Self {
            text,
            blob,
            ..Self::default()
        }
    }

    fn into_payload(self) -> Result<Payload<ResourceContent>, String> {
        match (self.stored, self.size) {
            (Some(checksum), Some(size)) if self.text.is_none() && self.blob.is_none() => {
                Ok(Payload::Stored(BlobRef {
                    checksum,
                    size,
                    // Events written by hand may lack it.
                    encoding: self.encoding.unwrap_or(Encoding::Utf8),
                }))
            }
            (Some(_), None) => Err("`$blob` without `size`".to_owned()),
            (Some(_), Some(_)) => Err("both `$blob` and inline content".to_owned()),
            (None, _) => inline_content(self.text, self.blob).map(Payload::Inline),
        }
    }
}

fn flat_content(content: &ResourceContent) -> (Option<Cow<'_, str>>, Option<Cow<'static, str>>) {
    match content {
        ResourceContent::Text(text) => (Some(Cow::Borrowed(text)), None),
        ResourceContent::Blob(bytes) => (None, Some(Cow::Owned(STANDARD.encode(bytes)))),
    }
}

fn inline_content(
    text: Option<Cow<'_, str>>,
    blob: Option<Cow<'_, str>>,
) -> Result<ResourceContent, String> {
    match (text, blob) {
        (Some(text), None) => Ok(ResourceContent::Text(text.into_owned())),
        (None, Some(blob)) => decode_base64(&blob).map(ResourceContent::Blob),
        (None, None) => Err("neither `text` nor `blob`".to_owned()),
        (Some(_), Some(_)) => Err("both `text` and `blob`".to_owned()),
    }
}

/// Borrows the fields of a resource other than its content and formatted text.
fn wire_metadata<C, T>(resource: &Resource<C, T>) -> Wire<'_> {
    Wire {
        uri: Cow::Borrowed(&resource.uri),
        mime_type: resource.mime_type.as_deref().map(Cow::Borrowed),
        annotations: resource.annotations.as_ref().map(Cow::Borrowed),
        name: resource.name.as_deref().map(Cow::Borrowed),
        title: resource.title.as_deref().map(Cow::Borrowed),
        description: resource.description.as_deref().map(Cow::Borrowed),
        meta: resource.meta.as_ref().map(Cow::Borrowed),
        ..Wire::default()
    }
}

impl Wire<'_> {
    fn into_resource<C, T>(self, content: C, formatted: Option<T>) -> Resource<C, T> {
        Resource {
            uri: self.uri.into_owned(),
            content,
            mime_type: self.mime_type.map(Cow::into_owned),
            annotations: self.annotations.map(Cow::into_owned),
            meta: self.meta.map(Cow::into_owned),
            name: self.name.map(Cow::into_owned),
            title: self.title.map(Cow::into_owned),
            description: self.description.map(Cow::into_owned),
            formatted,
        }
    }
}

impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut wire = wire_metadata(self);
        (wire.text, wire.blob) = flat_content(&self.content);
        wire.formatted = self
            .formatted
            .clone()
            .map(|formatted| Cow::Owned(Payload::Inline(formatted)));
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut wire = Wire::deserialize(deserializer)?;
        let content =
            inline_content(wire.text.take(), wire.blob.take()).map_err(de::Error::custom)?;
        let formatted = match wire.formatted.take().map(Cow::into_owned) {
            None => None,
            Some(Payload::Inline(formatted)) => Some(formatted),
            Some(Payload::Stored(_)) => {
                return Err(de::Error::custom("`formatted` must be a string"));
            }
        };
        Ok(wire.into_resource(content, formatted))
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut wire = wire_metadata(self);
        wire.content = Some(match &self.content {
            Payload::Inline(content) => WireContent::from_inline(content),
            Payload::Stored(blob) => WireContent::from_blob(blob),
        });
        wire.formatted = self.formatted.as_ref().map(Cow::Borrowed);
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut wire = Wire::deserialize(deserializer)?;
        let content = match wire.content.take() {
            Some(content) => content.into_payload(),
            None => inline_content(wire.text.take(), wire.blob.take()).map(Payload::Inline),
        };
        let content = content.map_err(de::Error::custom)?;
        let formatted = wire.formatted.take().map(Cow::into_owned);
        Ok(wire.into_resource(content, formatted))
    }
}

#[derive(Serialize, Deserialize)]
struct WireBlob {
    #[serde(rename = "$blob")]
    checksum: Checksum,
    size: u64,
}

impl WireBlob {
    fn with_encoding(self, encoding: Encoding) -> BlobRef {
        BlobRef {
            checksum: self.checksum,
            size: self.size,
            encoding,
        }
    }
}

impl From<&BlobRef> for WireBlob {
    fn from(blob: &BlobRef) -> Self {
        Self {
            checksum: blob.checksum,
            size: blob.size,
        }
    }
}

impl Serialize for Payload<String> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(text) => serializer.serialize_str(text),
            Self::Stored(blob) => WireBlob::from(blob).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Payload<String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(
            match deserializer.deserialize_any(StringOrBlob("a string or {\"$blob\", \"size\"}"))? {
                FoundPayload::Inline(text) => Self::Inline(text),
                FoundPayload::Stored(blob) => Self::Stored(blob.with_encoding(Encoding::Utf8)),
            },
        )
    }
}

impl Serialize for Payload<Vec<u8>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
            Self::Stored(blob) => WireBlob::from(blob).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Payload<Vec<u8>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(StringOrBlob("base64 or {\"$blob\", \"size\"}"))? {
            FoundPayload::Inline(text) => decode_base64(&text)
                .map(Self::Inline)
                .map_err(de::Error::custom),
            FoundPayload::Stored(blob) => Ok(Self::Stored(blob.with_encoding(Encoding::Binary))),
        }
    }
}

enum FoundPayload {
    Inline(String),
    Stored(WireBlob),
}

struct StringOrBlob(&'static str);

impl<'de> de::Visitor<'de> for StringOrBlob {
    type Value = FoundPayload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FoundPayload::Inline(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(FoundPayload::Inline(text))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        WireBlob::deserialize(de::value::MapAccessDeserializer::new(map)).map(FoundPayload::Stored)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(value: Value) -> Snapshot {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn flat_form_reads_what_it_writes() {
        let value = json!({
            "uri": "file:///project/logo.png",
            "mimeType": "image/png",
            "blob": "iVBORw==",
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-03-20T10:00:00Z", "x": 1},
            "name": "logo.png",
            "formatted": "[logo]",
            "_meta": {"a": 1},
        });
        let resource: Resource = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(resource.content, ResourceContent::Blob(b"\x89PNG".to_vec()));
        assert_eq!(serde_json::to_value(&resource).unwrap(), value);
    }

    #[test]
    fn flat_form_needs_exactly_one_content() {
        for (value, message) in [
            (json!({"uri": "a:b"}), "neither `text` nor `blob`"),
            (
                json!({"uri": "a:b", "text": "", "blob": ""}),
                "both `text` and `blob`",
            ),
            (
                json!({"uri": "a:b", "blob": "?"}),
                "invalid base64: Invalid symbol 63, offset 0.",
            ),
            (json!({"text": ""}), "missing field `uri`"),
        ] {
            let error = serde_json::from_value::<Resource>(value).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn stored_form_names_a_blob() {
        let value = json!({
            "uri": "workspace:///a.rs",
            "content": {"$blob": Checksum::compute(b"x"), "size": 1, "encoding": "utf8"},
            "formatted": {"$blob": Checksum::compute(b"y"), "size": 1},
        });
        let read = snapshot(value.clone());
        assert_eq!(read.blob_ref(), BlobRef::for_content(b"x", Encoding::Utf8));
        assert_eq!(serde_json::to_value(&read).unwrap(), value);
    }

    #[test]
    fn stored_form_reads_content_written_by_hand() {
        let text = Payload::Inline(ResourceContent::Text("x".into()));
        assert_eq!(
            snapshot(json!({"uri": "a:b", "content": {"text": "x"}})).content,
            text
        );
        assert_eq!(snapshot(json!({"uri": "a:b", "text": "x"})).content, text);
        let blob = Payload::Inline(ResourceContent::Blob(vec![255]));
        assert_eq!(
            snapshot(json!({"uri": "a:b", "content": {"blob": "_w"}})).content,
            blob
        );
        assert_eq!(
            snapshot(json!({"uri": "a:b", "blob": "/w=="})).content,
            blob
        );
    }

    #[test]
    fn stored_form_refuses_a_blob_without_its_size() {
        let value = json!({"uri": "a:b", "content": {"$blob": Checksum::compute(b"")}});
        let error = serde_json::from_value::<Snapshot>(value).unwrap_err();
        assert_eq!(error.to_string(), "`$blob` without `size`");
    }
}
