//! The response format that tools printed before content blocks existed. jp only reads it.

use jp_tool::{AnswerType, ContentBlock, InputRequest, ToolError, ToolResponse};
use serde::Deserialize;
use serde_json::Value;

/// The older response of a tool.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LegacyOutcome {
    Success {
        content: String,
    },
    Error {
        message: String,
        #[serde(default)]
        trace: Vec<String>,
        #[serde(default)]
        transient: bool,
    },
    NeedsInput {
        question: LegacyQuestion,
    },
}

#[derive(Deserialize)]
pub(super) struct LegacyQuestion {
    id: String,
    text: String,
    answer_type: Value,
    #[serde(default)]
    default: Option<Value>,
}

impl LegacyOutcome {
    /// Reads an outcome; `None` if the value is anything else.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let outcome = Self::deserialize(value).ok()?;
        match &outcome {
            Self::NeedsInput { question } if answer_type(&question.answer_type).is_none() => None,
            _ => Some(outcome),
        }
    }
}

impl From<LegacyOutcome> for ToolResponse {
    fn from(outcome: LegacyOutcome) -> Self {
        match outcome {
            LegacyOutcome::Success { content } => Self::new([ContentBlock::text(content)]),
            LegacyOutcome::Error {
                message,
                trace,
                transient,
            } => {
                let error = Some(ToolError { transient, trace });
                Self {
                    error,
                    ..Self::error([ContentBlock::text(message)])
                }
            }
            LegacyOutcome::NeedsInput { question } => {
                let LegacyQuestion {
                    id,
                    text,
                    answer_type: kind,
                    default,
                } = question;
                let kind = answer_type(&kind).unwrap_or(AnswerType::Text);
                let input = InputRequest {
                    default,
                    ..InputRequest::new(id, text, kind)
                };
                Self::new([ContentBlock::question(input)])
            }
        }
    }
}

/// Reads `"Boolean"`, `{"Select": {"options": […]}}` and `{"type": "select", "options": […]}`, in
/// any case.
fn answer_type(value: &Value) -> Option<AnswerType> {
    let (name, fields) = match value {
        Value::String(name) => (name.as_str(), value),
        Value::Object(object) => match object.get("type") {
            Some(name) => (name.as_str()?, value),
            None => object
                .iter()
                .next()
                .map(|(name, fields)| (name.as_str(), fields))?,
        },
        _ => return None,
    };
    match name.to_ascii_lowercase().as_str() {
        "boolean" => Some(AnswerType::Boolean),
        "text" => Some(AnswerType::Text),
        "select" => Vec::deserialize(fields.get("options")?)
            .ok()
            .map(|options| AnswerType::Select { options }),
        _ => None,
    }
}
