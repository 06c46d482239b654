//! The builtin tools and their effects.

/// A builtin tool.
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
    /// A shell session.
    Shell,
    /// Continues a result that was shortened.
    ReadMore,
    /// Takes a new snapshot of an attached resource.
    RefreshResource,
}

impl Builtin {
    /// All tools, in the order of the request.
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
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// Returns the name by which models call it.
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

    /// Returns whether it changes nothing. Such a tool is enabled by default and runs without a
    /// prompt.
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
