#![doc = include_str!("../README.md")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

mod arguments;
mod files;
mod org;
mod resources;

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use mcp_resources::{FileWatch, Http, Registry, Server};

use arguments::Arguments;
use files::Files;

const INSTRUCTIONS: &str = "Org files. Read org://FILE/outline first; it has the path of each headline, for \
     org://FILE/headline/PATH, and the ID of those that have one, for org://id/ID.";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            eprintln!("error: {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let files = arguments.files(|problem| eprintln!("warning: {problem}"));
    if files.is_empty() {
        return Err(
            "there is no file to serve; name Org files that exist, or a pattern that matches some".into()
        );
    }
    let registry = Registry::new();
    registry.register_server("org", resources::resources(Files::new(files)))?;
    // Without it files are served all the same.
    let _watch = FileWatch::start(&registry, |error| eprintln!("warning: {error}"))
        .map_err(|error| eprintln!("warning: {error}"));
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
    if let Ok(token) = std::env::var("ORG_MCP_TOKEN") {
        http = http.token(token);
    }
    let bound = http.bind(address).await?;
    println!("http://{}/mcp", bound.address());
    Ok(bound.serve().await?)
}
