//! MCP servers that give resources: register what there is, and it is listed, read, completed and announced.
//!
//! ```no_run
//! use mcp_resources::{Parameters, ReadError, Registry, Resource, ResourceTemplate, Root, Server};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let registry = Registry::new();
//!
//!     // A resource with a URI of its own.
//!     registry.register_resource(
//!         Resource::new("notes://today", "Today", || std::fs::read_to_string("today.md"))
//!             .description("What to do today")
//!             .mime_type("text/markdown"),
//!     )?;
//!
//!     // All files below a directory, and nothing outside of it, whatever the URI says.
//!     let root = Root::open("notes")?;
//!     registry.register_template(ResourceTemplate::new("notes:///{+path}", "Notes", move |parameters: Parameters| {
//!         root.read_text(&parameters.path("path")?).map_err(ReadError::from)
//!     }))?;
//!
//!     Server::new("notes", env!("CARGO_PKG_VERSION"), registry).run_stdio()?;
//!     Ok(())
//! }
//! ```
//!
//! # What is in it
//!
//! - [`Registry`]: [`Resource`]s and [`ResourceTemplate`]s, with handlers that are plain closures, [sync or async](Handler),
//!   and return text, bytes or [several contents](IntoContents). Registering is [all or nothing](Registry::register_server), counted, and
//!   says which templates overlap; several servers may share a registry.
//! - [`template`]: RFC 6570, levels 1 to 4, and the way back: which template is a URI of, with which
//!   [`Parameters`]? In time that grows with the URI's length, whatever is in it, and hardly with the number of templates.
//! - [`Server`]: the protocol, for clients of the revisions 2024-11-05 to 2026-07-28, over
//!   [standard input and output](Server::run_stdio) or [Streamable HTTP](Http). Pages, completion, subscriptions, changes of the
//!   list, hints for caches. Tools and prompts of [rmcp](Server::with_handler) fit in beside.
//! - [`Root`] and [`PathParam`]: paths that a client names stay below a directory, symbolic links included; [`read_file`] for those that
//!   the program names, [`read_unlinked`] for those that it has checked.
//!
//! # What it sees to
//!
//! - A handler that panics, fails, blocks, or gives 100 MB costs its own request an error, and no other anything: see
//!   [`Limits`]. An async one, though, runs where the server does and must not block. What a client is told is in
//!   [`ReadError`]; a panic's message is not.
//! - A URI is decoded once. A resource's own URI comes before all templates, so a template never gets it.
//! - Over HTTP only this machine is served unless you name hosts and a token; `Host` and `Origin` are checked.
//! - A client that reads slowly is told that everything changed instead of each change.
//!
//! # Without the protocol
//!
//! The features `stdio` and `http` are on by default; `server` is the protocol for a transport of your own. Without
//! them the registry and the templates remain, and [`Registry::read`], which is also the way to test handlers:
//!
//! ```
//! use mcp_resources::{Parameters, Registry, ResourceTemplate};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let registry = Registry::new();
//! registry.register_template(ResourceTemplate::new("greet://{name}", "Greeting", |parameters: Parameters| {
//!     parameters.text("name").map(|name| format!("Hello {name}!"))
//! }))?;
//! assert_eq!(registry.read("greet://you%20two").await?.text(), Some("Hello you two!"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With `server`, types of rmcp are in what this crate offers: a new major version of rmcp is one of this crate, and
//! `mcp_resources::rmcp` is always the one that fits. Its macros need a feature: depend on `rmcp = "3"`, whose default
//! features have `macros` and `server`, or enable the feature `macros` here. The README has an example.
//!
//! The example `notes` is a whole server in some two hundred lines; the example `uri_template` shows templates from a
//! shell.

mod call;
mod contents;
mod handler;
mod limits;
mod parameters;
mod path;
mod registry;
mod resource;
#[cfg(feature = "server")]
mod server;
pub mod template;
#[cfg(feature = "watch")]
mod watch;

pub use contents::{Body, Content, Contents, IntoContents, ReadError};
pub use handler::{Async, Blocking, Handler};
pub use limits::Limits;
pub use parameters::{ParameterError, Parameters};
pub use path::{PathError, PathParam, Root, read_file, read_unlinked};
pub use registry::{
    Bundle, Interest, Observing, Overlap, Reading, RegisterError, Registered, Registry,
};
pub use resource::{Annotations, CacheScope, Icon, Partial, Resource, ResourceTemplate, Role};
#[cfg(feature = "server")]
pub use rmcp;
#[cfg(feature = "http")]
pub use server::{BoundHttp, Http};
#[cfg(feature = "server")]
pub use server::{MethodMetrics, Metrics, NoHandler, ServeError, Server, Session};
#[cfg(feature = "watch")]
pub use watch::{FileWatch, WatchError};

/// The examples of the README.
#[cfg(all(doctest, feature = "stdio", feature = "macros"))]
#[doc = include_str!("../README.md")]
struct Readme;
