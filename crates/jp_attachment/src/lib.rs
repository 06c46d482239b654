//! Resolves declarations of attachments to resources.
//!
//! There are two steps. [`parse_input`] parses what the user typed, and [`parse_stored`] parses a
//! declaration of an earlier command or a configuration. Both return a [`Declared`]: the form to
//! store, which is valid on every machine, and its [`Source`] on this one. [`resolve`] turns
//! declarations into [`Resolved`] resources, with one handler for each scheme.
//!
//! Content goes into a [`ContentStore`], file by file, so that memory use stays small. A store may
//! know an unchanged file, which is then not read ([`Nowhere`] stores nothing). A source that can't
//! be attached is an [`AttachError`]; a [`Notice`] reports anything else that the user may not
//! expect.
//!
//! A directory or glob leaves out private keys, and files that hold secrets according to their
//! names. [`Secrets`] decides whether all text is scanned for tokens and passwords before it is
//! stored.
//!
//! A file inside the workspace has a `file:///…` URI. One outside has an `external:` URI, which
//! contains its name but not its directory. Neither is ever stored with the path of the home
//! directory. A page has its canonical URL ([`HttpUrl`]), which never contains credentials.
//!
//! ```
//! use std::{error::Error, fs, time::SystemTime};
//!
//! use jp_attachment::{Context, Nowhere, Place, canonical_path, parse_input, resolve};
//!
//! # fn main() -> Result<(), Box<dyn Error>> {
//! let directory = tempfile::tempdir()?;
//! fs::create_dir(directory.path().join("src"))?;
//! fs::write(directory.path().join("src/main.rs"), "fn main() {}")?;
//!
//! let root = canonical_path(directory.path())?;
//! let place = Place { current_dir: root.join("src"), ..Place::new(root) };
//! let declared = parse_input("*.rs", &place)?;
//! assert_eq!(declared.declaration.as_deref(), Some("file:src/*.rs"));
//!
//! let resolved = resolve(&[declared], &Context::new(&place, &Nowhere, SystemTime::now()))?;
//! assert_eq!(resolved.resources[0].name.as_deref(), Some("src/main.rs"));
//! assert_eq!(resolved.resources[0].mime_type.as_deref(), Some("text/x-rust"));
//! # Ok(())
//! # }
//! ```

mod bear;
mod classify;
mod clipboard;
mod command;
mod context;
mod data;
mod declare;
mod error;
mod exclude;
mod file;
mod glob;
mod http;
mod keep;
mod mcp;
mod parallel;
mod place;
mod progress;
mod resolve;
mod resolved;
mod scheme;
mod secret;
mod snapshot;
mod special_file;
mod stdin;
mod store;

pub use bear::{BearError, BearUri};
pub use classify::{binary_type, classify};
pub use clipboard::{ClipboardError, Displays};
pub use command::{CommandError, CommandLine};
pub use context::{Context, Limits, Secrets, Unavailable};
pub use declare::{
    ApprovalScope, Declared, Reach, Source, parse_configured, parse_input, parse_stored,
    possible_declarations,
};
pub use error::{AttachError, IgnoreRule, SpecialFile};
pub use exclude::Exclude;
pub use file::{IgnoreRules, LeftOut, Offered, Survey, Surveyed, Walked, is_never_entered};
pub use glob::Glob;
pub use http::{Credentials, HttpError, HttpUrl, redact};
pub use mcp::{McpContents, McpError, McpUri, ReadMcp, mcp_ttl};
pub use place::{ExternalKey, Place, canonical_path};
pub use progress::{Counts, Progress};
pub use resolve::resolve;
pub use resolved::{Delivered, Notice, Resolved, Totals};
pub use scheme::Scheme;
pub use secret::{Finding, find_secret, has_secret_name, is_private_key};
pub use store::{ContentStore, FileStamp, MemoryStore, Nowhere, StoredFile};
