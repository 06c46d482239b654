//! jp's own tools, a module each: what a model is told of it, and what a call of it will do.

mod files;
mod read_more;
pub(crate) mod shell;

use serde_json::{Map, Value};

pub use self::files::Files;
use crate::{Tool, Toolbox, call::Plan};

/// A tool of jp's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Reads on where a result was cut.
    ReadMore,
    /// A shell that stays.
    Shell,
}

impl Builtin {
    /// All of them, in the order in which models are told of them.
    pub const ALL: [Self; 2] = [Self::ReadMore, Self::Shell];

    /// Returns whether it changes files.
    pub(crate) fn writes_files(self) -> bool {
        match self {
            Self::Shell | Self::ReadMore => false,
        }
    }

    /// Returns the tool with its defaults.
    #[must_use]
    pub fn tool(self) -> Tool {
        match self {
            Self::ReadMore => read_more::tool(),
            Self::Shell => shell::tool(),
        }
    }
}

/// Plans a call of a builtin tool.
pub(crate) fn plan<'a>(
    builtin: Builtin,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    match builtin {
        Builtin::ReadMore => read_more::plan(tool, arguments, toolbox),
        Builtin::Shell => Err(shell::NOT_STATEFUL.to_owned()),
    }
}
