//! Support for the tests of several crates.
//!
//! - [`Sandbox`] is a home with a workspace in it, in which tests run the `jp` binary; [`Terminal`] runs it at a
//!   terminal. [`mcp::Client`] is a client of MCP servers.
//! - [`Server`] plays a model's provider on loopback. [`answering`], [`playing`] and [`calling`] write its part;
//!   [`wire`] does it in all wire formats. [`mock`] has mock servers that others wrote.
//! - [`Background`] is a process that ends with the test; [`git`], [`copy_directory`] and [`free_port`] prepare what it needs.
//! - [`hostile_mcp`] is an MCP server with a mode for each thing that a server can get wrong; [`hostile`] configures it.
//!   [`programs`] has smaller servers, in Python.
//! - [`assert_contains`], [`assert_lacks`], [`assert_count`] and their like show the whole text if they fail; [`items`],
//!   [`column()`] and [`texts`] pick from a JSON document.
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
mod process;
pub mod programs;
mod sandbox;
mod server;
mod suite;
mod terminal;
pub mod wire;

pub use assert::{
    assert_contains, assert_count, assert_ends, assert_lacks, assert_starts, check_fields, column,
    items, texts,
};
pub use chat::{
    answer, answering, calling, calling_as, calling_in_turn, content_text, last_message,
    last_request, playing, requests, requests_to, results,
};
pub use process::{Background, copy_directory, free_port, git};
pub use programs::example;
pub use sandbox::{
    Arguments, Run, Sandbox, conversation_id, finish, is_root, run, shown, skip, start,
};
#[doc(hidden)]
pub use serde_json;
pub use server::{Received, Reply, Server, UNUSED_URL, block_on, chunk};
pub use suite::Suite;
pub use terminal::Terminal;
