//! Questions of a stateful tool that have no answer yet.

use jp_tool::InputRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Questions that have no answer yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pending {
    /// The user gave no answer, or none can be given; the model can't give it for them.
    Person,
    /// The model is to answer.
    Model {
        /// The questions.
        questions: Vec<InputRequest>,
        /// Answers to the others of the same response.
        held: Map<String, Value>,
    },
}
