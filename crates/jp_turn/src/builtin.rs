//! jp's own tools, a module each: what a model is told of it, and what a call of it will do.

mod compare;
mod create_file;
mod delete_file;
mod edit;
mod edit_file;
mod files;
mod limit;
mod list_files;
mod move_file;
mod preview;
mod read_file;
mod read_more;
mod refresh_resource;
mod run_command;
mod search_files;
pub(crate) mod shell;
#[cfg(test)]
mod tests;

use jp_resource::Checksum;
use jp_tool::{ContentBlock, ToolResponse};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) use self::refresh_resource::refreshed_server;
pub use self::{
    files::{FileState, Files, FilesError, marked_files},
    refresh_resource::{Consent, Refresh, Refreshed, Refreshing},
};
use crate::{Permission, Preview, Source, Tool, Toolbox, call::Plan, calls::Line};

/// A tool of jp's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Reads a file, or some of its lines.
    ReadFile,
    /// Lists a directory.
    ListFiles,
    /// Finds lines that match a regular expression.
    SearchFiles,
    /// Creates a file.
    CreateFile,
    /// Changes a file.
    EditFile,
    /// Moves a file.
    MoveFile,
    /// Deletes a file.
    DeleteFile,
    /// Runs a command line.
    RunCommand,
    /// A shell that stays.
    Shell,
    /// Reads on where a result was cut.
    ReadMore,
    /// Takes a new snapshot of something attached.
    RefreshResource,
}

impl Builtin {
    /// All of them, in the order in which models are told of them.
    pub const ALL: [Self; 11] = [
        Self::ReadFile,
        Self::ListFiles,
        Self::SearchFiles,
        Self::CreateFile,
        Self::EditFile,
        Self::MoveFile,
        Self::DeleteFile,
        Self::RunCommand,
        Self::Shell,
        Self::ReadMore,
        Self::RefreshResource,
    ];

    /// Returns the tool of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// Returns what models call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::ListFiles => "list_files",
            Self::SearchFiles => "search_files",
            Self::CreateFile => "create_file",
            Self::EditFile => "edit_file",
            Self::MoveFile => "move_file",
            Self::DeleteFile => "delete_file",
            Self::RunCommand => "run_command",
            Self::Shell => "shell",
            Self::ReadMore => "read_more",
            Self::RefreshResource => "refresh_resource",
        }
    }

    /// Returns whether it changes nothing: such a tool is on unless it is switched off, and runs unasked.
    #[must_use]
    pub fn is_reader(self) -> bool {
        matches!(
            self,
            Self::ReadFile
                | Self::ListFiles
                | Self::SearchFiles
                | Self::ReadMore
                | Self::RefreshResource
        )
    }

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

    /// Returns whether it changes files.
    pub(crate) fn writes_files(self) -> bool {
        matches!(
            self,
            Self::CreateFile
                | Self::EditFile
                | Self::MoveFile
                | Self::DeleteFile
                | Self::RunCommand
        )
    }

    /// Returns whether it works on files.
    pub(crate) fn sees_files(self) -> bool {
        !matches!(self, Self::Shell | Self::ReadMore)
    }
}

/// Plans a call of a builtin tool. A plan that waits for a program ends early if the call is cancelled.
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
        Builtin::ReadMore => read_more::plan(tool, arguments, toolbox),
        Builtin::RefreshResource => refresh_resource::plan(arguments, toolbox),
        Builtin::Shell => Err(shell::NOT_STATEFUL.to_owned()),
    }
}

/// Makes a tool of what a model is told of it.
fn offered(builtin: Builtin, description: &str, parameters: Value) -> Tool {
    let Value::Object(parameters) = parameters else {
        unreachable!("an object was written")
    };
    let permission = if builtin.is_reader() {
        Permission::Unattended
    } else {
        Permission::Ask
    };
    Tool {
        description: description.to_owned(),
        permission,
        ..Tool::new(builtin.name(), parameters, Source::Builtin(builtin))
    }
}

/// Reads the arguments, which fit the tool's schema.
fn parsed<'a, T: Deserialize<'a>>(arguments: &'a Map<String, Value>) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("The arguments can't be read: {error}."))
}

/// Makes a plan of what can be done without questions.
fn planned<'a>(
    preview: Preview,
    is_sensitive: bool,
    mut act: impl FnMut(&Line) -> Result<Vec<ContentBlock>, String> + 'a,
) -> Plan<'a> {
    let act = move |_: &Map<String, Value>, line: &Line| match act(line) {
        Ok(blocks) => ToolResponse::new(blocks),
        Err(reason) => ToolResponse::error([ContentBlock::text(reason)]),
    };
    Plan {
        preview,
        is_sensitive,
        act: Box::new(act),
    }
}

/// Makes a block that tells what was done with a file, which now has this checksum.
fn told(done: String, path: &str, checksum: Checksum) -> ContentBlock {
    marked(done, files::mark(path, checksum))
}

/// Makes a block that tells of what became of a file, marked so.
fn marked(done: String, mark: Map<String, Value>) -> ContentBlock {
    ContentBlock::Text {
        text: done,
        annotations: None,
        meta: Some(mark),
    }
}

/// Writes a number with what it counts.
fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}
