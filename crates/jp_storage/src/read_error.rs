use std::{
    io,
    path::{Path, PathBuf},
};

use crate::events::parse::ParseError;

/// An error of reading a conversation. Messages finish the sentence "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file can't be opened or read.
    #[error("read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The events file isn't an array of events.
    #[error("read the events in {path}")]
    Events {
        /// The file.
        path: PathBuf,
        /// The mistake and its place.
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
        /// Its directory.
        directory: PathBuf,
    },
    /// Another JSON file of the conversation is damaged.
    #[error("read {path}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The mistake and its place.
        source: serde_json::Error,
    },
}

impl ReadError {
    /// Returns a function that adds `path` to an I/O error.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns true if a file was not found.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
