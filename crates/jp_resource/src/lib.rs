//! Resources and their names.
//!
//! Every piece of content that reaches a model is a [`Resource`]: an attached file, a part of a
//! tool's result, a resource of an MCP server. Its identity is its canonical URI ([`uri`]) together
//! with the [`Checksum`] of its raw bytes. All other fields describe it.
//!
//! In reading order: [`ResourceContent`] is the content itself. [`Resource`] is the content with
//! its metadata. [`BlobRef`] is a reference to content in a blob store. [`Payload`] is a value that
//! is either inline or in a blob store. [`Annotations`] are MCP's hints. [`mime`] maps MIME types
//! to the languages of code fences, and file names to MIME types.
//!
//! The crate does no I/O. The caller resolves links before it asks for the URI of a path.
//!
//! ```
//! use jp_resource::{Resource, ResourceContent};
//!
//! let resource = Resource::new("file:///project/src/main.rs", ResourceContent::Text("fn main() {}".into()))
//!     .with_mime_type("text/x-rust");
//! let json = serde_json::to_value(&resource).unwrap();
//! assert_eq!(json["text"], "fn main() {}");
//! assert_eq!(json["mimeType"], "text/x-rust");
//! ```

mod annotations;
mod blob;
mod content;
mod json;
pub mod mime;
mod resource;
pub mod uri;

pub use annotations::{Annotations, Role};
pub use blob::{BlobRef, Checksum, Encoding, ParseChecksumError, Payload};
pub use content::{ContentError, ResourceContent};
pub use json::decode_base64;
pub use resource::{Resource, Snapshot};
