//! The `jp` command.

mod args;
mod cmd;
mod console;
mod context;
mod environment;
mod error;
mod notices;
mod output;
mod prompt;
mod signals;
mod terminal;
mod wake;

use std::{process::ExitCode, sync::Arc};

use crate::{args::Args, console::Console, environment::Environment, output::Output};

fn main() -> ExitCode {
    let args = Args::read();
    let environment = Environment::read();
    let output = Output::new(&args.global, &environment);
    // Before any thread starts: a panic hook is global.
    wake::report_failures(&output);
    let console = Arc::new(Console::new(&environment, output));
    match cmd::run(args, &environment, &console) {
        Ok(code) => code.into(),
        Err(error) => console.output.fail(&error).into(),
    }
}
