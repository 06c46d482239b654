use jiff::Timestamp;
use jp_conversation::parse_timestamp;
use serde_json::{Map, Value};

/// `metadata.json`: the title of a conversation and the time of its last use.
///
/// Unknown fields are kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    fields: Map<String, Value>,
    /// True if the file can't be read. It must then be renamed, not overwritten.
    pub(crate) is_damaged: bool,
}

impl Metadata {
    /// Makes the metadata of a new conversation.
    #[must_use]
    pub fn new(title: Option<&str>, now: Timestamp) -> Self {
        let mut metadata = Self::default();
        if let Some(title) = title {
            metadata.fields.insert("title".to_owned(), title.into());
        }
        metadata.activate(now);
        metadata
    }

    /// Makes empty metadata in place of a file that can't be read.
    pub(crate) fn unreadable() -> Self {
        Self {
            is_damaged: true,
            ..Self::default()
        }
    }

    /// Reads the file's bytes.
    pub fn from_json(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes).map(|fields| Self {
            fields,
            is_damaged: false,
        })
    }

    /// Writes the file's bytes.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json =
            serde_json::to_vec_pretty(&self.fields).expect("a JSON object can be written");
        json.push(b'\n');
        json
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.fields.get("title").and_then(Value::as_str)
    }

    /// Returns the time of the last use.
    #[must_use]
    pub fn last_activated_at(&self) -> Option<Timestamp> {
        let text = self
            .fields
            .get("last_activated_at")
            .and_then(Value::as_str)?;
        parse_timestamp(text).ok()
    }

    /// Sets the time of the last use to `now`.
    pub fn activate(&mut self, now: Timestamp) {
        self.fields
            .insert("last_activated_at".to_owned(), now.to_string().into());
    }
}
