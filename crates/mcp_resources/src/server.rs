//! Serves a registry over MCP.

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

/// The default number of entries on a page of a list. It is large because some clients only read the first
/// page.
const PAGE_SIZE: usize = 1000;

/// Serves a [`Registry`] to MCP clients of the revisions 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and
/// 2026-07-28.
///
/// Over HTTP it speaks Streamable HTTP, which clients of 2024-11-05 may lack.
///
/// | method | |
/// |---|---|
/// | `resources/list`, `resources/templates/list` | in the order of registration, in pages |
/// | `resources/read` | as [`Registry::read`] |
/// | `completion/complete` | as [`ResourceTemplate::complete`](crate::ResourceTemplate::complete) |
/// | `resources/subscribe`, `resources/unsubscribe` | up to 2025-11-25; over HTTP until an [idle session](Http) ends |
/// | `subscriptions/listen` | from 2026-07-28 on |
/// | `notifications/resources/updated` | after [`Registry::notify_updated`] |
/// | `notifications/resources/list_changed` | after the registry changes; one for many changes at once |
/// | `initialize`, `server/discover`, `ping` | as the client's revision defines |
/// | batches | from clients of 2025-03-26, over standard input and HTTP; each message gets its own answer |
/// | `tools/…`, `prompts/…` and the rest | by [`Server::with_handler`] |
/// | `tools/list`, `prompts/list` | without such a handler: empty, because some clients always request them |
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

/// The author's function for errors of handlers.
struct OnError(Box<TellError>);

type TellError = dyn Fn(&str, &ReadError) + Send + Sync;

/// The handler of a server that has only resources.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHandler;

/// A server that stopped or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The runtime could not be made.
    #[error("the server could not be started: {0}")]
    Runtime(#[source] io::Error),
    /// The client sent something that it may not send before it is connected, or could not be answered.
    #[error("the client could not be connected: {0}")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The task that answers ended on its own.
    #[error("the server stopped: {0}")]
    Stopped(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server can't listen on the address.
    #[error("{address} can't be used; choose another port, or 0 for any free port: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The token can't be sent by any client. For example, it is from a variable that is set to nothing.
    #[error(
        "the token is empty, has spaces, or is not ASCII; use only letters, digits and signs, or set no token"
    )]
    UnsendableToken,
    /// Other machines can reach the address, but the token or the host names that they use are missing.
    #[error(
        "{address} can be reached from other machines; set a token and the host names that clients use, or listen on a loopback address"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
}

impl Server {
    /// Makes a server with the name and the version that clients receive.
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
    /// Sets the handler for everything but resources, such as tools and prompts.
    ///
    /// It is a handler of rmcp, written by hand or with rmcp's macros. For the macros, depend on `rmcp = "3"` or
    /// enable this crate's feature `macros`. All clients share the handler.
    ///
    /// Its capabilities are joined with those of the registry. The server never calls its methods for resources,
    /// nor `initialize`, `negotiate_initialize`, `discover` and `ping`. The handler contributes to those by
    /// `get_info` and `supported_protocol_versions`.
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

    /// Sets the title, which users see instead of the name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.implementation.title = Some(title.into());
        self
    }

    /// Sets the instructions, which models read. By default they are the handler's.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets how many entries a page of a list has, at least one. The default is 1000, because some clients only
    /// read the first page.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries.max(1);
        self
    }

    /// Sets how long a client may cache the lists (MCP 2026-07-28, `ttlMs`). By default it may not.
    #[must_use]
    pub fn list_ttl(mut self, ttl: Duration) -> Self {
        self.list_ttl = Some(ttl);
        self
    }

    /// Sets the metrics that count calls.
    #[must_use]
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Sets a function that receives each read that failed on the server's side, with its URI.
    ///
    /// The client receives the error without its causes. The function must not block.
    #[must_use]
    pub fn on_error(mut self, on_error: impl Fn(&str, &ReadError) + Send + Sync + 'static) -> Self {
        self.on_error = Some(OnError(Box::new(on_error)));
        self
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Makes a session for one client, to serve it over your own transport: `server.session().serve(transport)`
    /// with rmcp.
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
