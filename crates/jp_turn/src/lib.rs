//! Runs one turn: sends a request, runs the tools that the model calls, and yields events until the answer ends.
//!
//! [`run`] takes a [`Turn`] and tells its [`Host`] as it goes: each [`TurnEvent`] is something to show
//! ([`TurnEvent::Delta`], [`TurnEvent::Retry`], [`TurnEvent::Notice`], [`TurnEvent::Called`]), to store
//! ([`TurnEvent::Record`]) or to ask the person ([`TurnEvent::Permit`], [`TurnEvent::Ask`]), with a channel for the
//! answer. Whatever was shown is stored too, however the turn ends; the [`Outcome`] says how. Nothing here prints,
//! prompts, looks at a clock or reads the environment.
//!
//! A [`Tool`] is a program of the person's ([`Command`]), one of jp's own ([`Builtin`]) or an MCP server's ([`ServerTool`]); the [`Toolbox`] holds those
//! of a turn and what they share. Each call runs on a thread of its own, straight from what the model wrote to the
//! result: `call` checks and asks for leave, `local`, `builtin` or `server` does it, `question` answers what the tool asks and
//! runs it again, `record` makes the event. What a call wants of the outside goes to `calls`, the one place that has
//! the host.

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
