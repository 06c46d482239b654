//! jp's own tools. Each has a module with its definition for models and the plan of a call.

mod action;
mod compare;
mod create_file;
mod declare;
mod delete_file;
mod edit;
mod edit_file;
mod files;
mod kind;
mod limit;
mod list_files;
mod move_file;
mod preview;
mod read_file;
mod read_more;
mod refresh;
mod refresh_resource;
mod run_command;
mod search_files;
pub(crate) mod shell;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use self::refresh_resource::find_server;
pub use self::{
    files::{FileState, Files, FilesError, marked_files},
    kind::Builtin,
    refresh::{Consent, Refresh, Refreshed, Refreshing},
};
use crate::{line::Line, plan::Plan, tool::Tool, toolbox::Toolbox};

impl Builtin {
    /// Returns the tool with its defaults.
    #[must_use]
    pub fn tool(self) -> Tool {
        match self {
            Self::ReadFile => read_file::tool(),
            Self::ListFiles => list_files::tool(),
            Self::SearchFiles => search_files::tool(),
            Self::CreateFile => create_file::tool(),
            Self::EditFile => edit_file::tool(),
            Self::MoveFile => move_file::tool(),
            Self::DeleteFile => delete_file::tool(),
            Self::RunCommand => run_command::tool(),
            Self::Shell => shell::tool(),
            Self::ReadMore => read_more::tool(),
            Self::RefreshResource => refresh_resource::tool(),
        }
    }
}

/// Plans a call of a builtin tool. A plan that waits for a program ends early if the call is
/// cancelled.
pub(crate) fn plan<'a>(
    builtin: Builtin,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
    line: &Line,
) -> Result<Plan<'a>, String> {
    match builtin {
        Builtin::ReadFile => read_file::plan(tool, arguments, toolbox),
        Builtin::ListFiles => list_files::plan(tool, arguments, toolbox),
        Builtin::SearchFiles => search_files::plan(tool, arguments, toolbox),
        Builtin::CreateFile => create_file::plan(arguments, toolbox),
        Builtin::EditFile => edit_file::plan(arguments, toolbox),
        Builtin::MoveFile => move_file::plan(arguments, toolbox),
        Builtin::DeleteFile => delete_file::plan(arguments, toolbox, line),
        Builtin::RunCommand => run_command::plan(tool, arguments, toolbox),
        Builtin::ReadMore => read_more::plan(tool, arguments),
        Builtin::RefreshResource => refresh_resource::plan(arguments, toolbox),
        Builtin::Shell => Err(shell::NOT_STATEFUL.to_owned()),
    }
}
