//! One module a command.

mod attachment;
mod config;
mod conversation;
mod init;
mod query;
mod resource;
mod storage;

use crate::{
    args::{Args, Command},
    environment::Environment,
    error::{Code, Failure},
    output::Output,
    workspace::Context,
};

/// Runs a command.
pub(crate) fn run(args: Args, environment: &Environment, output: &Output) -> Result<Code, Failure> {
    let command = match args.command {
        Command::Init(init) => return init::run(&init, environment, output),
        command => command,
    };
    let context = Context::open(&args.global, environment, output)?;
    match command {
        Command::Init(_) => unreachable!("returned above: a workspace to be made can't be opened"),
        Command::Query(query) => query::run(query, &context),
        Command::Attachment(command) => attachment::run(command, &context),
        Command::Resource(command) => resource::run(command, &context),
        Command::Conversation(command) => conversation::run(command, &context),
        Command::Config(command) => config::run(command, &context),
        Command::Storage(command) => storage::run(&command, &context),
    }
}
