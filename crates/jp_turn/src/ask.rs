//! Requests that a turn makes to the user, and their answers.

use jp_tool::{ContentBlock, InputRequest};
use serde_json::{Map, Value};

/// A call that runs only if the user allows it.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The tool's name.
    pub tool: String,
    /// The preview of what would run.
    pub preview: Preview,
    /// The arguments, which the user may change.
    pub arguments: Map<String, Value>,
    /// The user's changed arguments and the reason why jp can't use them. The preview and
    /// `arguments` don't contain them.
    pub rejected: Option<(Map<String, Value>, String)>,
}

/// The description of a call on which the user bases a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// One line: the command line, or what happens to which file.
    pub title: String,
    /// Details below the title, for example a diff.
    pub detail: Option<String>,
}

impl Preview {
    /// Creates a preview without details.
    pub(crate) fn from_title(title: String) -> Self {
        Self {
            title,
            detail: None,
        }
    }
}

/// The user's decision about a call.
///
/// If the channel closes without a decision, there is no terminal to ask on.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run, and so may the tool for the rest of the turn.
    AllowForTurn,
    /// It may run with these arguments, if they match the schema.
    Edit(Map<String, Value>),
    /// It may not run.
    Refuse {
        /// The reason, for the model.
        reason: Option<String>,
    },
    /// The user ends the turn instead.
    Interrupted,
}

/// The outcome of the permission check of a call, and who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The tool's permission lets it run without asking.
    AllowedUnasked,
    /// The user allowed it, at this call or earlier in the turn.
    AllowedByUser,
    /// The tool's permission denies it.
    Denied,
    /// The user refused it.
    RefusedByUser,
    /// It needed the user's permission, and there was no terminal to ask on.
    RefusedUnasked,
}

/// A tool's question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The tool that asks.
    pub tool: String,
    /// The MCP server behind the tool, if it asks.
    pub server: Option<String>,
    /// The blocks that the tool returned before the question.
    pub context: Vec<ContentBlock>,
    /// The question itself.
    pub input: InputRequest,
    /// The error in the user's previous answer, if there was one.
    pub fault: Option<String>,
}

/// The user's reply to a question.
///
/// If the channel closes without a reply, there is no terminal to ask on.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The answer to this question.
    Once(Value),
    /// The answer, also if the tool asks the same question again in this turn.
    ForTurn(Value),
    /// The user gives no answer.
    Declined,
    /// The user ends the turn instead.
    Interrupted,
}
