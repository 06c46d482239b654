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
        /// What can be chosen, in the order offered.
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
        Self { id: id.into(), text: text.into(), schema: answer.into(), default: None }
    }

    /// Sets the default answer.
    #[must_use]
    pub fn with_default(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }
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
