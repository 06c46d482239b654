//! `jp mcp login` and `logout`.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    args::McpLogin,
    context::Context,
    error::{Code, Failure},
    output::Output,
};
use jp_mcp::{Caller, Elicitation, Elicited, Fault, KnownClient, Login, ServerError, Transport};
use jp_session::servers::{Refusal, Servers, advice};

/// How long the person may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// The person, who visits the page that they are shown.
struct Visitor<'a> {
    output: &'a Output,
    cancelled: &'a AtomicBool,
}

impl Caller for Visitor<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn asked(&self, elicitation: &Elicitation) -> Elicited {
        let Elicitation::Url { url, .. } = elicitation else {
            return Elicited::Decline;
        };
        // It is what the person came for: said whatever `-q` says.
        self.output.tell(
            crate::output::Tone::Strong,
            "Open this page in a browser on this machine, and agree there:",
        );
        self.output.tell(crate::output::Tone::Plain, url);
        self.output
            .status("Waiting for the page to lead back; Ctrl-C gives it up.");
        Elicited::Accept(None)
    }
}

/// Logs in.
pub(super) fn log_in(
    context: &Context<'_>,
    servers: &Servers,
    login: McpLogin,
) -> Result<Code, Failure> {
    let name = &login.server;
    servers.check(name)?;
    if !servers.approve_or_ask(&context.session, name)? {
        return Err(Failure::new(format!(
            "the MCP server `{name}` is not asked: the workspace configures it"
        )));
    }
    if let Err(refusal @ Refusal::NoToken { .. }) = servers.check_token(name) {
        return Err(advice::failure(refusal)
            .with_hint(format!(
                "or take providers.mcp.{name}.token_env away, where you want to log in."
            ))
            .into());
    }
    let secret = login
        .client_secret_env
        .as_ref()
        .map(|variable| secret(variable))
        .transpose()?;
    let wanted = Login {
        client: login.client_id.map(|id| KnownClient { id, secret }),
        metadata_url: None,
        challenge: challenge(context, servers, name)?,
        scopes: login.scope,
        port: login.port,
        timeout: PATIENCE,
    };
    let visitor = Visitor {
        output: context.output,
        cancelled: context.session.interrupt().flag(),
    };
    servers
        .servers
        .log_in(name, &wanted, &visitor)
        .map_err(advice::failure)?;
    context.output.status(&format!(
        "Logged in at `{name}`; `jp mcp ls {name}` shows what it has for you."
    ));
    Ok(Code::Done)
}

/// Returns what the server says it wants of whoever asks, where it refuses who asks now: it may name rights that they lack.
fn challenge(
    context: &Context<'_>,
    servers: &Servers,
    name: &str,
) -> Result<Option<String>, Failure> {
    let mut answers = servers.ask(&context.session, &[name], "Waiting for", |_, _| Ok(()))?;
    let Some((
        _,
        Err(Refusal::Server(ServerError {
            fault: Fault::Status(status),
            ..
        })),
    )) = answers.pop()
    else {
        return Ok(None);
    };
    Ok(status
        .challenge
        .filter(|_| matches!(status.status, 401 | 403)))
}

fn secret(variable: &str) -> Result<String, Failure> {
    let secret = env::var(variable).ok().filter(|secret| !secret.is_empty());
    secret.ok_or_else(|| {
        Failure::usage(format!(
            "--client-secret-env names the variable {variable}, which is not set"
        ))
    })
}

/// Forgets what a login gave.
pub(super) fn log_out(
    context: &Context<'_>,
    servers: &Servers,
    name: &str,
) -> Result<Code, Failure> {
    servers.check(name)?;
    let Some(Transport::Http(endpoint)) =
        servers.servers.config(name).map(|config| &config.transport)
    else {
        return Err(Failure::new(format!(
            "the MCP server `{name}` is a program: nobody logs in there"
        )));
    };
    let was_there = servers.tokens.forget(&endpoint.url).map_err(|error| {
        Failure::new(format!("failed to forget the login at `{name}`: {error}"))
    })?;
    let told = if was_there {
        "Logged out of"
    } else {
        "Nobody was logged in at"
    };
    context.output.status(&format!("{told} `{name}`."));
    Ok(Code::Done)
}
