use std::{io, path::PathBuf, sync::Arc};

use jp_attachment::AttachError;
use jp_storage::{ConversationId, ReadError};
use mcp_resources::{RegisterError, WatchError};

/// A workspace that can't be offered.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The root can't be opened.
    #[error("open the workspace at {path:?}")]
    Root {
        /// The root.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The root has no URI.
    #[error("offer the workspace at {path:?}: its path is no part of a URI")]
    Uri {
        /// The root.
        path: PathBuf,
    },
    /// The root makes a template that can't be matched.
    #[error("offer the workspace's files")]
    Register(#[from] RegisterError),
}

/// A function that receives what clients don't see.
pub(crate) type Report = Arc<dyn Fn(Warning) + Send + Sync>;

/// Something that clients don't see, or of whose changes they don't hear.
#[derive(Debug, thiserror::Error)]
pub enum Warning {
    /// Changes of files are not seen.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A file or a declaration is not in the list.
    #[error("not all that is attached is in the list: failed to {0}")]
    Attachment(#[source] AttachError),
    /// The conversation can't be read. It is tried again.
    #[error("for now nothing new of conversation {id} is in the list: failed to {source}")]
    Conversation {
        /// The conversation.
        id: ConversationId,
        /// The cause.
        source: ReadError,
    },
    /// The workspace or its history attaches a file that a walk would leave out.
    #[error(
        "not all that is attached is in the list: {path} is attached by the workspace or its history, and a walk would leave it out; \
         `jp attachment add` with that path has it offered all the same"
    )]
    NotWalked {
        /// Its path from the root.
        path: String,
    },
    /// No client can ask for a file of this name.
    #[error(
        "not all that is attached is in the list: the path {path:?} has a backslash or what looks like a drive letter, \
         so no client can name it; rename the file"
    )]
    Name {
        /// Its path from the root.
        path: String,
    },
    /// The list doesn't follow the conversation and its attachments.
    #[error(
        "the list stays as it is now: no thread could be started that follows the conversation: {0}"
    )]
    NotFollowed(#[source] io::Error),
    /// A look for changes panicked. The next one is tried.
    #[error(
        "for now nothing new is in the list: looking for it met a defect of jp; it is tried again"
    )]
    Defect,
    /// An attachment's URI is not one, as with some servers. Its snapshot is listed all the same.
    #[error("not all that is attached is in the list under its own URI: {0}")]
    Uri(#[source] RegisterError),
}
