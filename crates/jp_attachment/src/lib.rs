//! Resolves what a person asked to attach to resources.
//!
//! In two steps. [`parse_input`] reads what was typed and [`parse_stored`] what an earlier command or
//! a configuration declared: both give a [`Declared`], which knows the form that is stored and good on
//! every machine, and what it stands for on this one. [`resolve`] turns declarations into [`Resolved`]
//! resources, one handler a scheme.
//!
//! Files are read, commands run, and `data:` URLs, stdin and the clipboard taken as they are.
//!
//! Content never leaves through a return value: a [`ContentStore`] takes it, file by file, and may know
//! an unchanged file without its being read ([`Nowhere`] keeps and knows nothing). What can't be attached is an [`AttachError`] that names it;
//! what is attached otherwise than one might expect is a [`Notice`].
//!
//! What a directory or glob gives is without files that hold secrets by their name, and without private
//! keys; [`Secrets`] has every text looked at for tokens and passwords before it is stored.
//!
//! A file inside the workspace is named by its `file:///…` URI; one outside by an `external:` URI, which
//! tells the name of the file and not where it is. Nothing that is stored of either has the home
//! directory in it. A page is named by its canonical URL ([`HttpUrl`]), which never holds credentials.
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
//! let place = Place { current_dir: root.join("src"), root, home: None, external_key: None };
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
mod data;
mod declare;
mod error;
mod exclude;
mod file;
mod glob;
mod handler;
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
mod special;
mod stdin;
mod store;

pub use bear::{BearError, BearUri};
pub use classify::{binary_type, classify};
pub use clipboard::{ClipboardError, Displays};
pub use command::{CommandError, CommandLine};
pub use declare::{
    ApprovalScope, Declared, Reach, Source, parse_configured, parse_input, parse_stored,
    possible_declarations,
};
pub use error::{AttachError, IgnoreRule, SpecialFile};
pub use exclude::Exclude;
pub use file::{IgnoreRules, LeftOut, Offered, Survey, Surveyed, Walked, is_never_entered};
pub use glob::Glob;
pub use handler::{Context, Limits, Secrets, Unavailable};
pub use http::{Credentials, HttpError, HttpUrl, redacted};
pub use mcp::{McpContents, McpError, McpUri, ReadMcp, mcp_ttl};
pub use place::{ExternalKey, Place, canonical_path};
pub use progress::{Counts, Progress};
pub use resolve::resolve;
pub use resolved::{Delivered, Notice, Resolved, Totals};
pub use scheme::Scheme;
pub use secret::{Finding, find_secret, has_secret_name, is_private_key};
pub use store::{ContentStore, FileStamp, Known, MemoryStore, Nowhere};
