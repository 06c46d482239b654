//! A library for MCP servers with resources. You register resources and their handlers; the library lists,
//! reads, completes and announces them.
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
//! # Main types
//!
//! - [`Registry`] keeps [`Resource`]s and [`ResourceTemplate`]s. Handlers are closures, [sync or async](Handler),
//!   that return text, bytes or [several contents](IntoContents). A registration is
//!   [all or nothing](Registry::register_server), and reports templates that overlap. Several servers may share
//!   a registry.
//! - [`template`] has URI templates (RFC 6570, levels 1 to 4). It expands them, and finds the template and the
//!   [`Parameters`] of a URI. The time grows with the length of the URI, whatever it holds, and hardly with the
//!   number of templates.
//! - [`Server`] speaks the protocol to clients of the revisions 2024-11-05 to 2026-07-28, over
//!   [standard input and output](Server::run_stdio) or [Streamable HTTP](Http): pages, completion,
//!   subscriptions, changes of the list, hints for caches. [rmcp's tools and prompts](Server::with_handler) work
//!   beside them.
//! - [`Root`] and [`PathParam`] keep paths from clients below a directory, symbolic links included. [`read_file`]
//!   is for paths from the user, [`read_unlinked`] for paths that the program has checked.
//!
//! # Guarantees
//!
//! - A handler that panics, fails, blocks or returns 100 MB costs its own request an error, and other requests
//!   nothing: see [`Limits`]. An async handler runs on the server's threads, though, and must not block.
//!   [`ReadError`] says what a client receives. A panic's message is not part of it.
//! - A URI is decoded once. A registered URI comes before all templates.
//! - Over HTTP only this machine is served, unless you name hosts and a token. `Host` and `Origin` are checked.
//! - A client that reads slowly is told that everything changed, instead of each change.
//!
//! # Without the protocol
//!
//! The features `stdio` and `http` are on by default. `server` alone has the protocol for your own transport.
//! Without any of them, the registry and the templates remain. [`Registry::read`] is also the way to test
//! handlers:
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
//! With `server`, types of rmcp are part of this crate's API. A new major version of rmcp is one of this crate,
//! and `mcp_resources::rmcp` is always the version that fits. rmcp's macros need a feature: depend on
//! `rmcp = "3"`, whose default features have `macros` and `server`, or enable the feature `macros` here. The
//! README has an example.
//!
//! The example `notes` is a whole server in about two hundred lines. The example `uri_template` shows templates
//! from a shell.

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
