//! The commands, one module each.

mod attachment;
mod config;
mod conversation;
mod help;
mod init;
mod mcp;
mod model;
mod query;
mod resource;
mod shell_session;
mod storage;

use std::sync::Arc;

use crate::{
    args::{self, Args, Command},
    console::Console,
    context::Context,
    environment::Environment,
    error::{Code, SessionError},
};

/// Returns whether a command only writes to disk, so that it has no purpose with `--no-persist`.
fn only_stores(command: &Command) -> bool {
    matches!(
        command,
        Command::Init(_)
            | Command::Attachment(args::Attachment::Add { .. } | args::Attachment::Rm { .. })
            | Command::Resource(args::Resource::Refresh { .. })
            | Command::Conversation(
                args::Conversation::Use { .. }
                    | args::Conversation::Fork { .. }
                    | args::Conversation::Rm { .. }
                    | args::Conversation::Compact(args::Compact { dry_run: false, .. })
            )
    )
}

/// Runs a command.
pub(crate) fn run(
    args: Args,
    environment: &Environment,
    console: &Arc<Console>,
) -> Result<Code, SessionError> {
    if args.global.no_persist && only_stores(&args.command) {
        return Err(SessionError::usage(
            "this command only writes to disk, which --no-persist forbids",
        ));
    }
    // These commands also work without a workspace.
    let command = match args.command {
        Command::Init(init) => return init::run(&init, environment, &console.output),
        Command::Help(help) => return help::run(&help.words, &console.output),
        Command::ShellSession => return shell_session::run(),
        command => command,
    };
    // The session writes locks and caches below the home directory, so the directory is checked first.
    environment.secure_substitute_home()?;
    let context = Context::open(&args.global, environment, console)?;
    match command {
        Command::Init(_) | Command::Help(_) | Command::ShellSession => {
            unreachable!("they need no workspace and have returned above")
        }
        Command::Query(query) => query::run(query, &context),
        Command::Attachment(command) => attachment::run(command, &context),
        Command::Resource(command) => resource::run(command, &context),
        Command::Conversation(command) => conversation::run(command, &context),
        Command::Config(command) => config::run(command, &context),
        Command::Storage(command) => storage::run(&command, &context),
        Command::Model(command) => model::run(&command, &context),
        Command::Mcp(command) => mcp::run(command, &context),
    }
}
