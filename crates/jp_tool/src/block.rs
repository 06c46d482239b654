//! Content blocks and their JSON.
//!
//! As for resources, there are two forms: the *flat* one of tools and MCP ([`ContentBlock`]), and
//! the *stored* one of events ([`StoredBlock`]), whose payloads may be in a blob store. Both write
//! `formatted` next to the resource. Annotations are outside of the resource in the flat form, as
//! in MCP, and inside in the stored form. The reader accepts both places; the outer one wins.

use std::convert::Infallible;

use base64::{Engine, engine::general_purpose::STANDARD};
use jp_resource::{Annotations, Payload, Resource, Snapshot, decode_base64};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, de::DeserializeOwned, ser};
use serde_json::{Map, Value};

use crate::InputRequest;

/// A typed part of a tool's response.
///
/// The type parameters determine whether resources, text and bytes are in memory or in an event
/// ([`StoredBlock`]). Only events have blocks of a type that this version does not know.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentBlock<R = Resource, T = String, B = Vec<u8>, U = Infallible> {
    /// Text for the model.
    Text {
        /// The text.
        text: T,
        /// MCP's hints.
        annotations: Option<Annotations>,
        /// MCP's `_meta` of the block.
        meta: Option<Map<String, Value>>,
    },
    /// Content with an identity.
    Resource {
        /// The content with its identity. The annotations of the block are on the resource.
        resource: R,
        /// MCP's `_meta` of the block. That of the contents is on the resource.
        meta: Option<Map<String, Value>>,
    },
    /// An image.
    Image(Media<B>),
    /// A sound.
    Audio(Media<B>),
    /// A request for input.
    Question {
        /// The question.
        question: InputRequest,
    },
    /// A block of an unknown type.
    Unknown(U),
}

/// An image or a sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Media<B = Vec<u8>> {
    /// The raw bytes.
    pub data: B,
    /// Their MIME type.
    pub mime_type: String,
    /// MCP's hints.
    pub annotations: Option<Annotations>,
    /// MCP's `_meta` of the block.
    pub meta: Option<Map<String, Value>>,
}

/// A content block in an event.
pub type StoredBlock = ContentBlock<Snapshot, Payload<String>, Payload<Vec<u8>>, UnknownBlock>;

/// A block in an event whose type this version does not know, because a newer one wrote it.
///
/// jp keeps its JSON unchanged. Models and users see a note in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownBlock(Map<String, Value>);

impl UnknownBlock {
    /// Returns the block's JSON object.
    #[must_use]
    pub fn json(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns the text that stands in the block's place.
    #[must_use]
    pub fn note(&self) -> String {
        let kind = self
            .0
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        format!(
            "[A block of type {kind:?} is not shown: this version of jp does not know that type.]"
        )
    }
}

/// An error of reading a block. jp skips the block and shows the error as a warning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BlockError {
    reason: String,
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            annotations: None,
            meta: None,
        }
    }

    /// Creates a resource block.
    #[must_use]
    pub fn resource(resource: Resource) -> Self {
        Self::Resource {
            resource,
            meta: None,
        }
    }

    /// Creates a question block.
    #[must_use]
    pub fn question(question: InputRequest) -> Self {
        Self::Question { question }
    }

    /// Reads one block of a tool's `content` array.
    pub fn from_json(value: Value) -> Result<Self, BlockError> {
        read_block(value)
    }
}

impl<C, F, T, B, U> ContentBlock<Resource<C, F>, T, B, U> {
    /// Returns the MCP annotations of the block, if it has any.
    #[must_use]
    pub fn annotations(&self) -> Option<&Annotations> {
        match self {
            Self::Text { annotations, .. } => annotations.as_ref(),
            Self::Resource { resource, .. } => resource.annotations.as_ref(),
            Self::Image(media) | Self::Audio(media) => media.annotations.as_ref(),
            Self::Question { .. } | Self::Unknown(_) => None,
        }
    }

    /// Returns whether the block is only for the user and not for the model.
    #[must_use]
    pub fn is_for_user(&self) -> bool {
        self.annotations().is_some_and(Annotations::is_for_user)
    }
}

impl From<ContentBlock> for StoredBlock {
    fn from(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text {
                text,
                annotations,
                meta,
            } => Self::Text {
                text: text.into(),
                annotations,
                meta,
            },
            ContentBlock::Resource { resource, meta } => Self::Resource {
                resource: resource.into(),
                meta,
            },
            ContentBlock::Image(media) => Self::Image(media.into()),
            ContentBlock::Audio(media) => Self::Audio(media.into()),
            ContentBlock::Question { question } => Self::Question { question },
        }
    }
}

impl From<Media> for Media<Payload<Vec<u8>>> {
    fn from(media: Media) -> Self {
        Self {
            data: Payload::Inline(media.data),
            mime_type: media.mime_type,
            annotations: media.annotations,
            meta: media.meta,
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = write_block::<_, _, _, _, S::Error>(self)?;
        if let Some(Value::Object(resource)) = object.get_mut("resource")
            && let Some(annotations) = resource.shift_remove("annotations")
        {
            object.insert("annotations".to_owned(), annotations);
        }
        object.serialize(serializer)
    }
}

impl Serialize for StoredBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_block::<_, _, _, _, S::Error>(self)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_block(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for StoredBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_block(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Bytes with a JSON form, which depends on the form of the block.
trait Bytes: Sized {
    fn to_json(&self) -> Result<Value, serde_json::Error>;
    fn from_json(value: Value) -> Result<Self, BlockError>;
}

impl Bytes for Vec<u8> {
    fn to_json(&self) -> Result<Value, serde_json::Error> {
        Ok(Value::String(STANDARD.encode(self)))
    }

    fn from_json(value: Value) -> Result<Self, BlockError> {
        let text: String = parse("data", value)?;
        decode_base64(&text).map_err(|reason| BlockError {
            reason: format!("`data`: {reason}"),
        })
    }
}

impl Bytes for Payload<Vec<u8>> {
    fn to_json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn from_json(value: Value) -> Result<Self, BlockError> {
        parse("data", value)
    }
}

/// The handling of blocks of unknown types: tools' results have none, events keep them.
trait Unknown: Sized {
    fn to_json(&self) -> Map<String, Value>;
    fn from_json(kind: &str, object: Map<String, Value>) -> Result<Self, BlockError>;
}

impl Unknown for Infallible {
    fn to_json(&self) -> Map<String, Value> {
        match *self {}
    }

    fn from_json(kind: &str, _: Map<String, Value>) -> Result<Self, BlockError> {
        Err(BlockError {
            reason: format!("unknown block type `{kind}`"),
        })
    }
}

impl Unknown for UnknownBlock {
    fn to_json(&self) -> Map<String, Value> {
        self.0.clone()
    }

    fn from_json(_: &str, object: Map<String, Value>) -> Result<Self, BlockError> {
        Ok(Self(object))
    }
}

/// Writes a block in the stored form.
fn write_block<R: Serialize, T: Serialize, B: Bytes, U: Unknown, E: ser::Error>(
    block: &ContentBlock<R, T, B, U>,
) -> Result<Map<String, Value>, E> {
    let mut object = Object(Map::new());
    let written = match block {
        ContentBlock::Text {
            text,
            annotations,
            meta,
        } => object
            .put("type", "text")
            .and_then(|()| object.put("text", text))
            .and_then(|()| object.put_some("annotations", annotations.as_ref()))
            .and_then(|()| object.put_some("_meta", meta.as_ref())),
        ContentBlock::Resource { resource, meta } => object
            .put("type", "resource")
            .and_then(|()| object.put("resource", resource))
            .map(|()| object.move_out("resource", "formatted"))
            .and_then(|()| object.put_some("_meta", meta.as_ref())),
        ContentBlock::Image(media) => write_media(&mut object, "image", media),
        ContentBlock::Audio(media) => write_media(&mut object, "audio", media),
        ContentBlock::Question { question } => object
            .put("type", "question")
            .and_then(|()| object.put("question", question)),
        ContentBlock::Unknown(block) => {
            object.0 = block.to_json();
            Ok(())
        }
    };
    written.map_err(E::custom)?;
    Ok(object.0)
}

fn write_media<B: Bytes>(
    object: &mut Object,
    kind: &str,
    media: &Media<B>,
) -> serde_json::Result<()> {
    object.put("type", kind)?;
    object.put("data", media.data.to_json()?)?;
    object.put("mimeType", &media.mime_type)?;
    object.put_some("annotations", media.annotations.as_ref())?;
    object.put_some("_meta", media.meta.as_ref())
}

/// Reads a block in either form.
fn read_block<R, T, B, U>(value: Value) -> Result<ContentBlock<R, T, B, U>, BlockError>
where
    R: DeserializeOwned,
    T: DeserializeOwned,
    B: Bytes,
    U: Unknown,
{
    let Value::Object(object) = value else {
        return Err(BlockError {
            reason: "not an object".to_owned(),
        });
    };
    let mut object = Object(object);
    // Not `take`: an unknown block keeps all its fields in their order.
    let kind: String = object.read("type")?;
    Ok(match kind.as_str() {
        "text" => ContentBlock::Text {
            text: object.take("text")?,
            annotations: object.take_some("annotations")?,
            meta: object.take_some("_meta")?,
        },
        "resource" => {
            object.move_in("annotations", "resource");
            object.move_in("formatted", "resource");
            ContentBlock::Resource {
                resource: object.take("resource")?,
                meta: object.take_some("_meta")?,
            }
        }
        "image" => ContentBlock::Image(read_media(&mut object)?),
        "audio" => ContentBlock::Audio(read_media(&mut object)?),
        "question" => ContentBlock::Question {
            question: read_question(object.take("question")?)?,
        },
        kind => ContentBlock::Unknown(U::from_json(kind, object.0)?),
    })
}

fn read_question(question: InputRequest) -> Result<InputRequest, BlockError> {
    match question.id.as_str() {
        "" => Err(BlockError {
            reason: "`question`: its `id` is empty, so its answer could not be told apart"
                .to_owned(),
        }),
        _ => Ok(question),
    }
}

fn read_media<B: Bytes>(object: &mut Object) -> Result<Media<B>, BlockError> {
    Ok(Media {
        data: B::from_json(object.take("data")?)?,
        mime_type: object.take("mimeType")?,
        annotations: object.take_some("annotations")?,
        meta: object.take_some("_meta")?,
    })
}

/// A JSON object whose errors name the field.
struct Object(Map<String, Value>);

impl Object {
    fn put(&mut self, key: &str, value: impl Serialize) -> serde_json::Result<()> {
        self.0.insert(key.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    fn put_some(&mut self, key: &str, value: Option<impl Serialize>) -> serde_json::Result<()> {
        value.map_or(Ok(()), |value| self.put(key, value))
    }

    /// Moves a field out of the object `inner`, next to it.
    fn move_out(&mut self, inner: &str, key: &str) {
        if let Some(Value::Object(object)) = self.0.get_mut(inner)
            && let Some(value) = object.shift_remove(key)
        {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// Moves a field into the object `inner`, where it replaces one of the same name.
    fn move_in(&mut self, key: &str, inner: &str) {
        if let Some(value) = self.0.shift_remove(key)
            && let Some(Value::Object(object)) = self.0.get_mut(inner)
        {
            object.insert(key.to_owned(), value);
        }
    }

    fn read<V: DeserializeOwned>(&self, key: &str) -> Result<V, BlockError> {
        parse(key, self.0.get(key).ok_or_else(|| missing(key))?.clone())
    }

    fn take<V: DeserializeOwned>(&mut self, key: &str) -> Result<V, BlockError> {
        parse(key, self.0.shift_remove(key).ok_or_else(|| missing(key))?)
    }

    fn take_some<V: DeserializeOwned>(&mut self, key: &str) -> Result<Option<V>, BlockError> {
        match self.0.shift_remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => parse(key, value).map(Some),
        }
    }
}

fn missing(key: &str) -> BlockError {
    BlockError {
        reason: format!("missing field `{key}`"),
    }
}

fn parse<V: DeserializeOwned>(key: &str, value: Value) -> Result<V, BlockError> {
    serde_json::from_value(value).map_err(|error| BlockError {
        reason: format!("`{key}`: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use jp_resource::{BlobRef, Encoding, ResourceContent};
    use serde_json::json;

    use super::*;

    #[test]
    fn flat_blocks_read_what_they_write() {
        for value in [
            json!({"type": "text", "text": "ok", "annotations": {"priority": 1.0}, "_meta": {"k": 1}}),
            json!({"type": "resource", "resource": {"uri": "file:///a", "text": "x"}, "formatted": "X", "annotations": {"audience": ["user"]}}),
            json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": {}}),
            json!({"type": "question", "question": {"id": "q", "text": "?", "schema": {"type": "boolean"}, "default": true}}),
        ] {
            let block = ContentBlock::from_json(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&block).unwrap(), value);
        }
    }

    #[test]
    fn outer_fields_win() {
        let block = ContentBlock::from_json(json!({
            "type": "resource",
            "resource": {"uri": "file:///a", "text": "x", "formatted": "in", "annotations": {"priority": 0.0}},
            "formatted": "out",
            "annotations": {"priority": 1.0},
        }));
        let Ok(ContentBlock::Resource { resource, .. }) = block else {
            panic!("{block:?}")
        };
        assert_eq!(resource.formatted.as_deref(), Some("out"));
        assert_eq!(resource.annotations.unwrap().priority, Some(1.0));
    }

    #[test]
    fn stored_blocks_name_blobs() {
        let blob = BlobRef::for_content(b"x", Encoding::Utf8);
        let value = json!({
            "type": "resource",
            "resource": {
                "uri": "file:///a",
                "content": {"$blob": blob.checksum, "size": 1, "encoding": "utf8"},
                "annotations": {"priority": 1.0},
            },
            "formatted": {"$blob": blob.checksum, "size": 1},
        });
        let block: StoredBlock = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&block).unwrap(), value);
        let text = json!({"type": "text", "text": {"$blob": blob.checksum, "size": 1}});
        let block: StoredBlock = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&block).unwrap(), text);
    }

    #[test]
    fn stored_block_of_an_unknown_type_is_written_as_it_was_read() {
        let json = r#"{"length":1.50,"type":"vi\ndeo","data":{"$blob":"00","size":3}}"#;
        let block: StoredBlock = serde_json::from_str(json).unwrap();
        assert_eq!(
            serde_json::to_string(&block).unwrap(),
            json.replace("1.50", "1.5")
        );
        let StoredBlock::Unknown(unknown) = block else {
            panic!("{block:?}")
        };
        let note = r#"[A block of type "vi\ndeo" is not shown: this version of jp does not know that type.]"#;
        assert_eq!(unknown.note(), note);
        assert!(serde_json::from_str::<StoredBlock>(r#"{"data":""}"#).is_err());
    }

    #[test]
    fn malformed_blocks_say_what_is_wrong() {
        for (value, message) in [
            (json!(1), "not an object"),
            (json!({"text": "x"}), "missing field `type`"),
            (json!({"type": "text"}), "missing field `text`"),
            (
                json!({"type": "text", "text": 1}),
                "`text`: invalid type: integer `1`, expected a string",
            ),
            (
                json!({"type": "resource_link", "uri": "a:b"}),
                "unknown block type `resource_link`",
            ),
            (
                json!({"type": "resource", "resource": {"text": ""}}),
                "`resource`: missing field `uri`",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "a:b"}}),
                "`resource`: neither `text` nor `blob`",
            ),
            (
                json!({"type": "question", "question": {"id": "", "text": "?", "schema": {}}}),
                "`question`: its `id` is empty, so its answer could not be told apart",
            ),
            (
                json!({"type": "image", "data": "?", "mimeType": "image/png"}),
                "`data`: invalid base64: Invalid symbol 63, offset 0.",
            ),
        ] {
            assert_eq!(
                ContentBlock::from_json(value).unwrap_err().to_string(),
                message
            );
        }
    }

    #[test]
    fn fresh_blocks_become_stored_ones() {
        let block = ContentBlock::resource(Resource::new("a:b", ResourceContent::Text("x".into())));
        let StoredBlock::Resource { resource, .. } = block.into() else {
            panic!("a resource stays one")
        };
        assert_eq!(
            resource.content,
            Payload::Inline(ResourceContent::Text("x".into()))
        );
    }
}
