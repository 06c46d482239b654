//! Keeps conversations and blobs on disk.
//!
//! A [`Workspace`] is the directory that holds `.jp/`. A [`Store`] keeps conversations: in `.jp/`, to
//! be shared, or in the user's data directory. [`Store::read`] gives a [`Conversation`];
//! [`Store::writer`] appends to it under its [`lock`]. Content is in [`Blobs`], named by checksum, and
//! is durable before the event that names it. [`Places`] keeps the workspace's path out of all files.
//! [`Index`], [`Stamps`] and the current conversation ([`Sessions`]) are derived data outside `.jp/`.
//!
//! The crate moves bytes and JSON; what URIs and content mean is not its business.

mod blobs;
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
mod sessions;
mod stamps;
mod steady;
mod store;
mod tree;
mod trust;
mod workspace;
mod writer;

pub use blobs::{
    Batch, BlobError, BlobFile, BlobFiles, BlobStatus, Blobs, CommitReport, Damage, Leftovers,
    ReadAhead,
};
pub use conversation::{Conversation, ReadError, read_events};
pub use directory::{NotRegular, RefusedLink};
pub use id::ConversationId;
pub use index::{Index, Summary};
pub use metadata::Metadata;
pub use places::Places;
pub use sessions::Sessions;
pub use stamps::{FileState, KnownContent, Stamps};
pub use store::{Located, Store, StoreError};
pub use tree::read_regular;
pub use trust::Trust;
pub use workspace::{InitError, Workspace};
pub use writer::{Pending, WriteError, Writer};
