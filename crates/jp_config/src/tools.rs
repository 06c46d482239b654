use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ByteSize, CommandSetting};

/// `conversation.tools.NAME`: a tool; what is not set is `conversation.tools.'*'`'s to say, then jp's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct ToolSettings {
    /// Whether models are offered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Whether it runs without being asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunMode>,
    /// Where it is from: `local`, `builtin` or `mcp.SERVER[.TOOL]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What a local tool runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSetting>,
    /// What it does, in a sentence, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What else the model should know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its parameters: each a JSON Schema, with `required` and `summary` beside.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Who answers its questions, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, QuestionSettings>,
    /// What it is handed as it is.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// How long one run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// How much of a result the model is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<ByteSize>,
    /// Whether what it returns may become a reference to what was delivered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicate: Option<bool>,
    /// Whether it stays alive between calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,
    /// What can be done with a stateful tool; everything where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    /// Whether a stateful tool outlives the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<bool>,
}

/// Whether a tool runs without being asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunMode {
    /// The person is asked each time.
    Ask,
    /// It runs.
    Unattended,
    /// It never runs.
    Deny,
}

/// What is done with a stateful tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Starting it.
    Spawn,
    /// Asking how far it is.
    Fetch,
    /// Giving it more.
    Apply,
    /// Ending it.
    Abort,
}

/// `conversation.tools.NAME.questions.ID`: who answers a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct QuestionSettings {
    /// Who is asked.
    pub target: QuestionTarget,
    /// The answer; nobody is asked then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionTarget {
    /// The person.
    #[default]
    User,
    /// The model.
    Assistant,
}
