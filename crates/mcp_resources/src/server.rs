//! A registry, spoken in MCP.

#[cfg(any(feature = "stdio", feature = "http"))]
mod batch;
#[cfg_attr(
    not(feature = "stdio"),
    expect(dead_code, reason = "only the transport of stdio charges it")
)]
mod budget;
mod changes;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "stdio", feature = "http"))]
mod message;
mod metrics;
mod session;
#[cfg(feature = "stdio")]
mod stdio;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{Implementation, ResourcesCapability, ServerConfig};

use crate::{ReadError, Registry};
#[cfg(feature = "http")]
pub use http::{BoundHttp, Http};
pub use metrics::{MethodMetrics, Metrics};
pub use session::Session;

/// How many entries a page of a list has if nothing else is asked for.
const PAGE_SIZE: usize = 1000;

/// A server: a [`Registry`] for MCP clients of the revisions 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and
/// 2026-07-28. Over HTTP it speaks Streamable HTTP, which clients of 2024-11-05 may lack.
///
/// | method | |
/// |---|---|
/// | `resources/list`, `resources/templates/list` | in the order of registration, in pages |
/// | `resources/read` | as [`Registry::read`] |
/// | `completion/complete` | as [`ResourceTemplate::complete`](crate::ResourceTemplate::complete) |
/// | `resources/subscribe`, `resources/unsubscribe` | until 2025-11-25; over HTTP until a [silent session](Http) ends |
/// | `subscriptions/listen` | from 2026-07-28 |
/// | `notifications/resources/updated` | after [`Registry::notify_updated`] |
/// | `notifications/resources/list_changed` | after what changes the registry, one for many changes at once |
/// | `initialize`, `server/discover`, `ping` | as the revision of the client says |
/// | batches | from clients of 2025-03-26, over standard input and HTTP; each message is answered by itself |
/// | `tools/…`, `prompts/…` and the rest | by [`Server::with_handler`] |
/// | `tools/list`, `prompts/list` | without such a handler: empty, as some clients ask for them in any case |
///
/// The capability `resources` is there even while the registry is empty. The capability `completions` is there while a
/// registered template [completes](crate::ResourceTemplate::complete) a variable, or if the handler declares it. Clients
/// until 2025-11-25 receive capabilities once, when they connect: register such a template before you serve, or
/// declare `completions` in the handler's `get_info`.
///
/// ```no_run
/// use mcp_resources::{Registry, Resource, Server};
///
/// let registry = Registry::new();
/// registry.register_resource(Resource::new("notes://today", "Today", || std::fs::read_to_string("today.md")))?;
/// Server::new("notes", env!("CARGO_PKG_VERSION"), registry).run_stdio()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server<H = NoHandler> {
    registry: Registry,
    handler: H,
    implementation: Implementation,
    instructions: Option<String>,
    page_size: usize,
    list_ttl: Option<Duration>,
    metrics: Option<Metrics>,
    on_error: Option<OnError>,
}

/// Whom to tell of errors of handlers.
struct OnError(Box<TellError>);

type TellError = dyn Fn(&str, &ReadError) + Send + Sync;

/// Answers for a server that has resources and nothing else.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHandler;

/// Why a server stopped, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No runtime could be made.
    #[error("the server could not be started: {0}")]
    Runtime(#[source] io::Error),
    /// The client said what no client may say before it is connected, or could not be answered.
    #[error("the client could not be connected: {0}")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task that answers ended by itself.
    #[error("the server stopped: {0}")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The address can't be listened to.
    #[error(
        "{address} can't be listened to; name another port, or 0 for any that is free: {source}"
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A token that no client can send, as of a variable that is set to nothing.
    #[error(
        "the token is empty, has spaces, or is not ASCII; set letters, digits and signs alone, or none at all"
    )]
    UnsendableToken,
    /// An address that others reach, and neither a token nor the host names under which they do.
    #[error(
        "{address} can be reached from other machines; set a token and the host names that clients use, or listen to a loopback address"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
}

impl Server {
    /// Makes a server with the name and the version that clients are told.
    pub fn new(name: impl Into<String>, version: impl Into<String>, registry: Registry) -> Self {
        Self {
            registry,
            handler: NoHandler,
            implementation: Implementation::new(name, version),
            instructions: None,
            page_size: PAGE_SIZE,
            list_ttl: None,
            metrics: None,
            on_error: None,
        }
    }
}

impl<H: ServerHandler> Server<H> {
    /// Sets what answers all that is not about resources, as tools and prompts: a handler of rmcp, made with its
    /// macros (`rmcp = "3"` as a dependency, or this crate's feature `macros`) or by hand. Its capabilities are joined with those of the registry; its methods for resources are not
    /// called, nor `initialize`, `negotiate_initialize`, `discover` and `ping`, which are the server's: `get_info` and
    /// `supported_protocol_versions` are what it may say there. All clients share it.
    #[must_use]
    pub fn with_handler<N: ServerHandler>(self, handler: N) -> Server<N> {
        let Self {
            registry,
            handler: _,
            implementation,
            instructions,
            page_size,
            list_ttl,
            metrics,
            on_error,
        } = self;
        Server {
            registry,
            handler,
            implementation,
            instructions,
            page_size,
            list_ttl,
            metrics,
            on_error,
        }
    }

    /// Sets the name that people see.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.implementation.title = Some(title.into());
        self
    }

    /// Sets what models are told about the server; by default what the handler says.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets how many entries a page of a list has, at least one; by default 1000, as not all clients turn pages.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries.max(1);
        self
    }

    /// Sets how long a client may keep the lists (MCP 2026-07-28, `ttlMs`); by default not at all.
    #[must_use]
    pub fn list_ttl(mut self, ttl: Duration) -> Self {
        self.list_ttl = Some(ttl);
        self
    }

    /// Counts calls in these metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Sets what is told of each read that failed on the server's side, with its URI; the client is told the error
    /// without its causes. It must not block.
    #[must_use]
    pub fn on_error(mut self, on_error: impl Fn(&str, &ReadError) + Send + Sync + 'static) -> Self {
        self.on_error = Some(OnError(Box::new(on_error)));
        self
    }

    /// Gives the registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Makes what serves one client, for a transport of your own: `server.session().serve(transport)` with rmcp.
    pub fn session(self: &Arc<Self>) -> Session<H> {
        Session::new(Arc::clone(self))
    }

    fn config(&self) -> ServerConfig {
        let mut config = self.handler.get_info();
        let mut resources = ResourcesCapability::default();
        resources.subscribe = Some(true);
        resources.list_changed = Some(true);
        config.capabilities.resources = Some(resources);
        if self.registry.completes_variables() {
            config.capabilities.completions.get_or_insert_default();
        }
        config.server_info = self.implementation.clone();
        config.instructions = self.instructions.clone().or(config.instructions);
        config
    }
}

impl ServerHandler for NoHandler {}

impl std::fmt::Debug for OnError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OnError")
    }
}
