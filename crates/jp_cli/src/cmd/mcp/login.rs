//! `jp mcp login` and `jp mcp logout`.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    args::McpLogin,
    context::Context,
    error::{Code, SessionError},
    output::Output,
};
use jp_mcp::{Caller, Elicitation, Elicited, Fault, KnownClient, Login, ServerError, Transport};
use jp_session::servers::{Refusal, Servers, advice};

/// The time that the user has to log in: ten minutes, like the authorization codes of many providers (RFC 6749 §4.1.2).
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// Shows the login page's address to the user.
struct LoginCaller<'a> {
    output: &'a Output,
    cancelled: &'a AtomicBool,
}

impl Caller for LoginCaller<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        // A login asks only for visits; a form would be something else.
        let Elicitation::Url { url, .. } = elicitation else {
            return Elicited::Decline;
        };
        // The command is useless without the address, so `--quiet` does not hide it.
        self.output.tell(
            crate::output::Tone::Strong,
            "Open this page in a browser on this machine and log in:",
        );
        self.output.tell(crate::output::Tone::Plain, url);
        self.output
            .status("Waiting for the login to complete; press Ctrl-C to cancel.");
        Elicited::Accept(None)
    }
}

/// Logs in to a server in the user's browser.
pub(super) fn log_in(
    context: &Context<'_>,
    servers: &Servers,
    login: McpLogin,
) -> Result<Code, SessionError> {
    let name = &login.server;
    servers.check(name)?;
    if !servers.approve_or_ask(&context.session, name)? {
        return Err(SessionError::new(format!(
            "the MCP server `{name}` needs your approval: the workspace configures it"
        )));
    }
    // jp never uses a login for a server with a configured token.
    if let Err(refusal @ Refusal::NoToken { .. }) = servers.check_token(name) {
        return Err(advice::failure(refusal).with_hint(format!(
            "to log in instead, remove providers.mcp.{name}.token_env."
        )));
    }
    let secret = login
        .client_secret_env
        .as_ref()
        .map(|variable| read_secret(variable))
        .transpose()?;
    let wanted = Login {
        client: login.client_id.map(|id| KnownClient { id, secret }),
        metadata_url: None,
        challenge: find_challenge(context, servers, name)?,
        scopes: login.scope,
        port: login.port,
        timeout: LOGIN_TIMEOUT,
    };
    let caller = LoginCaller {
        output: context.output,
        cancelled: context.session.interrupt().flag(),
    };
    servers
        .servers
        .log_in(name, &wanted, &caller)
        .map_err(advice::failure)?;
    context.output.status(&format!(
        "Logged in to `{name}`; `jp mcp ls {name}` lists its tools."
    ));
    Ok(Code::Done)
}

/// Returns the challenge (`WWW-Authenticate`) of a server that refuses a request. It may name the scopes that the login
/// needs (MCP 2025-11-25, "Scope Selection Strategy").
fn find_challenge(
    context: &Context<'_>,
    servers: &Servers,
    name: &str,
) -> Result<Option<String>, SessionError> {
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

fn read_secret(variable: &str) -> Result<String, SessionError> {
    let secret = env::var(variable).ok().filter(|secret| !secret.is_empty());
    secret.ok_or_else(|| {
        SessionError::usage(format!(
            "the variable {variable} of --client-secret-env is not set"
        ))
    })
}

/// Deletes the credentials of a login.
pub(super) fn log_out(
    context: &Context<'_>,
    servers: &Servers,
    name: &str,
) -> Result<Code, SessionError> {
    servers.check(name)?;
    let Some(Transport::Http(endpoint)) =
        servers.servers.config(name).map(|config| &config.transport)
    else {
        return Err(SessionError::new(format!(
            "the MCP server `{name}` is a program, which has no login"
        )));
    };
    let was_there = servers.tokens.forget(&endpoint.url).map_err(|error| {
        SessionError::new(format!(
            "failed to delete the credentials for `{name}`: {error}"
        ))
    })?;
    context.output.status(&match was_there {
        true => format!("Logged out of `{name}`."),
        false => format!("There are no stored credentials for `{name}`."),
    });
    Ok(Code::Done)
}
