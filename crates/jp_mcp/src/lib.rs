//! A client of MCP servers that loses nothing of their answers.
//!
//! Main types, in reading order:
//!
//! - [`ServerConfig`]: a server's transport, which is a [`Program`] (stdio) or an [`Endpoint`]
//!   (Streamable HTTP), and its [`Revision`] of MCP. jp negotiates the revision by default.
//! - [`Servers`]: the configured servers. [`Servers::connect`] starts a server at its first use; drop ends
//!   them all. [`Servers::log_in`] logs the user in, and [`Tokens`] stores the tokens.
//! - [`Connection`]: lists ([`Connection::tools`]), reads ([`Connection::resource`]), calls
//!   ([`Connection::call`]) and completes. Each blocks the thread of the caller.
//! - [`Caller`]: answers the server's questions, receives its progress and log messages on the same thread,
//!   and can cancel.
//! - [`Limits`]: the bounds on a server's messages. Each has its own [`Fault`].
//!
//! rmcp implements the protocol's lifecycles, sessions and streams, and is not part of this API. `raw`
//! keeps the original answers, `content` and `listing` read them, `attendant` answers the requests of
//! servers.
//!
//! ```no_run
//! use std::{collections::BTreeMap, time::Duration};
//!
//! use jp_mcp::{Client, Program, ServerConfig, Servers, Transport};
//! use serde_json::{Map, json};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ServerConfig {
//!     name: "clock".to_owned(),
//!     transport: Transport::Stdio(Program {
//!         program: "mcp-server-time".to_owned(),
//!         arguments: Vec::new(),
//!         environment: BTreeMap::new(),
//!         withheld: vec!["OPENAI_API_KEY".to_owned()],
//!         directory: "/home/me/project".into(),
//!     }),
//!     revision: None,
//!     startup_timeout: Duration::from_secs(30),
//!     timeout: Duration::from_secs(60),
//! };
//! let client = Client {
//!     version: "1.0.0".to_owned(),
//!     root: "/home/me/project".into(),
//!     wants_logs: false,
//! };
//! let servers = Servers::new(vec![clock], client)?;
//!
//! // `()` is a caller that declines every question.
//! let connection = servers.connect("clock", &())?;
//! for tool in connection.tools(&())?.items {
//!     println!("{}: {}", tool.name, tool.description.unwrap_or_default());
//! }
//! let arguments = Map::from_iter([("timezone".to_owned(), json!("Europe/Paris"))]);
//! let called = connection.call("get_current_time", &arguments, &())?;
//! println!("{:?}", called.response.content);
//! # Ok(())
//! # }
//! ```

mod attendant;
mod auth;
mod caller;
mod config;
mod connect;
mod connection;
mod content;
mod cryptography;
mod error;
mod http;
mod list_items;
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
pub use list_items::{Listed, ResourceInfo, TemplateInfo, ToolAnnotations, ToolInfo};
pub use requests::Called;
pub use servers::Servers;
