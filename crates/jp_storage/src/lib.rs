//! Keeps conversations and blobs on disk.
//!
//! Types, in reading order:
//!
//! - [`Workspace`] is the directory that holds `.jp/`.
//! - [`Store`] keeps conversations: in `.jp/`, which is shared, or in the user's data directory.
//!   [`Store::read`] returns a [`Conversation`], and [`Store::writer`] appends to it under its
//!   [`lock`].
//! - [`Blobs`] keeps content, named by checksum. Content is durable before the event that names it.
//! - [`Places`] keeps the workspace's path out of all files.
//! - [`Index`], [`Stamps`] and [`Sessions`] are derived data outside `.jp/`: deleting them costs
//!   time, not content.
//!
//! The crate moves bytes and JSON. It does not know what URIs and content mean.
//!
//! ```
//! use std::error::Error;
//!
//! use jiff::Timestamp;
//! use jp_conversation::{ChatRequest, Event, EventKind};
//! use jp_storage::Workspace;
//!
//! # fn main() -> Result<(), Box<dyn Error>> {
//! let directory = tempfile::tempdir()?;
//! let [root, data, cache] = ["project", "data", "cache"].map(|name| directory.path().join(name));
//! Workspace::init(&root, &[])?;
//! let store = Workspace::open(&root, &data, &cache)?.store();
//!
//! let now = Timestamp::now();
//! let mut writer = store.start(Some("A question"), now, &[])?;
//! let question = Event::new(now, EventKind::ChatRequest(ChatRequest::new("Why?")));
//! let batch = writer.batch();
//! writer.append(vec![question], batch)?;
//!
//! let located = &store.list()?[0];
//! assert_eq!(store.read(located)?.stream.events().len(), 1);
//! # Ok(())
//! # }
//! ```

mod blobs;
mod concurrent_read;
mod conversation;
mod directory;
pub mod events;
mod files;
mod id;
mod index;
mod legacy;
pub mod lock;
mod metadata;
mod places;
mod read_error;
mod sessions;
mod stamps;
mod store;
mod tree;
mod trust;
mod workspace;
mod writer;

pub use blobs::{
    Batch, BlobError, BlobFile, BlobFiles, BlobStatus, Blobs, CommitReport, Damage, Leftovers,
    ReadAhead,
};
pub use conversation::{Conversation, read_events};
pub use directory::{NotRegular, RefusedLink};
pub use id::ConversationId;
pub use index::{Index, Summary};
pub use metadata::Metadata;
pub use places::Places;
pub use read_error::ReadError;
pub use sessions::Sessions;
pub use stamps::{FileState, KnownContent, Stamps};
pub use store::{Located, Store, StoreError};
pub use tree::read_regular;
pub use trust::Trust;
pub use workspace::{InitError, Workspace};
pub use writer::{Pending, WriteError, Writer};
