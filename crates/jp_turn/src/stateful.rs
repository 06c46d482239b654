//! Stateful tools: a process that lives on between calls, and speaks one JSON document a line (seed
//! 003, "Stateful tool responses").
//!
//! In goes `{"action":…,"handle":…,"arguments":{…}}`, or `"answers"` if the tool waits for them;
//! out comes one line with the envelope of any tool's response. `order` is what the model asks for,
//! `process` the process and its lines (`piped_lines` if it ends with the turn, `named_pipes` if it
//! stays), `handles` the processes of a turn by the names that the model chose, `interaction` one
//! call from the order to the result. The process keeps its state itself: nothing is stitched
//! together here.

mod handles;
mod interaction;
#[cfg(unix)]
mod named_pipes;
mod order;
mod pending;
mod piped_lines;
mod process;
mod reply;

use std::path::Path;

use jp_conversation::ToolCallRequest;
use serde_json::{Map, Value};

use crate::{Action, Source, Stateful, Tool, Toolbox, line::Line, plan::Plan};

pub(crate) use self::handles::Handles;
use self::{interaction::Interaction, order::Order};

impl Action {
    /// Returns the action's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Fetch => "fetch",
            Self::Apply => "apply",
            Self::Abort => "abort",
        }
    }

    /// Returns the action with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Spawn, Self::Fetch, Self::Apply, Self::Abort]
            .into_iter()
            .find(|action| action.name() == name)
    }
}

impl Stateful {
    /// Returns the schema of what the model gives a call of the tool.
    #[must_use]
    pub fn offered_parameters(&self, tool: &Tool) -> Map<String, Value> {
        order::schema(self, tool)
    }
}

/// Returns whether a call only reads from a process or ends it. Such a call needs no permission.
///
/// A local tool may do anything with its input, so its call is harmless only without input.
pub(crate) fn is_harmless(tool: &Tool, arguments: &Map<String, Value>) -> bool {
    let action = arguments
        .get("action")
        .and_then(Value::as_str)
        .and_then(Action::from_name);
    let input = arguments.get("input").and_then(Value::as_object);
    let sends_nothing =
        input.is_none_or(Map::is_empty) || matches!(tool.source, Source::Builtin(_));
    tool.stateful.is_some()
        && sends_nothing
        && matches!(action, Some(Action::Fetch | Action::Abort))
}

/// Ends the processes that outlive turns and have their pipes in this directory, a conversation's,
/// and removes it; returns how many there were.
pub fn end_kept(handles: &Path) -> usize {
    let live = process::LineProcess::find_all(handles)
        .into_iter()
        .filter_map(|(_, found)| found.ok());
    let ended = live.map(|(mut process, _)| process.end()).count();
    // Fails if no tool ever stayed.
    _ = std::fs::remove_dir_all(handles);
    ended
}

/// Plans a call of a stateful tool.
pub(crate) fn plan<'a>(
    call: &'a ToolCallRequest,
    stateful: &'a Stateful,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let order = Order::read(tool, arguments)?;
    let preview = order.preview(tool, &toolbox.surroundings)?;
    let act = move |_: &Map<String, Value>, line: &Line| {
        Interaction {
            call,
            stateful,
            tool,
            order: &order,
            toolbox,
            line,
        }
        .run()
    };
    Ok(Plan {
        preview,
        is_sensitive: false,
        act: Box::new(act),
    })
}
