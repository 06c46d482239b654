//! What a turn asks of the person, each with a channel for the answer.

use jp_tool::{ContentBlock, InputRequest};
use serde_json::{Map, Value};

/// A call that runs only if the person agrees.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The tool.
    pub tool: String,
    /// What would run.
    pub preview: Preview,
    /// The arguments, which the person may change.
    pub arguments: Map<String, Value>,
    /// The arguments as the person changed them, and what is wrong with those: they are not what would run.
    pub rejected: Option<(Map<String, Value>, String)>,
}

/// What a call would do, for a person to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// One line: the command line, or what happens to which file.
    pub title: String,
    /// More of it: a diff, say.
    pub detail: Option<String>,
}

/// What the person says to a call.
///
/// A channel that is closed without one means that nobody is there.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may run, and so may the tool for the rest of the turn.
    AllowForTurn,
    /// It may run with these arguments, if they fit.
    Edit(Map<String, Value>),
    /// It may not.
    Refuse {
        /// Why, for the model.
        reason: Option<String>,
    },
    /// None: the person ends the turn.
    Interrupted,
}

/// Whether a call was allowed to run, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The tool's permission lets it run without asking.
    AllowedUnasked,
    /// The person allowed it, now or earlier in the turn.
    AllowedByPerson,
    /// The tool's permission denies it.
    Denied,
    /// The person refused it.
    RefusedByPerson,
    /// It needed the user's permission, and there was no terminal to ask on.
    RefusedUnasked,
}

/// A tool's question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Who asks.
    pub tool: String,
    /// The MCP server that asks by the tool, where one does.
    pub server: Option<String>,
    /// What the tool returned before the question.
    pub context: Vec<ContentBlock>,
    /// What is asked.
    pub input: InputRequest,
    /// What is wrong with the answer that the person just gave.
    pub fault: Option<String>,
}

/// What the person says to a question.
///
/// A channel that is closed without one means that nobody is there.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The answer.
    Once(Value),
    /// The answer, whenever this tool asks this in the rest of the turn.
    ForTurn(Value),
    /// None.
    Declined,
    /// None: the person ends the turn.
    Interrupted,
}
