//! Authorizes requests to servers (MCP 2025-11-25 and 2026-07-28, "Authorization").
//!
//! The user logs in once ([`log_in`]). jp finds the authorization server, registers there, shows the page on
//! which the user approves, and exchanges the page's code for tokens. Each request then carries a token, and
//! an expired token is renewed automatically ([`Access`]).
//!
//! rmcp implements the protocol (RFC 6749, 7636, 8414, 8707, 9207, 9728). This module stores the tokens, shows
//! the page and receives its redirect.

mod access;
mod flow;
mod login;
mod near;
mod redirect;
mod tokens;

use std::{io, pin::pin};

use tokio::runtime::Runtime;

pub(crate) use access::Access;
use flow::PendingLogin;
use login::TICK;
pub use login::{KnownClient, Login};
use redirect::Redirect;
pub use tokens::Tokens;

use crate::{Caller, Elicitation, Elicited, Endpoint, Fault, config::is_safe};

/// Logs the user in at a server, and stores the tokens.
///
/// It asks the caller to visit the page ([`Elicitation::Url`]), then waits for the page's redirect.
pub(crate) fn log_in(
    runtime: &Runtime,
    endpoint: &Endpoint,
    tokens: &Tokens,
    login: &Login,
    caller: &dyn Caller,
) -> Result<(), Fault> {
    if !is_safe(&endpoint.url) {
        return Err(Fault::Login(format!("{} does not use https", endpoint.url)));
    }
    if access::is_configured(endpoint) {
        return Err(Fault::Login(
            "the configuration already has a token or an Authorization header".to_owned(),
        ));
    }
    let redirect = Redirect::listen(login.port).map_err(|error| {
        Fault::Login(format!(
            "jp can't listen on the port for the redirect: {error}"
        ))
    })?;
    // A damaged file counts as missing. The login replaces it.
    let before = tokens.load(&endpoint.url).ok().flatten();
    let pending = PendingLogin::new(&endpoint.url, login, before.as_ref(), redirect.uri());
    let pending = runtime.block_on(until_cancelled(pending, caller))?;
    let page = Elicitation::Url {
        message: "Log in, so that jp can use this server in your name.".to_owned(),
        url: pending.page().to_string(),
    };
    if !matches!(caller.answer(&page), Elicited::Accept(_)) {
        return Err(Fault::Login("you declined to visit its page".to_owned()));
    }
    let target = redirect.wait(&pending.state()?, login.timeout, caller)?;
    let stored = runtime.block_on(until_cancelled(pending.finish(&target), caller))?;
    let _lock = tokens.lock(&endpoint.url).map_err(storage_fault)?;
    tokens.save(&stored).map_err(storage_fault)
}

fn storage_fault(error: io::Error) -> Fault {
    Fault::Login(format!("its tokens can't be stored: {error}"))
}

/// Waits for a result until the caller cancels.
async fn until_cancelled<T>(
    wanted: impl Future<Output = Result<T, Fault>>,
    caller: &dyn Caller,
) -> Result<T, Fault> {
    let mut wanted = pin!(wanted);
    loop {
        if let Ok(result) = tokio::time::timeout(TICK, wanted.as_mut()).await {
            return result;
        }
        if caller.is_cancelled() {
            return Err(Fault::Interrupted);
        }
    }
}
