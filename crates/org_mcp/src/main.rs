#![doc = include_str!("../README.md")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints"
)]

mod arguments;
mod files;
mod org;
mod resources;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt::Display;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use mcp_resources::{FileWatch, Http, Registry, ServeError, Server};

use arguments::Arguments;
use files::Files;

const INSTRUCTIONS: &str = "Org files. Read org://FILE/outline first: it lists the path of each headline, for \
     org://FILE/headline/PATH, and its ID, if it has one, for org://id/ID.";

/// The environment variable with the token that clients send over HTTP.
const TOKEN: &str = "ORG_MCP_TOKEN";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", join_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let files = arguments.files(warn);
    if files.is_empty() {
        return Err(
            "there is no file to serve; name Org files that exist, or a pattern that matches some"
                .into(),
        );
    }
    let registry = Registry::new();
    registry.register_server("org", resources::resources(&Files::new(files)))?;
    let _watch = match FileWatch::start(&registry, warn) {
        Ok(watch) => Some(watch),
        // Clients can read files, and don't hear of changes.
        Err(error) => {
            warn(error);
            None
        }
    };
    let server = Server::new("org-mcp", env!("CARGO_PKG_VERSION"), registry)
        .title("Org files")
        .instructions(INSTRUCTIONS);
    match arguments.http {
        Some(address) => serve_http(server, address),
        None => Ok(server.run_stdio()?),
    }
}

#[tokio::main]
async fn serve_http(server: Server, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut http = Http::new(server);
    match std::env::var_os(TOKEN) {
        // A token that can't be sent is an error. To ignore it would let every user of the machine in.
        Some(token) => http = http.token(token),
        None => warn(format_args!(
            "every user of this machine can read the files, because {TOKEN} is not set"
        )),
    }
    let bound = http
        .bind(address)
        .await
        .map_err(|error| -> Box<dyn Error> {
            match error {
                ServeError::UnsendableToken => format!("{TOKEN} can't be used: {error}").into(),
                error => error.into(),
            }
        })?;
    println!("http://{}/mcp", bound.address());
    Ok(bound.serve().await?)
}

fn warn(problem: impl Display) {
    eprintln!("warning: {problem}");
}

/// Joins the messages of an error and its causes. A cause that its error repeats is left out.
fn join_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
