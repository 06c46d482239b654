//! Proves to servers who asks (MCP 2025-11-25 and 2026-07-28, "Authorization").
//!
//! A person logs in once ([`log_in`]): jp finds out where, makes itself known there, shows the page on which the person agrees,
//! and trades what comes back for tokens. Each request then carries one, and a token that runs out is renewed without the
//! person ([`Access`]). rmcp has the protocol's rules (RFC 6749, 7636, 8414, 8707, 9207, 9728); here is what it leaves to
//! whoever uses it: where tokens are kept, which page is shown, what comes back from it.

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
/// The caller is asked to visit the page, as for [`Elicitation::Url`]; this then waits until the page leads back.
pub(crate) fn log_in(
    runtime: &Runtime,
    endpoint: &Endpoint,
    tokens: &Tokens,
    login: &Login,
    caller: &dyn Caller,
) -> Result<(), Fault> {
    if !is_safe(&endpoint.url) {
        return Err(Fault::Login(format!(
            "{} is not reached by https",
            endpoint.url
        )));
    }
    if access::is_configured(endpoint) {
        return Err(Fault::Login(
            "the configuration says already what proves who asks".to_owned(),
        ));
    }
    let redirect = Redirect::listen(login.port).map_err(|error| {
        Fault::Login(format!(
            "the port for the way back can't be listened on: {error}"
        ))
    })?;
    // Of a file that is damaged nothing is left to build on.
    let before = tokens.load(&endpoint.url).ok().flatten();
    let begun = PendingLogin::new(&endpoint.url, login, before.as_ref(), redirect.uri());
    let begun = runtime.block_on(while_wanted(begun, caller))?;
    let page = Elicitation::Url {
        message: "Log in, so that jp can ask this server in your name.".to_owned(),
        url: begun.page().to_string(),
    };
    if !matches!(caller.asked(&page), Elicited::Accept(_)) {
        return Err(Fault::Login("its page was not visited".to_owned()));
    }
    let back = redirect.wait(&begun.state()?, login.timeout, caller)?;
    let kept = runtime.block_on(while_wanted(begun.finish(&back), caller))?;
    let _lock = tokens.lock(&endpoint.url).map_err(storage_fault)?;
    tokens.save(&kept).map_err(storage_fault)
}

fn storage_fault(error: io::Error) -> Fault {
    Fault::Login(format!("its tokens can't be kept: {error}"))
}

/// Waits for something until the caller cancels.
async fn while_wanted<T>(
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
