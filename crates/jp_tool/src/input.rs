use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A request for input from the user or the assistant.
///
/// It represents both questions of local tools and MCP elicitation (seed RFD 058, "Question
/// schema").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// The name of the answer when the tool runs again.
    pub id: String,
    /// A one-line label. Supporting material belongs in the blocks before the question.
    pub text: String,
    /// The JSON Schema of the answer.
    pub schema: Map<String, Value>,
    /// The default answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The common types of answers, each with a JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerType {
    /// Yes or no.
    Boolean,
    /// One of the given options.
    Select {
        /// The options, in their order.
        options: Vec<String>,
    },
    /// Any text.
    Text,
}

impl InputRequest {
    /// Creates a question without a default.
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
    /// Returns the type of answer of a schema; `None` if it needs more than one prompt.
    ///
    /// A string is [`Select`](Self::Select) if the schema lists its values: with `enum`, or with
    /// `oneOf` or `anyOf` and a `const` each, as in MCP's elicitation (2025-11-25, "Enum Schema").
    /// Other keywords of strings and booleans don't change the prompt, because the answer is
    /// checked against the schema in any case.
    #[must_use]
    pub fn from_schema(schema: &Map<String, Value>) -> Option<Self> {
        // A schema without a type may still list strings. Several types count as an unknown type.
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

    /// Returns the titles of a schema's options by their values. Not all options have one.
    #[must_use]
    pub fn titles(schema: &Map<String, Value>) -> HashMap<String, String> {
        let options = options(schema).unwrap_or_default().into_iter();
        options
            .filter_map(|(value, title)| Some((value, title?)))
            .collect()
    }
}

/// Returns whether a schema lists its values.
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

/// Returns the options of `enum`. `enumNames` has their titles in the same order.
fn enum_options(values: &[Value], names: Option<&Vec<Value>>) -> Option<Vec<ChoiceOption>> {
    let titles = names.into_iter().flatten().map(text);
    values
        .iter()
        .zip(titles.chain(std::iter::repeat(None)))
        .map(|(value, title)| Some((text(value)?, title)))
        .collect()
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
    fn schema_of_a_type_is_read_back() {
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
    fn other_schemas_have_no_type() {
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
