use std::{
    io,
    path::{Path, PathBuf},
};

use crate::events::parse::ParseError;

/// A conversation that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file can't be opened or read.
    #[error("read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The events file is no array of events.
    #[error("read the events in {path}")]
    Events {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: ParseError,
    },
    /// Another process was still writing the events file at the last attempt.
    #[error("read the events in {path} while another program writes them")]
    BeingWritten {
        /// The file.
        path: PathBuf,
    },
    /// The conversation was removed while it was read.
    #[error("read {directory}: another program removed the conversation")]
    Removed {
        /// Where it was.
        directory: PathBuf,
    },
    /// Another JSON file of the conversation is damaged.
    #[error("read {path}")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
}

impl ReadError {
    /// Returns what turns an I/O error at `path` into this one.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns whether a file was not found.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
