//! Lets MCP clients read a workspace: `jp mcp serve`.
//!
//! [`Offer::open`] takes [`Settings`] from the command line and the configuration. It returns an [`Offer`],
//! whose [`server`](Offer::server) is an MCP server.
//!
//! ```
//! use std::collections::HashSet;
//!
//! use jp_attachment::{Limits, Place, Secrets, canonical_path};
//! use jp_serve::{Chosen, Offer, Settings};
//! use jp_storage::Workspace;
//!
//! # let directory = tempfile::tempdir()?;
//! # let user = tempfile::tempdir()?;
//! # let (root, data, cache) = (canonical_path(directory.path())?, user.path(), user.path());
//! # Workspace::init(&root, &[])?;
//! # std::fs::write(root.join("notes.md"), "# Notes")?;
//! let workspace = Workspace::open(&root, data, cache)?;
//! let offer = Offer::open(
//!     Settings {
//!         place: Place {
//!             root: root.clone(),
//!             current_dir: root.clone(),
//!             home: None,
//!             external_key: None,
//!         },
//!         configured: Vec::new(),
//!         own: HashSet::new(),
//!         limits: Limits::default(),
//!         secrets: Secrets::default(),
//!         chosen: Chosen::Current(workspace.sessions(None)),
//!         workspace,
//!     },
//!     |warning| eprintln!("{warning}"),
//! )?;
//! let server = offer.server(); // `server.run_stdio()` serves a client until it disconnects.
//!
//! let uri = format!("file://{}/notes.md", root.display());
//! assert!(server.registry().contains(&uri));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What clients can read
//!
//! | URI | content | module |
//! |---|---|---|
//! | those in the list | attachments of the chosen conversation, and its snapshots | `listing`, kept up to date by `follow` |
//! | `file:///…/{+path}` | the workspace's files that a walk would attach | `files` |
//! | `jp://conversation/{id}`, `jp://conversation/{id}/turn/{n}` | Markdown, like that of `jp conversation print` | `conversations` |
//! | `jp://blob/{sha256}` | content that a conversation keeps | `blobs` |
//!
//! # What it doesn't do
//!
//! It writes nothing, takes no lock, fetches nothing and runs no program.
//!
//! Lists and errors contain no path of the machine except the workspace's root. Attachments keep their names,
//! and a command line (`cmd:`) may have a path in its arguments. Content is unchanged, and a conversation
//! contains command lines and the output of tools.
//!
//! The workspace's configuration and history are not trusted. Clients can read a file that they attach only
//! if a walk would find it. Clients can always read a file that the user attached, even if it has secrets.

mod answer;
mod blobs;
mod conversations;
mod error;
mod files;
mod follow;
mod listing;
mod offer;
mod settings;
mod stamps;

pub use error::{OpenError, Warning};
pub use offer::Offer;
pub use settings::{Chosen, Settings};
