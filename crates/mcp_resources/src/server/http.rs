//! Serves many clients over Streamable HTTP.

mod batch;
mod sessions;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use hyper::http::HeaderMap;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::batch::is_batch;
use super::message::{TOO_MANY_VALUES, has_too_many_values};
use super::{NoHandler, ServeError, Server, Session};
use sessions::Sessions;

/// The path that clients send requests to.
const PATH: &str = "/mcp";

/// The most open connections. Further ones wait. It is the usual limit of file descriptors on Linux.
const MAX_CONNECTIONS: usize = 1024;

/// The time limit for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// The time limit for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The pause after a connection that could not be accepted, for example because no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The origins of pages on this machine.
const LOOPBACK_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// Serves clients over Streamable HTTP, at the path `/mcp`.
///
/// By default it only serves this machine. A request whose `Host` or `Origin` names another machine gets 403,
/// because a web page may have sent it (DNS rebinding). To serve other machines, set the names that they use for
/// the server and a token, and put TLS in front.
///
/// Clients of the revisions up to 2025-11-25 have sessions. A session ends, with its stream and its
/// subscriptions, after four idle hours. At most 1,024 exist at once. A new one then replaces the session that
/// has no open request or stream and has been idle for the longest time. A `subscriptions/listen` has no such
/// limit.
///
/// ```no_run
/// use mcp_resources::{Http, Registry, Server};
///
/// # async fn serve() -> Result<(), mcp_resources::ServeError> {
/// let server = Server::new("notes", "1.0.0", Registry::new());
/// let bound = Http::new(server).token("a secret").bind(([127, 0, 0, 1], 0).into()).await?;
/// println!("http://{}/mcp", bound.address());
/// bound.serve().await
/// # }
/// ```
#[derive(Debug)]
pub struct Http<H = NoHandler> {
    server: Server<H>,
    config: StreamableHttpServerConfig,
    token: Option<Result<Token, ServeError>>,
    named_hosts: bool,
}

/// A server that listens. Requests wait until [`BoundHttp::serve`].
pub struct BoundHttp<H: ServerHandler = NoHandler> {
    listener: TcpListener,
    address: SocketAddr,
    endpoint: Arc<Endpoint<H>>,
}

/// The secret that clients send.
struct Token(String);

struct Endpoint<H: ServerHandler> {
    service: StreamableHttpService<Session<H>, LocalSessionManager>,
    sessions: Arc<Sessions>,
    token: Option<Token>,
}

impl<H: ServerHandler> Server<H> {
    /// Serves clients on this machine over HTTP. [`Http`] has more options.
    ///
    /// # Errors
    ///
    /// [`ServeError::Bind`], and [`ServeError::Exposed`] for an address that is not a loopback address.
    pub async fn serve_http(self, address: SocketAddr) -> Result<(), ServeError> {
        Http::new(self).bind(address).await?.serve().await
    }
}

impl<H: ServerHandler> Http<H> {
    /// Makes a server for this machine.
    pub fn new(server: Server<H>) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(LOOPBACK_ORIGINS)
            .enforce_origin_validation();
        Self {
            server,
            config,
            token: None,
            named_hosts: false,
        }
    }

    /// Sets a token. A request without `Authorization: Bearer` and the token gets 401.
    ///
    /// A token is letters, digits and signs of ASCII, at least one. It may come unchecked from the environment:
    /// [`Http::bind`] refuses one that no client can send.
    #[must_use]
    pub fn token(mut self, token: impl Into<OsString>) -> Self {
        self.token = Some(Token::new(token.into()));
        self
    }

    /// Sets the host names that clients may use, with or without a port, instead of those of the loopback. An empty
    /// list changes nothing.
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let hosts: Vec<String> = hosts.into_iter().map(Into::into).collect();
        // rmcp takes an empty list for all hosts.
        if !hosts.is_empty() {
            self.config = self.config.with_allowed_hosts(hosts);
            self.named_hosts = true;
        }
        self
    }

    /// Sets the origins of pages that may use the server, such as `https://app.example:443` or
    /// `http://localhost:*`, instead of those of the loopback.
    ///
    /// A request without an `Origin` comes from no page and is served. To read answers, a page also needs CORS
    /// headers, which a proxy has to add.
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config = self.config.with_allowed_origins(origins);
        self
    }

    /// Listens on an address. Port 0 takes a free port.
    ///
    /// # Errors
    ///
    /// [`ServeError::Bind`], [`ServeError::UnsendableToken`], and [`ServeError::Exposed`] for an address that is not a
    /// loopback address, unless a token and [`Http::allowed_hosts`] are set.
    pub async fn bind(self, address: SocketAddr) -> Result<BoundHttp<H>, ServeError> {
        let token = self.token.transpose()?;
        let guarded = self.named_hosts && token.is_some();
        if !address.ip().is_loopback() && !guarded {
            return Err(ServeError::Exposed { address });
        }
        let (listener, address) = listen(address)
            .await
            .map_err(|source| ServeError::Bind { address, source })?;
        let server = Arc::new(self.server);
        let sessions = Arc::new(Sessions::new());
        let service = StreamableHttpService::new(
            move || Ok(server.session()),
            Arc::clone(&sessions.manager),
            self.config,
        );
        let endpoint = Arc::new(Endpoint {
            service,
            sessions,
            token,
        });
        Ok(BoundHttp {
            listener,
            address,
            endpoint,
        })
    }
}

/// Listens on an address, and returns the one with the port that was taken.
async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

impl<H: ServerHandler> BoundHttp<H> {
    /// Returns the address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped, which ends all connections.
    ///
    /// # Errors
    ///
    /// None so far. A connection that fails ends alone, and one that can't be accepted is tried again.
    pub async fn serve(self) -> Result<(), ServeError> {
        let _sessions = self
            .endpoint
            .service
            .config
            .cancellation_token
            .clone()
            .drop_guard();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let place = Arc::clone(&room)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let connection = connect(stream, Arc::clone(&self.endpoint));
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// Serves one connection. Its errors are the client's, so they are ignored.
async fn connect<H: ServerHandler>(stream: TcpStream, endpoint: Arc<Endpoint<H>>) {
    // Answers are small, and clients wait for them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let endpoint = Arc::clone(&endpoint);
        async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME);
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl<H: ServerHandler> Endpoint<H> {
    async fn answer(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        if is_ambiguous(&request) {
            return refusal(
                StatusCode::BAD_REQUEST,
                "The request names more than one host, origin, token or session.",
            );
        }
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "Not found; the server is at /mcp.");
        }
        if self
            .token
            .as_ref()
            .is_some_and(|token| !token.is_in(request.headers()))
        {
            let mut response = refusal(StatusCode::UNAUTHORIZED, "A bearer token is required.");
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, "Bearer".parse().expect("visible ASCII"));
            return response;
        }
        let in_use = match session_of(request.headers()) {
            Some(id) => self.sessions.begin(id).await,
            None => None,
        };
        let response = match *request.method() {
            Method::POST => self.answer_post(request).await,
            Method::DELETE => report_session_end(self.service.handle(request).await),
            _ => self.service.handle(request).await,
        };
        // The request may have made a session, which is in use from now on.
        let in_use = match (in_use, session_of(response.headers())) {
            (None, Some(id)) => self.sessions.begin(id).await,
            (in_use, _) => in_use,
        };
        match in_use {
            Some(in_use) => {
                response.map(|body| body.map_frame(move |frame| in_use.hold(frame)).boxed())
            }
            None => response,
        }
    }

    async fn answer_post(
        &self,
        request: Request<Incoming>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, self.service.config.max_request_body_bytes).collect();
        let Ok(body) = tokio::time::timeout(BODY_TIME, body).await else {
            return refusal(StatusCode::REQUEST_TIMEOUT, "The body took too long.");
        };
        let Ok(body) = body else {
            return refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The body is too long, or it ended early.",
            );
        };
        let body = body.to_bytes();
        if has_too_many_values(&body) {
            return invalid(ErrorCode::INVALID_REQUEST, TOO_MANY_VALUES);
        }
        if self.sessions.are_many().await && begins_session(&head.headers, &body) {
            return self.begin_one_of_many(head, body).await;
        }
        match is_batch(&body) {
            true => batch::answer(self, &head, &body).await,
            false => self.answer_message(head, body).await,
        }
    }

    /// Makes a session although there are many. Another one ends if the request is accepted.
    async fn begin_one_of_many(
        &self,
        head: Parts,
        body: Bytes,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let _turn = self.sessions.turn().await;
        let response = self.answer_message(head, body).await;
        let Some(id) = session_of(response.headers()) else {
            return response;
        };
        drop(self.sessions.begin(id).await);
        match self.sessions.make_room(id).await {
            true => response,
            false => refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "There are too many sessions; try again later.",
            ),
        }
    }

    async fn answer_message(
        &self,
        head: Parts,
        body: Bytes,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        let is_json = names_json(&head.headers);
        let response = self
            .service
            .handle(Request::from_parts(head, Full::new(body.clone())))
            .await;
        // rmcp uses this status also for a body that is no message.
        match response.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => {
                match serde_json::from_slice::<Value>(&body) {
                    Ok(_) => invalid(
                        ErrorCode::INVALID_REQUEST,
                        "the body is not a JSON-RPC 2.0 message",
                    ),
                    Err(_) => invalid(ErrorCode::PARSE_ERROR, "the body is not JSON"),
                }
            }
            _ => response,
        }
    }
}

/// Answers the end of a session with 204 instead of rmcp's 202, about which the Python SDK prints a warning.
fn report_session_end(
    mut response: Response<BoxBody<Bytes, Infallible>>,
) -> Response<BoxBody<Bytes, Infallible>> {
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|id| id.to_str().ok())
}

/// Returns whether a request names two hosts, origins, tokens or sessions. The server might check one of them while a
/// proxy uses the other (RFC 9112 §3.2).
fn is_ambiguous(request: &Request<Incoming>) -> bool {
    let host = request
        .headers()
        .get(HOST)
        .map_or(&b""[..], |host| host.as_bytes());
    let is_twice = [
        HOST.as_str(),
        ORIGIN.as_str(),
        AUTHORIZATION.as_str(),
        SESSION,
    ]
    .into_iter()
    .any(|name| request.headers().get_all(name).iter().nth(1).is_some());
    let authority = request.uri().authority().map(Authority::as_str);
    is_twice || authority.is_some_and(|name| !host.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns whether a request would make a session. Those of the revisions from 2026-07-28 on make none.
fn begins_session(headers: &HeaderMap, body: &[u8]) -> bool {
    !headers.contains_key(SESSION)
        && serde_json::from_slice(body)
            .is_ok_and(|message: Value| message["method"] == "initialize")
}

fn refusal(status: StatusCode, text: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, "text/plain".parse().expect("visible ASCII"));
    response
}

/// Refuses a body whose id is unknown.
fn invalid(code: ErrorCode, message: &str) -> Response<BoxBody<Bytes, Infallible>> {
    let error =
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code.0, "message": message } });
    let mut response = Response::new(Full::new(Bytes::from(error.to_string())).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(
        CONTENT_TYPE,
        "application/json".parse().expect("visible ASCII"),
    );
    response
}

fn names_json(headers: &HeaderMap) -> bool {
    let named = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

impl Token {
    fn new(token: OsString) -> Result<Self, ServeError> {
        match token.into_string() {
            Ok(token) if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Self(token))
            }
            _ => Err(ServeError::UnsendableToken),
        }
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        let sent = sent.and_then(|value| value.split_first_chunk::<7>());
        sent.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && self.is(token)
        })
    }

    /// Compares a token. The time does not depend on where it differs, so it can't be guessed byte by byte.
    fn is(&self, sent: &[u8]) -> bool {
        let differences = self
            .0
            .bytes()
            .zip(sent)
            .fold(0, |all, (own, sent)| all | (own ^ sent));
        self.0.len() == sent.len() && differences == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

impl<H: ServerHandler> std::fmt::Debug for BoundHttp<H> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("BoundHttp")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
