//! Runs one turn: sends a request, runs the tools that the model calls, and repeats until the
//! answer ends.
//!
//! Main types, in reading order:
//!
//! - [`Tool`]: one that models may call, from a [`Source`]: a program of the user's ([`Command`]), one
//!   of jp's own ([`Builtin`]), or an MCP server's ([`ServerTool`]).
//! - [`Toolbox`]: the tools of a turn and what they share, such as the workspace's [`Files`].
//! - [`Turn`]: what to send where. [`run`] takes it and returns the [`Outcome`].
//! - [`Host`]: the application. It receives each [`TurnEvent`]: something to show, to store
//!   ([`TurnEvent::Record`]) or to ask the user ([`TurnEvent::Permit`], [`TurnEvent::Ask`]), with a
//!   channel for the answer. Whatever was shown is stored too, however the turn ends.
//!
//! Each call runs on a thread of its own: `call` checks it and asks for permission, `local`,
//! `builtin`, `server` or `stateful` carries it out, `question` answers what the tool asks and runs
//! it again, `record` makes the event. A call reaches the host only through its `line` to `calls`.
//! Nothing here prints, prompts, looks at the clock or reads the environment.
//!
//! ```
//! use std::{error::Error, sync::Arc};
//!
//! use jp_conversation::EventKind;
//! use jp_llm::{BaseUrl, Body, Client, Endpoint};
//! use jp_resource::Checksum;
//! use jp_turn::{Builtin, Delta, Files, Host, Outcome, Surroundings, Toolbox, Turn, TurnEvent, run};
//!
//! #[derive(Default)]
//! struct Screen(String);
//!
//! impl Host for Screen {
//!     fn take(&mut self, event: TurnEvent<'_>) {
//!         if let TurnEvent::Delta(Delta::Text(text)) = event {
//!             self.0.push_str(text);
//!         }
//!     }
//!
//!     fn body(&mut self, _: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
//!         // A real host encodes its conversation: `jp_llm::Format::body`.
//!         Ok(Body::new(|_| Ok(()))?.0)
//!     }
//!
//!     fn blob(&mut self, _: &Checksum) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
//!         Ok(None)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn Error>> {
//! let directory = tempfile::tempdir()?;
//! let files = Files::open(directory.path(), &[])?;
//! let tools = vec![Builtin::ReadFile.tool(), Builtin::ListFiles.tool()];
//! let toolbox = Arc::new(Toolbox::new(tools, Surroundings::default(), files));
//!
//! # let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! # let answer = format!("{}{finish}", testing::chunk("Hello!"));
//! # let server = testing::Server::new(vec![testing::Reply::stream(&answer)]);
//! # let url = server.url();
//! let client = Client::new(Endpoint::new("llamacpp", BaseUrl::parse(url)?, "qwen3"))?;
//! let turn = Turn {
//!     client: &client,
//!     toolbox: &toolbox,
//!     model: "llamacpp/qwen3",
//!     check: None,
//!     max_rounds: Turn::MAX_ROUNDS,
//! };
//! let mut screen = Screen::default();
//! let outcome = testing::block_on(run(turn, std::future::pending(), &mut screen));
//! assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
//! assert_eq!(screen.0, "Hello!");
//! # Ok(())
//! # }
//! ```

mod answer;
mod arguments;
mod ask;
mod builtin;
mod call;
mod calls;
mod command;
mod excerpt;
mod host;
mod inquiry;
mod line;
mod local;
mod parse;
mod plain_text;
mod plan;
mod question;
mod record;
mod run;
mod schema;
mod server;
mod stateful;
mod tool;
mod toolbox;
mod turnstile;

pub use ask::{Decision, PermissionRequest, Preview, Question, Reply, Verdict};
pub use builtin::{
    Builtin, Consent, FileState, Files, FilesError, Refresh, Refreshed, Refreshing, marked_files,
    shell::serve as serve_shell,
};
pub use command::Command;
pub use host::{Check, Delta, Host, Outcome, Turn, TurnEvent};
pub use parse::{Parsed, parse_command_output};
pub use run::run;
pub use schema::{Schema, SchemaError};
pub use stateful::end_kept;
pub use tool::{Action, Answerer, Permission, ServerTool, Source, Stateful, Tool};
pub use toolbox::{Surroundings, Toolbox};
