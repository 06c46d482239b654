//! What the tests of several crates share.
//!
//! - [`Sandbox`] is a home with a workspace in it, in which tests run the `jp` binary; [`Terminal`] runs it at a
//!   terminal. [`mcp::Client`] is a client of MCP servers.
//! - [`Server`] plays a model's provider on loopback. [`answering`], [`playing`] and [`calling`] write its part;
//!   [`wire`] does it in all wire formats. [`mock`] has mock servers that others wrote.
//! - [`hostile_mcp`] is an MCP server with a mode for each thing that a server can get wrong; [`hostile`] configures it.
//!   [`programs`] has smaller servers, in Python.
//! - [`assert_contains`], [`assert_lacks`] and [`assert_count`] show the whole text if they fail.
//!
//! ```
//! use testing::{Server, Reply};
//!
//! let server = Server::new(vec![Reply::words(&["Hello"])]);
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! ```

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assert;
mod chat;
pub mod hostile;
pub mod hostile_mcp;
pub mod mcp;
pub mod mock;
pub mod programs;
mod sandbox;
mod server;
mod suite;
mod terminal;
pub mod wire;

pub use assert::{assert_contains, assert_count, assert_lacks};
pub use chat::{answer, answering, calling, last_message, last_request, playing, results};
pub use programs::example;
pub use sandbox::{Arguments, Run, Sandbox, is_root, run, shown, skip};
pub use server::{Received, Reply, Server, UNUSED_URL, block_on, chunk};
pub use suite::Suite;
pub use terminal::Terminal;
