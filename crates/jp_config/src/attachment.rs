use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// An attachment of every conversation: a string as on the command line, or a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AttachmentDeclaration {
    /// A URL or path: `file:README.md`.
    Text(String),
    /// `{ type = "cmd", path = "git", params = { arg = ["diff"] } }`.
    Table(AttachmentTable),
}

/// The table form of a declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "a table")]
pub struct AttachmentTable {
    /// The scheme: `file`, `cmd`, `http`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The rest of the URL after the scheme: a path, a program.
    pub path: String,
    /// Query parameters; a single value is a list of one.
    #[serde(
        default,
        deserialize_with = "deserialize_params",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub params: BTreeMap<String, Vec<String>>,
    /// The reaction to content that changed since the newest snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Refresh>,
    /// A description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The reaction to attached content that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refresh {
    /// jp does nothing until the user refreshes the attachment.
    #[default]
    Manual,
    /// jp notifies the model.
    Notify,
}

impl AttachmentDeclaration {
    /// Returns the reaction to changed content. Only a table can set it.
    #[must_use]
    pub fn refresh(&self) -> Refresh {
        match self {
            Self::Text(_) => Refresh::default(),
            Self::Table(table) => table.refresh.unwrap_or_default(),
        }
    }
}

impl<'de> Deserialize<'de> for AttachmentDeclaration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DeclarationVisitor)
    }
}

struct DeclarationVisitor;

impl<'de> Visitor<'de> for DeclarationVisitor {
    type Value = AttachmentDeclaration;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a path, a URL, or a table with `type` and `path`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(AttachmentDeclaration::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        AttachmentTable::deserialize(MapAccessDeserializer::new(map))
            .map(AttachmentDeclaration::Table)
    }
}

fn deserialize_params<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let params = BTreeMap::<String, Texts>::deserialize(deserializer)?;
    Ok(params
        .into_iter()
        .map(|(name, Texts(texts))| (name, texts))
        .collect())
}

/// One text or a list of them.
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or a list of strings")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Texts, E> {
        Ok(Texts(vec![value.to_string()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Texts, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Texts)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn list_mixes_strings_with_tables() {
        let declarations: Vec<AttachmentDeclaration> = serde_json::from_value(json!([
            "file:README.md",
            { "type": "cmd", "path": "git", "params": { "arg": ["diff", "--cached"], "depth": 2 }, "refresh": "notify" },
        ]))
        .unwrap();
        let git = json!({
            "type": "cmd",
            "path": "git",
            "params": { "arg": ["diff", "--cached"], "depth": ["2"] },
            "refresh": "notify",
        });
        assert_eq!(
            serde_json::to_value(declarations).unwrap(),
            json!(["file:README.md", git])
        );
    }

    #[test]
    fn only_a_table_reports_changes() {
        let refresh = |value| {
            serde_json::from_value::<AttachmentDeclaration>(value)
                .unwrap()
                .refresh()
        };
        let table = |refresh| json!({ "type": "file", "path": "README.md", "refresh": refresh });
        assert_eq!(refresh(table("notify")), Refresh::Notify);
        assert_eq!(refresh(table("manual")), Refresh::Manual);
        assert_eq!(
            refresh(json!({ "type": "file", "path": "README.md" })),
            Refresh::Manual
        );
        assert_eq!(refresh(json!("file:README.md")), Refresh::Manual);
    }

    #[test]
    fn error_names_the_mistake_in_a_table() {
        let errors = [
            json!({ "type": "cmd" }),
            json!({ "type": "cmd", "path": "git", "refresh": "always" }),
            json!(5),
        ]
        .map(|value| {
            serde_json::from_value::<AttachmentDeclaration>(value)
                .unwrap_err()
                .to_string()
        });
        assert_eq!(
            errors,
            [
                "missing field `path`",
                "unknown variant `always`, expected `manual` or `notify`",
                "invalid type: integer `5`, expected a path, a URL, or a table with `type` and `path`",
            ]
        );
    }
}
