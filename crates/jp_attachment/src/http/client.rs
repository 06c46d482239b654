//! HTTP clients that check the addresses they connect to.

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

/// The most time to make a connection: long enough for a lost SYN packet to be sent again three
/// times.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The value of the header `User-Agent`.
const USER_AGENT: &str = concat!("jp/", env!("CARGO_PKG_VERSION"));

/// Which addresses a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Any address.
    Any,
    /// Public addresses of the internet.
    Public,
}

/// Looks host names up.
pub(super) trait Names: Send + Sync {
    fn lookup(&self, host: String) -> Lookup;
}

pub(super) type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names as the operating system does.
pub(super) struct SystemNames;

/// The error of a name that has only addresses that the request may not go to.
#[derive(Debug)]
pub(super) struct NoPublicAddress;

/// The way to reach servers.
pub(super) struct Network {
    pub(super) names: Arc<dyn Names>,
    /// Whether to use the proxies of the environment.
    pub(super) has_proxies: bool,
}

/// Clients, created on demand.
pub(super) struct Clients {
    network: Network,
    cache: RefCell<HashMap<Kind, reqwest::Client>>,
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
            cache: RefCell::default(),
        }
    }

    /// Returns a client for `url` and other URLs of the same host.
    pub(super) fn client(&self, url: &HttpUrl, access: Access) -> reqwest::Result<reqwest::Client> {
        let guarded = match (access, url.host()) {
            (Access::Public, Some(host)) => Some(host.to_string()),
            _ => None,
        };
        let is_direct = url.host().is_some_and(|host| is_loopback(&host));
        // A guard compares with one host, so clients of guarded hosts are not shared.
        let kind = Kind {
            guarded,
            is_encrypted: url.is_encrypted(),
            is_direct,
        };
        if let Some(client) = self.cache.borrow().get(&kind) {
            return Ok(client.clone());
        }
        let client = self.make(&kind)?;
        self.cache.borrow_mut().insert(kind, client.clone());
        Ok(client)
    }

    /// Creates a client. Without encryption it reads no root certificates, which would be most of
    /// the cost.
    fn make(&self, kind: &Kind) -> reqwest::Result<reqwest::Client> {
        // Fails only if another provider is already installed, which works as well.
        _ = rustls::crypto::ring::default_provider().install_default();
        let guard = Guard {
            names: Arc::clone(&self.network.names),
            guarded: kind.guarded.clone(),
        };
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            // If a server closed an idle connection, the next request would fail for no reason.
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

/// Returns whether `access` forbids the host of a URL.
///
/// The addresses of a name are known only when the connection is made; [`Guard`] checks them.
pub(super) fn is_refused(url: &HttpUrl, access: Access) -> bool {
    let is_public_host = match url.host() {
        Some(host @ Host::Domain(_)) => !is_loopback(&host),
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        None => false,
    };
    access == Access::Public && !is_public_host
}

/// Resolves names only to allowed addresses, so that the checked address is the one that the client
/// connects to.
///
/// Any name other than the URL's host is that of a proxy, which the user configured.
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
        f.write_str("the name has no public address")
    }
}

impl std::error::Error for NoPublicAddress {}
