//! `jp mcp`.
//!
//! Servers can send any text. Tables show it on one line, shortened, with control characters as escapes.

mod listed;
mod login;
mod offered;
mod read;
mod serve;

use crate::{
    args::Mcp,
    context::Context,
    error::{Code, SessionError},
};
use jp_mcp::{Caller, Connection, ServerError};
use jp_session::{
    servers::{Answer, Servers, advice},
    text::one_line,
};

/// Longest name or description that is shown, in characters: one row of a terminal.
const SHOWN: usize = 80;
/// Longest URI or message that is shown, in characters. A shortened URI is useless, so the limit only stops floods.
const SHOWN_URI: usize = 300;

pub(crate) fn run(command: Mcp, context: &Context<'_>) -> Result<Code, SessionError> {
    // Without a conversation: its history can't configure servers.
    let config = context.session.config(None, &[])?;
    let command = match command {
        Mcp::Serve(wanted) => return serve::run(context, &config, &wanted),
        command => command,
    };
    let servers = context.session.servers(&config)?;
    match command {
        Mcp::Ls { server: None } => offered::list_servers(context, servers),
        Mcp::Ls {
            server: Some(server),
        } => offered::list_tools(context, servers, &config, &server),
        Mcp::Resources { servers: names } => {
            listed::list_resources(context, &choose_servers(context, servers, &names)?)
        }
        Mcp::Templates { servers: names } => {
            listed::list_templates(context, &choose_servers(context, servers, &names)?)
        }
        Mcp::Serve(_) => unreachable!("it needs no other server and has returned above"),
        Mcp::Login(wanted) => login::log_in(context, servers, wanted),
        Mcp::Logout { server } => login::log_out(context, servers, &server),
        Mcp::Read {
            server,
            uri,
            watch: false,
        } => read::read_once(context, servers, &server, &uri),
        Mcp::Read {
            server,
            uri,
            watch: true,
        } => read::watch(context, servers, &server, &uri),
    }
}

/// The servers that a command asks.
struct ChosenServers<'a> {
    servers: &'a Servers,
    names: Vec<&'a str>,
}

/// Chooses the named servers, each once, or all servers if none is named.
fn choose_servers<'a>(
    context: &Context<'_>,
    servers: &'a Servers,
    names: &'a [String],
) -> Result<ChosenServers<'a>, SessionError> {
    // An unknown name fails before any server starts.
    names.iter().try_for_each(|name| servers.check(name))?;
    let mut named: Vec<&str> = Vec::new();
    for name in names {
        if !named.contains(&name.as_str()) {
            named.push(name);
        }
    }
    if servers.is_empty() {
        context
            .output
            .status("There are no configured MCP servers.");
        context.output.hint(
            "add [providers.mcp.NAME] to ~/.config/jp/config.toml; `jp help mcp-servers` explains how.",
        );
    }
    let names = if named.is_empty() {
        servers.names().collect()
    } else {
        named
    };
    Ok(ChosenServers { servers, names })
}

impl<'a> ChosenServers<'a> {
    /// Chooses one server; fails if it is not configured.
    fn only(servers: &'a Servers, name: &'a str) -> Result<Self, SessionError> {
        servers.check(name)?;
        Ok(Self {
            servers,
            names: vec![name],
        })
    }

    /// Asks all servers at the same time.
    fn ask<T: Send>(
        &self,
        context: &Context<'_>,
        ask: impl Fn(&Connection, &dyn Caller) -> Result<T, ServerError> + Sync,
    ) -> Result<Vec<Answer<T>>, SessionError> {
        self.servers.ask(
            &context.session,
            &self.names,
            "Waiting for",
            |connection, caller| ask(connection, caller),
        )
    }

    /// Asks the only chosen server.
    fn ask_one<T: Send>(
        &self,
        context: &Context<'_>,
        ask: impl Fn(&Connection, &dyn Caller) -> Result<T, ServerError> + Sync,
    ) -> Result<T, SessionError> {
        let mut answers = self.ask(context, ask)?;
        let (_, answer) = answers
            .pop()
            .unwrap_or_else(|| unreachable!("one server is chosen"));
        answer.map_err(advice::failure)
    }
}

/// Shortens a server's text for a table.
fn shorten(text: &str) -> String {
    one_line(text, SHOWN)
}

/// Shortens the first line of a server's text that is not blank.
fn shorten_first_line(text: Option<&str>) -> String {
    let mut lines = text.unwrap_or_default().lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty());
    line.map(shorten).unwrap_or_default()
}
