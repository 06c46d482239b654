use std::{
    io,
    path::{Path, PathBuf},
};

use jp_storage::ReadError;

/// An error of finding or reading a recording. Messages finish the sentence "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory can't be opened or read.
    #[error("read {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The `events.json` of a conversation is damaged.
    #[error("read the events of a jp conversation")]
    Events(#[from] ReadError),
    /// A trajectory isn't JSON, or doesn't have SWE-agent's shape.
    #[error("read {path} as a SWE-agent trajectory")]
    Trajectory {
        /// The file.
        path: PathBuf,
        /// The parser's error, with line and column.
        source: serde_json::Error,
    },
    /// The file has no known format.
    #[error("recognise {path} as a conversation")]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The directory has no conversations.
    #[error("find a conversation in {path}")]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
}

impl Error {
    /// Adds `path` to an error of the operating system.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns a hint: one sentence that says what to do next.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check that the path exists and that you can read it",
            Self::Events(_) => "fix the file at that place, or leave the conversation out",
            Self::Trajectory { .. } => "fix the file at that place, or leave it out",
            Self::Unknown { .. } => {
                "pass a conversation directory of jp, an events.json, a SWE-agent .traj or a Claude Code .jsonl"
            }
            Self::Nothing { .. } => "pass a directory that contains conversations",
        }
    }
}
