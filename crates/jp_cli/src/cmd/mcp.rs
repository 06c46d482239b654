//! `jp mcp`.
//!
//! All that servers send is theirs to choose: in tables it is on one line, shortened, with what can't be seen as its escape.

mod listed;
mod login;
mod offered;
mod read;
mod serve;

use crate::{
    args::Mcp,
    context::Context,
    error::{Code, Failure},
};
use jp_mcp::{Caller, Connection, ServerError};
use jp_session::{
    servers::{Answer, Servers, advice},
    text::one_line,
};

/// How much of a name or a description is shown, and of what has to be whole to be of use.
const SHOWN: usize = 80;
const SHOWN_URI: usize = 300;

pub(crate) fn run(command: Mcp, context: &Context<'_>) -> Result<Code, Failure> {
    let config = context.session.config(None, &[])?;
    let command = match command {
        Mcp::Serve(wanted) => return serve::run(context, &config, &wanted),
        command => command,
    };
    let servers = context.session.servers(&config)?;
    match command {
        Mcp::Ls { server: None } => offered::list(context, servers),
        Mcp::Ls {
            server: Some(server),
        } => offered::tools(context, servers, &config, &server),
        Mcp::Resources { servers: names } => {
            listed::resources(context, &chosen(context, servers, &names)?)
        }
        Mcp::Templates { servers: names } => {
            listed::templates(context, &chosen(context, servers, &names)?)
        }
        Mcp::Serve(_) => unreachable!("returned above: it needs no other server"),
        Mcp::Login(wanted) => login::log_in(context, servers, wanted),
        Mcp::Logout { server } => login::log_out(context, servers, &server),
        Mcp::Read {
            server,
            uri,
            watch: false,
        } => read::once(context, servers, &server, &uri),
        Mcp::Read {
            server,
            uri,
            watch: true,
        } => read::each_change(context, servers, &server, &uri),
    }
}

/// Servers that are asked something.
struct Chosen<'a> {
    servers: &'a Servers,
    names: Vec<&'a str>,
}

/// Chooses the servers that are named, each once; all of them where none is.
fn chosen<'a>(
    context: &Context<'_>,
    servers: &'a Servers,
    names: &'a [String],
) -> Result<Chosen<'a>, Failure> {
    names.iter().try_for_each(|name| servers.check(name))?;
    let is_first = |(index, name): &(usize, &String)| !names[..*index].contains(name);
    let named: Vec<_> = names
        .iter()
        .enumerate()
        .filter(is_first)
        .map(|(_, name)| name.as_str())
        .collect();
    if servers.is_empty() {
        context.output.status("No MCP server is configured.");
        context.output.hint(
            "`[providers.mcp.NAME]` in ~/.config/jp/config.toml names one; `jp help mcp-servers` explains how.",
        );
    }
    let names = if named.is_empty() {
        servers.names().collect()
    } else {
        named
    };
    Ok(Chosen { servers, names })
}

impl Chosen<'_> {
    /// Asks all of them at once.
    fn ask<T: Send>(
        &self,
        context: &Context<'_>,
        ask: impl Fn(&Connection, &dyn Caller) -> Result<T, ServerError> + Sync,
    ) -> Result<Vec<Answer<T>>, Failure> {
        let answers = self.servers.ask(
            &context.session,
            &self.names,
            "Waiting for",
            |connection, caller| ask(connection, caller),
        )?;
        Ok(answers)
    }

    /// Asks the one that was chosen.
    fn ask_one<T: Send>(
        &self,
        context: &Context<'_>,
        ask: impl Fn(&Connection, &dyn Caller) -> Result<T, ServerError> + Sync,
    ) -> Result<T, Failure> {
        let mut answers = self.ask(context, ask)?;
        let (_, answer) = answers
            .pop()
            .unwrap_or_else(|| unreachable!("one is chosen"));
        Ok(answer.map_err(advice::failure)?)
    }
}

/// Returns the beginning of a server's text.
fn shown(text: &str) -> String {
    one_line(text, SHOWN)
}

/// Returns the beginning of the first line of a server's text.
fn first_line(text: Option<&str>) -> String {
    let lines = text.unwrap_or_default().lines().map(str::trim);
    lines
        .into_iter()
        .find(|line| !line.is_empty())
        .map(shown)
        .unwrap_or_default()
}
