//! Resources and their names.
//!
//! Every piece of content that reaches a model is a [`Resource`]: a file a person attached, what a
//! tool returned, what an MCP server served. Its identity is its canonical URI ([`uri`]) together
//! with the [`Checksum`] of its raw bytes; everything else on it is description.
//!
//! In reading order: [`ResourceContent`] is the content itself, [`Resource`] the content with its
//! metadata, [`BlobRef`] names content that is kept in a blob store, [`Payload`] is a value that is
//! either here or kept there, [`Annotations`] are MCP's hints. [`mime`] maps MIME types to code
//! fence languages and file extensions to MIME types.
//!
//! The crate does no I/O: canonicalisation of paths takes paths that the caller resolved.
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
