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
    #[error("offer the workspace at {path:?}: its path can't be part of a URI")]
    Uri {
        /// The root.
        path: PathBuf,
    },
    /// The root makes a template that can't be matched.
    #[error("offer the workspace's files")]
    Register(#[from] RegisterError),
}

/// A function that receives the warnings.
pub(crate) type Report = Arc<dyn Fn(Warning) + Send + Sync>;

/// A problem that clients don't see: a missing resource, or missing notifications.
#[derive(Debug, thiserror::Error)]
pub enum Warning {
    /// Changes of files are not seen.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A file or a declaration is not in the list.
    #[error("the list lacks an attachment: failed to {0}")]
    Attachment(#[source] AttachError),
    /// The conversation can't be read. jp tries again later.
    #[error("the list doesn't show changes of conversation {id} yet: failed to {source}")]
    Conversation {
        /// The conversation.
        id: ConversationId,
        /// The cause.
        source: ReadError,
    },
    /// The workspace or its history attaches a file that a walk would exclude.
    #[error(
        "the list lacks {path}: the workspace or its history attaches it, but jp would leave it out of a directory; \
         run `jp attachment add` with this path to offer it"
    )]
    NotWalked {
        /// Its path from the root.
        path: String,
    },
    /// No client can request a file with this name.
    #[error(
        "the list lacks {path:?}: clients can't request a path with a backslash or a drive letter; rename the file"
    )]
    Name {
        /// Its path from the root.
        path: String,
    },
    /// The list doesn't follow the conversation and its attachments.
    #[error(
        "the list won't show changes: the thread that follows the conversation could not be started: {0}"
    )]
    NotFollowed(#[source] io::Error),
    /// The search for changes panicked. jp tries again later.
    #[error(
        "the list doesn't show changes yet: jp has a bug in the search for them; it tries again"
    )]
    Defect,
    /// An attachment has an invalid URI from a server. Its snapshot is still listed.
    #[error("the list has an attachment only as a snapshot, without its own URI: {0}")]
    Uri(#[source] RegisterError),
}
