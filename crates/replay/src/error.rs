use std::{
    io,
    path::{Path, PathBuf},
};

use jp_storage::ReadError;

/// A recording that can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory can't be opened or read.
    #[error("read {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An events file of jp's is damaged.
    #[error("read the events of a jp conversation")]
    Events(#[from] ReadError),
    /// A trajectory is no JSON, or not of SWE-agent's shape.
    #[error("read {path} as a SWE-agent trajectory")]
    Trajectory {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
    /// The file has no form that is known.
    #[error("recognise {path} as a conversation")]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing to replay in a directory.
    #[error("find a conversation in {path}")]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
}

impl Error {
    /// Wraps what went wrong with `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns what a person may do about it.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check that the path exists and that you may read it",
            Self::Events(_) => "mend the file at that place, or leave the conversation out",
            Self::Trajectory { .. } => "mend the file at that place, or leave it out",
            Self::Unknown { .. } => {
                "name a conversation directory of jp, an events.json, a SWE-agent .traj or a Claude Code .jsonl"
            }
            Self::Nothing { .. } => "name a directory that has conversations in it",
        }
    }
}
