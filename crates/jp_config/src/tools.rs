use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ByteSize, CommandSetting};

/// `conversation.tools.NAME`: a tool. Unset keys use those of `conversation.tools.'*'`, then jp's
/// defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct ToolSettings {
    /// Offers the tool to models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// The permission to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunMode>,
    /// The origin: `local`, `builtin` or `mcp.SERVER[.TOOL]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The command of a local tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSetting>,
    /// One sentence for the model about the tool's purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// More instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The parameters: each is a JSON Schema with two more keys, `required` and `summary`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The recipients and answers of the tool's questions, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, QuestionSettings>,
    /// Values that the tool receives unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// The time limit for one run, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// The largest part of a result that the model receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<ByteSize>,
    /// Replaces results if the request already has their content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicate: Option<bool>,
    /// Keeps the program alive between calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,
    /// The supported actions of a stateful tool; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    /// Keeps a stateful tool alive after the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<bool>,
}

/// The permission of a tool to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunMode {
    /// jp asks the user before each call.
    Ask,
    /// The tool runs without a prompt.
    Unattended,
    /// The tool never runs.
    Deny,
}

/// An action of a stateful tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Starts the program.
    Spawn,
    /// Returns its current output.
    Fetch,
    /// Sends it input.
    Apply,
    /// Ends it.
    Abort,
}

/// `conversation.tools.NAME.questions.ID`: the recipient or the answer of a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct QuestionSettings {
    /// The recipient of the question.
    pub target: QuestionTarget,
    /// A fixed answer. With it, jp asks no one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

/// The recipient of a tool's question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionTarget {
    /// The user.
    #[default]
    User,
    /// The model.
    Assistant,
}
