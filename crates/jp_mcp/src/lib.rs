//! Talks to MCP servers as a client, and turns what they say into jp's types, losing nothing.
//!
//! [`Servers`] holds what is configured. A server is started when something needs it ([`Servers::connect`]), over stdio or
//! Streamable HTTP, and in the revision of MCP that it speaks: 2026-07-28, where each request stands for itself, or one of those
//! that begin with `initialize`. A [`Connection`] lists ([`Connection::tools`]), reads ([`Connection::resource`]), calls
//! ([`Connection::call`]) and completes; whoever does waits on their own thread, and is asked and told what comes up meanwhile
//! ([`Caller`]). All bounds are in [`Limits`]; each has a [`Fault`] of its own.
//!
//! Where a server wants to know who asks, someone logs in once ([`Servers::log_in`]); what that gives is kept in [`Tokens`].
//!
//! rmcp has the protocol's lifecycles, sessions and streams, and shows nowhere outside. `raw` keeps the answers as they came,
//! `content` and `listing` read them, `attendant` answers what a server asks by itself.

mod attendant;
mod auth;
mod caller;
mod config;
mod connection;
mod content;
mod error;
mod http;
mod listing;
mod probe;
mod raw;
mod request;
mod requests;
mod servers;
mod stdio;
mod tool_headers;

pub use attendant::Change;
pub use auth::{KnownClient, Login, Tokens};
pub use caller::{Caller, Elicitation, Elicited, LogMessage, Progress};
pub use config::{Client, Endpoint, Limits, Program, Revision, ServerConfig, Transport};
pub use connection::{About, Connection};
pub use content::Read;
pub use error::{Fault, HttpStatus, ServerError};
pub use listing::{Listed, ResourceInfo, TemplateInfo, ToolAnnotations, ToolInfo};
pub use requests::Called;
pub use servers::Servers;
