//! `jp mcp serve`.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use crate::{
    args::McpServe,
    context::Context,
    error::{Code, Failure},
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

/// The variable of the environment that has the token of clients.
const TOKEN: &str = "JP_MCP_TOKEN";

/// The names under which programs of this machine reach it.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Offers the workspace until the client is gone, or the person ends it.
pub(super) fn run(
    context: &Context<'_>,
    config: &Resolved,
    wanted: &McpServe,
) -> Result<Code, Failure> {
    let settings = settings(context, config, wanted)?;
    let (report, mut reports) = unbounded_channel();
    // Where nobody listens any more the command is at its end.
    let offer = Offer::open(settings, move |warning| _ = report.send(warning))?;
    while let Ok(warning) = reports.try_recv() {
        tell(context, &warning);
    }
    // It has a runtime of its own, and where there is no thread for that, it drops it.
    let interrupt = context.session.interrupt();
    let runtime = runtime(wanted)
        .map_err(|error| Failure::from_system("start the network runtime", error))?;
    let served = runtime.block_on(async {
        tokio::select! {
            () = interrupt.wait() => Ok(()),
            served = serve(context, wanted, offer.server()) => served,
            () = warn(context, reports) => unreachable!("it goes on for as long as the offer lives"),
        }
    });
    // Who still reads stdin, or a large file, is not waited for.
    runtime.shutdown_background();
    served.map(|()| Code::Done)
}

/// Makes what runs the server. One client on stdin has its requests answered faster on one thread; of several none waits
/// while another subscribes.
fn runtime(wanted: &McpServe) -> io::Result<Runtime> {
    match wanted.http {
        Some(_) => Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build(),
        None => Builder::new_current_thread().enable_all().build(),
    }
}

fn settings(
    context: &Context<'_>,
    config: &Resolved,
    wanted: &McpServe,
) -> Result<Settings, Failure> {
    let chosen = match &wanted.id {
        Some(id) => Chosen::Named(context.session.selected(Some(id))?.located.id),
        None => Chosen::Current(context.session.sessions()),
    };
    if wanted.id.is_none()
        && let Some(current) = context.session.current()?.filter(|found| found.is_local)
    {
        let id = current.located.id;
        context.output.warn(&format!(
            "the current conversation, {id}, is yours alone, so it is not offered"
        ));
        context
            .output
            .hint(&format!("`jp mcp serve --id {id}` offers it all the same."));
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

async fn serve(context: &Context<'_>, wanted: &McpServe, server: Server) -> Result<(), Failure> {
    match wanted.http {
        Some(address) => serve_http(context, wanted, server, address).await,
        None => serve_stdio(context, server).await,
    }
}

async fn serve_stdio(context: &Context<'_>, server: Server) -> Result<(), Failure> {
    if context.environment.stdin_is_terminal {
        let root = context
            .session
            .surroundings
            .display(context.session.workspace.root());
        context.output.status(&format!(
            "Offering {root} to an MCP client on stdin; Ctrl-C ends it."
        ));
        context
            .output
            .hint("an MCP client starts this command itself; `jp mcp serve --http 127.0.0.1:0` has a URL.");
    }
    server.serve_stdio().await.map_err(failure)
}

async fn serve_http(
    context: &Context<'_>,
    wanted: &McpServe,
    server: Server,
    address: SocketAddr,
) -> Result<(), Failure> {
    let token = std::env::var_os(TOKEN);
    let has_token = token.is_some();
    if let Some(host) = wanted
        .allow_host
        .iter()
        .find(|host| !has_token && !is_own_name(host))
    {
        return Err(unguarded(host));
    }
    let mut http = Http::new(server);
    if let Some(token) = token {
        http = http.token(token);
    }
    if !wanted.allow_host.is_empty() {
        let names = wanted
            .allow_host
            .iter()
            .map(String::as_str)
            .chain(OWN_NAMES);
        http = http.allowed_hosts(names);
    }
    let bound = http.bind(address).await.map_err(failure)?;
    let root = context
        .session
        .surroundings
        .display(Path::new(context.session.workspace.root()));
    context.output.status(&format!(
        "Offering {root} at http://{}/mcp (Ctrl-C ends it).",
        bound.address()
    ));
    if !has_token {
        context.output.hint(&format!(
            "every user of this machine can read it, as can all of its programs; set {TOKEN} to have a token asked for."
        ));
    }
    bound.serve().await.map_err(failure)
}

/// Returns whether a host, with or without a port, is this machine by its own name.
fn is_own_name(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
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

fn unguarded(host: &str) -> Failure {
    Failure::usage(format!(
        "with --allow-host {host} other machines can reach this, and not everyone is to read it"
    ))
    .with_hint(format!(
        "set {TOKEN} to what clients have to send as bearer token."
    ))
}

/// Tells what keeps clients from seeing things, or from hearing of changes; never ends.
async fn warn(context: &Context<'_>, mut reports: UnboundedReceiver<Warning>) {
    while let Some(warning) = reports.recv().await {
        tell(context, &warning);
    }
    std::future::pending().await
}

fn tell(context: &Context<'_>, warning: &Warning) {
    context.output.warn(&crate::error::chain(warning));
}

fn failure(error: ServeError) -> Failure {
    match &error {
        ServeError::Bind { address, source } => {
            Failure::new(format!("failed to listen to {address}: {source}"))
                .with_hint("name another port, or 0 for any that is free.")
        }
        // No token lets everyone of this machine in, so one that is nothing is not taken for none.
        ServeError::UnsendableToken => Failure::usage(format!(
            "the token in {TOKEN} can't be sent: it is empty, has spaces, or is not ASCII"
        ))
        .with_hint(
            "set the variable to letters, digits and signs alone, or unset it to let every user of this machine read.",
        ),
        ServeError::Exposed { address } => Failure::usage(format!(
            "{address} can be reached from other machines, and not everyone is to read this"
        ))
        .with_hint(format!(
            "set {TOKEN}, and name each host that clients use with --allow-host; or listen to 127.0.0.1."
        )),
        _ => Failure::new(crate::error::chain(&error)),
    }
}
