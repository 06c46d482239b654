//! Clients, each with a guard over the addresses that it may connect to.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt, io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use reqwest::{
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use url::Host;

use super::{
    HttpUrl,
    address::{is_loopback, is_public},
};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// What servers are told that this is.
const USER_AGENT: &str = concat!("jp/", env!("CARGO_PKG_VERSION"));

/// Which addresses a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Any.
    Any,
    /// Those of the internet.
    Public,
}

/// Looks host names up.
pub(super) trait Names: Send + Sync {
    fn lookup(&self, host: String) -> Lookup;
}

pub(super) type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// The names that the machine knows.
pub(super) struct SystemNames;

/// A name has none but addresses that the request may not go to.
#[derive(Debug)]
pub(super) struct NoPublicAddress;

/// How servers are reached.
pub(super) struct Network {
    pub(super) names: Arc<dyn Names>,
    /// Whether the proxies count that the system names.
    pub(super) has_proxies: bool,
}

/// Clients that are made when they are needed.
pub(super) struct Clients {
    network: Network,
    made: RefCell<HashMap<Kind, reqwest::Client>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    /// The host whose addresses must be public.
    guarded: Option<String>,
    is_encrypted: bool,
    is_direct: bool,
}

impl Clients {
    pub(super) fn new(network: Network) -> Self {
        Self {
            network,
            made: RefCell::default(),
        }
    }

    /// Returns a client that may be used for `url` alone, or others of the same host.
    pub(super) fn client(&self, url: &HttpUrl, access: Access) -> reqwest::Result<reqwest::Client> {
        let guarded = match (access, url.host()) {
            (Access::Public, Some(host)) => Some(host.to_string()),
            _ => None,
        };
        let is_direct = url.host().is_some_and(|host| is_loopback(&host));
        let kind = Kind {
            guarded,
            is_encrypted: url.is_encrypted(),
            is_direct,
        };
        if let Some(client) = self.made.borrow().get(&kind) {
            return Ok(client.clone());
        }
        let client = self.make(&kind)?;
        self.made.borrow_mut().insert(kind, client.clone());
        Ok(client)
    }

    /// Without encryption no root certificates are read: that would be most of the cost.
    fn make(&self, kind: &Kind) -> reqwest::Result<reqwest::Client> {
        // Fails only where a provider is installed already, which serves as well.
        _ = rustls::crypto::ring::default_provider().install_default();
        let guard = Guard {
            names: Arc::clone(&self.network.names),
            guarded: kind.guarded.clone(),
        };
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            // One that a server closes meanwhile would be an error that means nothing.
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(guard));
        if kind.is_direct || !self.network.has_proxies {
            builder = builder.no_proxy();
        }
        if !kind.is_encrypted {
            builder = builder.tls_certs_only([]);
        }
        builder.build()
    }
}

/// Returns whether the URL itself says that `access` does not allow it.
///
/// What a name stands for is known only when the connection is made.
pub(super) fn is_refused(url: &HttpUrl, access: Access) -> bool {
    let is_public_host = |host: &Host<&str>| match host {
        Host::Domain(_) => !is_loopback(host),
        Host::Ipv4(address) => is_public((*address).into()),
        Host::Ipv6(address) => is_public((*address).into()),
    };
    access == Access::Public && !url.host().as_ref().is_some_and(is_public_host)
}

/// Resolves names to allowed addresses alone, so that the address that is checked is the one that is
/// connected to.
///
/// Any name but the URL's host is a proxy's, that the person configured.
struct Guard {
    names: Arc<dyn Names>,
    guarded: Option<String>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let is_guarded = self.guarded.as_deref() == Some(name.as_str());
        let lookup = self.names.lookup(name.as_str().to_owned());
        Box::pin(async move {
            let mut addresses = lookup.await?;
            if is_guarded {
                let found = addresses.len();
                addresses.retain(|address| is_public(*address));
                if addresses.is_empty() && found > 0 {
                    return Err(NoPublicAddress.into());
                }
            }
            let addresses: Addrs = Box::new(
                addresses
                    .into_iter()
                    .map(|address| SocketAddr::new(address, 0)),
            );
            Ok(addresses)
        })
    }
}

impl Names for SystemNames {
    fn lookup(&self, host: String) -> Lookup {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((host, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

impl fmt::Display for NoPublicAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name stands for no public address")
    }
}

impl std::error::Error for NoPublicAddress {}
