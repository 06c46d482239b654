use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A request for input, to a person or to the assistant.
///
/// Local tools' questions and MCP elicitation both become this (seed RFD 058, "Question schema").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// Names the answer when the tool runs again.
    pub id: String,
    /// A one-line label; supporting material belongs in the blocks before the question.
    pub text: String,
    /// JSON Schema of the answer.
    pub schema: Map<String, Value>,
    /// The answer to assume or to offer, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The common kinds of answer, each standing for a JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerType {
    /// Yes or no.
    Boolean,
    /// One of the given options.
    Select {
        /// The options, in the order offered.
        options: Vec<String>,
    },
    /// Any text.
    Text,
}

impl InputRequest {
    /// Makes a question without a default.
    pub fn new(
        id: impl Into<String>,
        text: impl Into<String>,
        answer: impl Into<Map<String, Value>>,
    ) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            schema: answer.into(),
            default: None,
        }
    }

    /// Sets the default answer.
    #[must_use]
    pub fn with_default(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }
}

impl AnswerType {
    /// Returns the kind of answer that a schema asks for; `None` if it takes more than one prompt.
    ///
    /// A string is [`Select`](Self::Select) where its values are given: by `enum`, or by `oneOf` or `anyOf` with a
    /// `const` each, as MCP's elicitation writes them (2025-11-25, "Enum Schema"). What else a schema says of a string
    /// or a boolean changes nothing in how it is asked for: the answer is checked against the schema in any case.
    #[must_use]
    pub fn from_schema(schema: &Map<String, Value>) -> Option<Self> {
        // A schema without a type may still list strings; one with several types has none here.
        let kind = schema
            .get("type")
            .map(|kind| kind.as_str().unwrap_or_default());
        match (kind, is_closed(schema)) {
            (Some("boolean"), false) => Some(Self::Boolean),
            (Some("string"), false) => Some(Self::Text),
            (Some("string") | None, true) => {
                let options = options(schema)?;
                Some(Self::Select {
                    options: options.into_iter().map(|(value, _)| value).collect(),
                })
            }
            _ => None,
        }
    }

    /// Returns the titles of a schema's options, by value, for the options that have one.
    #[must_use]
    pub fn titles(schema: &Map<String, Value>) -> HashMap<String, String> {
        let options = options(schema).unwrap_or_default().into_iter();
        options
            .filter_map(|(value, title)| Some((value, title?)))
            .collect()
    }
}

/// Returns whether a schema lists the values that it takes.
fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.contains_key("enum")
        || schema.contains_key("const")
        || ["oneOf", "anyOf"]
            .iter()
            .filter_map(|key| alternatives(schema, key))
            .any(|all| all.iter().any(has_const))
}

fn has_const(alternative: &Value) -> bool {
    alternative.get("const").is_some()
}

fn alternatives<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<&'a Vec<Value>> {
    schema.get(key)?.as_array()
}

/// An option and its title.
type ChoiceOption = (String, Option<String>);

/// Returns the options of a schema; `None` if there are none, or if some are not strings.
fn options(schema: &Map<String, Value>) -> Option<Vec<ChoiceOption>> {
    let options = match alternatives(schema, "enum") {
        Some(values) => enum_options(values, alternatives(schema, "enumNames")),
        None => ["oneOf", "anyOf"]
            .iter()
            .find_map(|key| alternatives(schema, key))
            .and_then(|all| all.iter().map(const_option).collect()),
    };
    options.filter(|options| !options.is_empty())
}

/// Returns the options of `enum`; `enumNames` has their titles, by their places.
fn enum_options(values: &[Value], names: Option<&Vec<Value>>) -> Option<Vec<ChoiceOption>> {
    let option = |(index, value): (usize, &Value)| {
        let title = names.and_then(|names| names.get(index)).and_then(text);
        Some((text(value)?, title))
    };
    values.iter().enumerate().map(option).collect()
}

/// Returns the option of an alternative with a `const` (MCP 2025-11-25, "Enum Schema").
fn const_option(alternative: &Value) -> Option<ChoiceOption> {
    let title = alternative.get("title").and_then(text);
    Some((text(alternative.get("const")?)?, title))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

impl From<AnswerType> for Map<String, Value> {
    fn from(answer: AnswerType) -> Self {
        let schema = match answer {
            AnswerType::Boolean => json!({"type": "boolean"}),
            AnswerType::Select { options } => json!({"type": "string", "enum": options}),
            AnswerType::Text => json!({"type": "string"}),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => unreachable!("every arm above is an object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(schema: Value) -> Map<String, Value> {
        schema.as_object().unwrap().clone()
    }

    fn kind(value: Value) -> Option<AnswerType> {
        AnswerType::from_schema(&schema(value))
    }

    fn select(options: &[&str]) -> Option<AnswerType> {
        Some(AnswerType::Select {
            options: options.iter().map(|&option| option.to_owned()).collect(),
        })
    }

    #[test]
    fn schema_that_a_kind_writes_is_of_that_kind() {
        let select = AnswerType::Select {
            options: vec!["main".to_owned(), "develop".to_owned()],
        };
        for kind in [AnswerType::Boolean, AnswerType::Text, select] {
            assert_eq!(AnswerType::from_schema(&kind.clone().into()), Some(kind));
        }
    }

    #[test]
    fn options_are_found_in_each_form_with_their_titles() {
        let titled = json!([{"const": "#f00", "title": "Red"}, {"const": "#00f"}]);
        for key in ["oneOf", "anyOf"] {
            let schema = schema(json!({"type": "string", key: titled}));
            assert_eq!(AnswerType::from_schema(&schema), select(&["#f00", "#00f"]));
            assert_eq!(
                AnswerType::titles(&schema),
                HashMap::from([("#f00".to_owned(), "Red".to_owned())])
            );
        }
        let named = schema(json!({"enum": ["a", "b"], "enumNames": ["A"], "description": "x"}));
        assert_eq!(AnswerType::from_schema(&named), select(&["a", "b"]));
        assert_eq!(
            AnswerType::titles(&named),
            HashMap::from([("a".to_owned(), "A".to_owned())])
        );
    }

    #[test]
    fn other_keywords_change_nothing() {
        let text = json!({"type": "string", "title": "Name", "description": "Yours", "minLength": 1, "maxLength": 9,
            "pattern": "^[a-z]+$", "format": "email", "anyOf": [{"format": "date"}]});
        assert_eq!(kind(text), Some(AnswerType::Text));
        assert_eq!(
            kind(json!({"type": "boolean", "title": "Sure?"})),
            Some(AnswerType::Boolean)
        );
    }

    #[test]
    fn all_else_is_of_no_kind() {
        for other in [
            json!({}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "integer"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
            json!({"enum": [1, "a"]}),
            json!({"type": "string", "enum": []}),
            json!({"type": "string", "const": "a"}),
            json!({"type": "boolean", "enum": [true]}),
            json!({"type": "string", "oneOf": [{"const": "a"}, {"pattern": "b"}]}),
            json!({"$ref": "#/$defs/a"}),
        ] {
            assert_eq!(kind(other.clone()), None, "{other}");
        }
    }
}
