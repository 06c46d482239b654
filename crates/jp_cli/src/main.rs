//! The `jp` command.

mod args;
mod cmd;
mod environment;
mod error;
mod interrupt;
mod output;
mod progress;
mod scripts;
mod servers;
mod similar;
mod size;
mod terminal;
mod wake;
mod workspace;

use std::process::ExitCode;

use crate::{args::Args, environment::Environment, output::Output};

fn main() -> ExitCode {
    let args = Args::read();
    let environment = Environment::read();
    let output = Output::new(&args.global, &environment);
    wake::report_failures(&output);
    match cmd::run(args, &environment, &output) {
        Ok(code) => code.into(),
        Err(error) => output.fail(&error).into(),
    }
}
