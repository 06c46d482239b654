//! `jp mcp serve`: serves the workspace to MCP clients.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use crate::{
    args::McpServe,
    context::Context,
    error::{Code, SessionError},
};
use jp_config::Resolved;
use jp_serve::{Chosen, Offer, Settings, Warning};
use jp_session::attachments::{
    approval::warn_of_outside_file,
    declarations::{Bounds, place, read_configured},
};
use mcp_resources::{Http, ServeError, Server};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};

/// The environment variable with the token that clients must send.
const TOKEN_VARIABLE: &str = "JP_MCP_TOKEN";

/// The host names that clients on this machine use.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Serves the workspace until the client disconnects or the user ends it.
pub(super) fn run(
    context: &Context<'_>,
    config: &Resolved,
    wanted: &McpServe,
) -> Result<Code, SessionError> {
    let settings = read_settings(context, config, wanted)?;
    let (report, mut reports) = unbounded_channel();
    // Sending fails only at the end of the command, after the receiver is dropped.
    let offer = Offer::open(settings, move |warning| _ = report.send(warning))
        .map_err(|error| SessionError::from_library(&error))?;
    // Warnings of the start, before the server says that it is ready.
    while let Ok(warning) = reports.try_recv() {
        print_warning(context, &warning);
    }
    // The signal listener has its own runtime, so it must start outside of this command's.
    let interrupt = context.session.interrupt();
    let runtime = build_runtime(wanted)
        .map_err(|error| SessionError::from_system("start the network runtime", error))?;
    let served = runtime.block_on(async {
        tokio::select! {
            () = interrupt.wait() => Ok(()),
            served = serve(context, wanted, offer.server()) => served,
            () = print_warnings(context, reports) => unreachable!("it never ends"),
        }
    });
    // A thread may still read stdin or a large file. jp doesn't wait for it.
    runtime.shutdown_background();
    served.map(|()| Code::Done)
}

/// Builds the runtime of the server. One thread answers a single client on stdin faster. Two threads keep one HTTP client
/// from waiting while another subscribes.
fn build_runtime(wanted: &McpServe) -> io::Result<Runtime> {
    match wanted.http {
        Some(_) => Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build(),
        None => Builder::new_current_thread().enable_all().build(),
    }
}

fn read_settings(
    context: &Context<'_>,
    config: &Resolved,
    wanted: &McpServe,
) -> Result<Settings, SessionError> {
    let chosen = match &wanted.id {
        Some(id) => Chosen::Named(context.session.select(Some(id))?.located.id),
        None => Chosen::Current(context.session.sessions()),
    };
    // A local conversation is private to the user, so clients get it only if the user names it.
    if wanted.id.is_none()
        && let Some(current) = context.session.current()?.filter(|found| found.is_local)
    {
        let id = current.located.id;
        context.output.warn(&format!(
            "the current conversation, {id}, is not served because it is stored for you only"
        ));
        context
            .output
            .hint(&format!("`jp mcp serve --id {id}` serves it anyway."));
    }
    let place = place(context.setup(config))?;
    let Bounds {
        limits, secrets, ..
    } = Bounds::from_config(config);
    let configured = read_configured(config, &place)?;
    configured
        .refused
        .iter()
        .for_each(|declaration| warn_of_outside_file(&context.session, declaration));
    // Clients may read files that the user attached by name, but not those that only the workspace names.
    let own = configured
        .sources
        .into_iter()
        .filter(|(_, declared)| declared.is_trusted);
    Ok(Settings {
        own: own.map(|(declaration, _)| declaration).collect(),
        configured: configured.declarations,
        workspace: context.session.workspace.clone(),
        limits,
        place,
        secrets,
        chosen,
    })
}

async fn serve(
    context: &Context<'_>,
    wanted: &McpServe,
    server: Server,
) -> Result<(), SessionError> {
    match wanted.http {
        Some(address) => serve_http(context, wanted, server, address).await,
        None => serve_stdio(context, server).await,
    }
}

async fn serve_stdio(context: &Context<'_>, server: Server) -> Result<(), SessionError> {
    if context.environment.stdin_is_terminal {
        let root = context
            .session
            .surroundings
            .display(context.session.workspace.root());
        context.output.status(&format!(
            "Serving {root} to an MCP client on stdin; press Ctrl-C to stop."
        ));
        context
            .output
            .hint("MCP clients usually start this command themselves; `jp mcp serve --http 127.0.0.1:0` serves over HTTP.");
    }
    server.serve_stdio().await.map_err(word_serve_error)
}

async fn serve_http(
    context: &Context<'_>,
    wanted: &McpServe,
    server: Server,
    address: SocketAddr,
) -> Result<(), SessionError> {
    let token = std::env::var_os(TOKEN_VARIABLE);
    let has_token = token.is_some();
    if let Some(host) = wanted
        .allow_host
        .iter()
        .find(|host| !has_token && !is_local_host(host))
    {
        return Err(missing_token_error(host));
    }
    let mut http = Http::new(server);
    if let Some(token) = token {
        http = http.token(token);
    }
    if !wanted.allow_host.is_empty() {
        // The option adds names to the local ones instead of replacing them.
        let names = wanted
            .allow_host
            .iter()
            .map(String::as_str)
            .chain(LOCAL_HOSTS);
        http = http.allowed_hosts(names);
    }
    // Bound before the status line, which shows the port that the system chose for port 0.
    let bound = http.bind(address).await.map_err(word_serve_error)?;
    let root = context
        .session
        .surroundings
        .display(Path::new(context.session.workspace.root()));
    context.output.status(&format!(
        "Serving {root} at http://{}/mcp (press Ctrl-C to stop).",
        bound.address()
    ));
    if !has_token {
        context.output.hint(&format!(
            "every user and program on this machine can read it; set {TOKEN_VARIABLE} to require a token."
        ));
    }
    bound.serve().await.map_err(word_serve_error)
}

/// Returns whether a host, with or without a port, is a name of this machine that others can't use.
fn is_local_host(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    // An IPv6 address has colons of its own. Behind `]` or a name without colons, digits are a port.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (name.ends_with(']') || !name.contains(':')) => name,
        _ => host,
    };
    let address = name
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn missing_token_error(host: &str) -> SessionError {
    SessionError::usage(format!(
        "--allow-host {host} lets other machines read the workspace, which requires a token"
    ))
    .with_hint(format!(
        "set {TOKEN_VARIABLE} to the bearer token that clients must send."
    ))
}

/// Prints warnings about resources that clients can't see or watch; never ends.
async fn print_warnings(context: &Context<'_>, mut reports: UnboundedReceiver<Warning>) {
    while let Some(warning) = reports.recv().await {
        print_warning(context, &warning);
    }
    std::future::pending().await
}

fn print_warning(context: &Context<'_>, warning: &Warning) {
    context.output.warn(&crate::error::chain(warning));
}

/// Words the errors of the server for users, and adds hints.
fn word_serve_error(error: ServeError) -> SessionError {
    match &error {
        ServeError::Bind { address, source } => {
            SessionError::new(format!("failed to listen on {address}: {source}"))
                .with_hint("choose another port, or 0 for any free port.")
        }
        // Without a token every user of this machine may read, so an empty token must not count as none.
        ServeError::UnsendableToken => SessionError::usage(format!(
            "the token in {TOKEN_VARIABLE} is invalid: it is empty, has spaces, or is not ASCII"
        ))
        .with_hint(
            "set the variable to ASCII letters, digits and signs, or unset it to let every user of this machine read.",
        ),
        ServeError::Exposed { address } => SessionError::usage(format!(
            "other machines can reach {address}, which requires a token"
        ))
        .with_hint(format!(
            "set {TOKEN_VARIABLE}, and pass each host name that clients use with --allow-host; or listen on 127.0.0.1."
        )),
        _ => SessionError::new(crate::error::chain(&error)),
    }
}
