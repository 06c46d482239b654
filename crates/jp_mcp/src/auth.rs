//! Proves to servers who asks (MCP 2025-11-25 and 2026-07-28, "Authorization").
//!
//! A person logs in once ([`log_in`]): jp finds out where, makes itself known there, shows the page on which the person agrees,
//! and trades what comes back for tokens. Each request then carries one, and a token that runs out is renewed without the
//! person ([`Access`]). rmcp has the protocol's rules (RFC 6749, 7636, 8414, 8707, 9207, 9728); here is what it leaves to
//! whoever uses it: where tokens are kept, which page is shown, what comes back from it.

mod access;
mod flow;
mod near;
mod redirect;
mod tokens;

use std::{fmt, pin::pin, time::Duration};

use tokio::runtime::Runtime;
use url::Url;

pub(crate) use access::Access;
use flow::Begun;
use redirect::Redirect;
pub use tokens::Tokens;

use crate::{Caller, Elicitation, Elicited, Endpoint, Fault, config::is_loopback};

/// How often whoever waits is asked whether they still want to.
const TICK: Duration = Duration::from_millis(50);

/// How someone logs in.
#[derive(Clone)]
pub struct Login {
    /// What the authorization server knows jp by, where that was agreed on beforehand.
    pub client: Option<KnownClient>,
    /// Where jp describes itself to authorization servers that read such a document (`https`). They know jp by this URL.
    /// Where neither this nor [`Self::client`] serves, jp registers itself.
    pub metadata_url: Option<Url>,
    /// What the server answered to the request that it refused (`WWW-Authenticate`); without it, the server is asked.
    pub challenge: Option<String>,
    /// Rights to ask for beside what the server wants.
    pub scopes: Vec<String>,
    /// The port on this machine that the page leads back to; 0 for one that is free.
    pub port: u16,
    /// How long the person may take.
    pub timeout: Duration,
}

/// What an authorization server knows a client by.
#[derive(Clone)]
pub struct KnownClient {
    /// Its identifier.
    pub id: String,
    /// What only the two of them know.
    pub secret: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("client", &self.client)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownClient")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Has someone log in at a server, and keeps what that gives.
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
    let unkept = |error: std::io::Error| Fault::Login(format!("its tokens can't be kept: {error}"));
    let redirect = Redirect::listen(login.port).map_err(|error| {
        Fault::Login(format!(
            "the port for the way back can't be listened on: {error}"
        ))
    })?;
    // Of a file that is damaged nothing is left to build on.
    let before = tokens.load(&endpoint.url).ok().flatten();
    let begun = Begun::new(&endpoint.url, login, before.as_ref(), redirect.uri());
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
    let _lock = tokens.lock(&endpoint.url).map_err(unkept)?;
    tokens.save(&kept).map_err(unkept)
}

/// Waits for something until whoever wants it wants it no more.
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

/// Returns whether what is sent there can't be read on the way.
fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_loopback(url)
}
