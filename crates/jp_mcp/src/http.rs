//! Sends and receives over Streamable HTTP (MCP, "Transports", "Streamable HTTP").
//!
//! rmcp keeps the sessions and resumes streams. This module makes its requests: without redirects, with a
//! bound on every body, and with each answer passed through [`Raw`].

use std::{collections::HashMap, error::Error as _, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::BoxStream};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::{RequestBuilder, Response, redirect};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient,
        StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use tokio::{sync::watch, time};

use crate::{
    Endpoint, Fault, HttpStatus, Limits, Tokens,
    auth::Access,
    config::is_loopback,
    cryptography,
    error::HttpError,
    raw::{self, Raw, quote},
};

/// The time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest wait for the server to open the session's stream.
///
/// If the server sends its headers at once, the wait is one round trip, which can take a second on a busy
/// machine. If it sends them with the first event, each session waits this long once.
const STREAM_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest part of an error's body that is read, in bytes. It is enough for an error of JSON-RPC.
const MAX_ERROR_BYTES: usize = 64_000;
const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const ACCEPTED: &str = "application/json, text/event-stream";

type Failure = StreamableHttpError<HttpError>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP client of rmcp.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    /// The tokens of logins, unless the configuration has a token.
    access: Option<Arc<Access>>,
    raw: Arc<Raw>,
    limits: Limits,
    /// True if a session has started and its stream isn't open yet.
    awaits_stream: Arc<watch::Sender<bool>>,
}

/// Makes the transport to an endpoint.
pub(crate) fn transport(
    http: Http,
    endpoint: &Endpoint,
    limits: Limits,
) -> Result<StreamableHttpClientTransport<Http>, Fault> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .custom_headers(headers(endpoint)?)
        .max_sse_event_size(limits.message);
    config.auth_header.clone_from(&endpoint.token);
    Ok(StreamableHttpClientTransport::with_client(http, config))
}

fn headers(endpoint: &Endpoint) -> Result<HashMap<HeaderName, HeaderValue>, Fault> {
    endpoint
        .headers
        .iter()
        .map(|(name, value)| parse_header(name, value))
        .collect()
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    let parsed = HeaderName::try_from(name)
        .ok()
        .zip(HeaderValue::try_from(value).ok());
    // The message doesn't contain the value, which may be a key.
    let (name, mut value) = parsed
        .ok_or_else(|| Fault::Malformed(format!("the header {name:?} is not valid in HTTP")))?;
    value.set_sensitive(true);
    Ok((name, value))
}

impl Http {
    pub(crate) fn new(
        endpoint: &Endpoint,
        tokens: Option<&Tokens>,
        raw: Arc<Raw>,
        limits: Limits,
    ) -> Result<Self, Fault> {
        cryptography::install();
        let mut builder = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        if is_loopback(&endpoint.url) {
            builder = builder.no_proxy();
        }
        if endpoint.url.scheme() == "http" {
            // Without TLS, no certificates are needed. Loading the system's would be most of the cost.
            builder = builder.tls_certs_only([]);
        }
        let client = builder
            .build()
            .map_err(|error| Fault::Unreachable(causes(&error)))?;
        let access = tokens
            .and_then(|tokens| Access::new(endpoint, tokens, Arc::clone(&raw)))
            .map(Arc::new);
        Ok(Self {
            client,
            access,
            raw,
            limits,
            awaits_stream: Arc::new(watch::Sender::new(false)),
        })
    }

    fn request(
        &self,
        mut request: RequestBuilder,
        session: Option<&str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        if let Some(session) = session {
            request = request.header(SESSION_ID, session);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        headers.into_iter().fold(request, |request, (name, value)| {
            request.header(name, value)
        })
    }

    /// Sends a request with the configured token or that of a login. If the server refuses a login's token
    /// and there is a newer one, sends the request again.
    async fn send_with_token(
        &self,
        request: impl Fn(Option<String>) -> RequestBuilder,
        configured: Option<String>,
        id: Option<&RequestId>,
    ) -> Result<Response, Failure> {
        let Some(access) = &self.access else {
            return self.send(request(configured), id).await;
        };
        let token = access.token().await;
        let response = self.send(request(token.clone()), id).await?;
        let refused = token.filter(|_| response.status() == StatusCode::UNAUTHORIZED);
        let Some(refused) = refused else {
            return Ok(response);
        };
        match access.token_after(&refused).await {
            Some(token) => self.send(request(Some(token)), id).await,
            None => Ok(response),
        }
    }

    /// Waits until the server has opened the session's stream, but at most [`STREAM_TIMEOUT`].
    ///
    /// This stream carries the server's questions that belong to no request. While it isn't open, official
    /// SDKs drop such a question, and the call that asks it never ends.
    async fn wait_for_stream(&self) {
        let mut awaits_stream = self.awaits_stream.subscribe();
        let opened = awaits_stream.wait_for(|awaits| !awaits);
        if time::timeout(STREAM_TIMEOUT, opened).await.is_err() {
            self.awaits_stream.send_replace(false);
        }
    }

    /// Sends a request. If it fails, stores the fault for the request `id`.
    async fn send(
        &self,
        request: RequestBuilder,
        id: Option<&RequestId>,
    ) -> Result<Response, Failure> {
        request
            .send()
            .await
            .map_err(|error| self.failure(id, Fault::Unreachable(causes(&error))))
    }

    fn failure(&self, id: Option<&RequestId>, fault: Fault) -> Failure {
        if let Some(id) = id {
            self.raw.fail(id, fault.clone());
        }
        StreamableHttpError::Client(HttpError::new(fault))
    }

    /// Makes the failure of an answer with an error status.
    async fn refusal(&self, response: Response, id: Option<&RequestId>) -> Failure {
        let refusal = shorten(read_refusal(response).await);
        let (status, challenge) = (refusal.status, refusal.challenge.clone());
        let failure = self.failure(id, Fault::Status(Box::new(refusal)));
        match (status, challenge) {
            (401, Some(challenge)) => {
                StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
            }
            (403, Some(challenge)) => {
                let scope = scope(&challenge);
                StreamableHttpError::InsufficientScope(InsufficientScopeError::new(
                    challenge, scope,
                ))
            }
            _ => failure,
        }
    }

    /// Reads the events of a response and passes each through [`Raw`].
    fn events(&self, response: Response) -> Events {
        let limit = self.limits.message;
        let mut event = EventLength::default();
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk =
                chunk.map_err(|error| HttpError::new(Fault::Unreachable(causes(&error))))?;
            if event.add(&chunk) > limit {
                Err(HttpError::new(Fault::MessageTooLong(limit)))
            } else {
                Ok(chunk)
            }
        });
        let (raw, limits) = (Arc::clone(&self.raw), self.limits);
        let events = SseStream::from_bytes_stream(bytes);
        let events = events.filter_map(move |event| {
            let event = match event {
                Ok(event) => hand_event_through(event, &raw, &limits).map(Ok),
                Err(error) => {
                    note_broken_stream(&raw, &error);
                    Some(Err(error))
                }
            };
            std::future::ready(event)
        });
        events.boxed()
    }

    /// Reads an answer that consists of one message.
    async fn read_message(
        &self,
        response: Response,
        id: Option<&RequestId>,
    ) -> Result<Option<ServerJsonRpcMessage>, Failure> {
        let body = self.read_body(response, id).await?;
        match raw::read(&body, &self.limits) {
            Ok(Some(message)) => Ok(self.raw.hand_through(message)),
            Ok(None) => {
                let quoted = quote(&String::from_utf8_lossy(&body));
                Err(self.failure(
                    id,
                    Fault::Malformed(format!("its answer is not JSON: {quoted}")),
                ))
            }
            Err(fault) => Err(self.failure(id, fault)),
        }
    }

    async fn read_body(
        &self,
        mut response: Response,
        id: Option<&RequestId>,
    ) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await;
            match chunk.map_err(|error| self.failure(id, Fault::Unreachable(causes(&error))))? {
                Some(chunk) if body.len() + chunk.len() <= self.limits.message => {
                    body.extend_from_slice(&chunk)
                }
                Some(_) => return Err(self.failure(id, Fault::MessageTooLong(self.limits.message))),
                None => return Ok(body),
            }
        }
    }
}

/// The length of a stream's current event.
#[derive(Default)]
struct EventLength {
    bytes: usize,
    /// True after the end of a line. Another line end then makes an empty line, which ends the event.
    is_at_line: bool,
}

impl EventLength {
    /// Adds a chunk of the stream. Returns the length of the longest event so far in it.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut greatest = 0;
        for byte in chunk {
            self.bytes += 1;
            greatest = greatest.max(self.bytes);
            match byte {
                b'\n' if self.is_at_line => self.bytes = 0,
                b'\n' => self.is_at_line = true,
                b'\r' => {}
                _ => self.is_at_line = false,
            }
        }
        greatest
    }
}

/// Passes the message of an event through [`Raw`]. The result has only the data that rmcp needs.
fn hand_event_through(mut event: Sse, raw: &Raw, limits: &Limits) -> Option<Sse> {
    let data = event.data.as_deref().unwrap_or_default();
    if data.trim().is_empty() {
        return Some(event);
    }
    let message = match raw::read(data.as_bytes(), limits) {
        Ok(Some(message)) => raw.hand_through(message),
        Ok(None) => {
            raw.remark(format!(
                "it sent an event that is not a message: {}",
                quote(data)
            ));
            None
        }
        Err(fault) => {
            raw.end(fault);
            None
        }
    };
    // Keep an event without data. Its id says where to resume the stream.
    event.data = message.and_then(|message| serde_json::to_string(&message).ok());
    Some(event)
}

/// Stores the fault of a stream that broke. rmcp treats it like an ordinary end.
fn note_broken_stream(raw: &Raw, error: &SseError) {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        // rmcp resumes a stream after all other errors.
        if let Some(HttpError(fault)) = error.downcast_ref()
            && matches!(**fault, Fault::MessageTooLong(_))
        {
            raw.end((**fault).clone());
        }
        cause = error.source();
    }
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        if id.is_some() && session_id.is_some() {
            self.wait_for_stream().await;
        }
        self.raw.note_request(&message);
        let request = |token| {
            let request = self
                .client
                .post(uri.as_ref())
                .header(header::ACCEPT, ACCEPTED)
                .json(&message);
            self.request(
                request,
                session_id.as_deref(),
                token,
                custom_headers.clone(),
            )
        };
        let response = self.send_with_token(request, auth_header, id).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.answer_refusal(response, &message).await;
        }
        if session_id.is_some() && is_initialized(&message) {
            // Next, rmcp requests the stream.
            self.awaits_stream.send_replace(true);
        }
        let session = response
            .headers()
            .get(SESSION_ID)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let kind = content_type(&response);
        // Only requests have answers, regardless of the body.
        if id.is_none() || matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(response),
                session,
            ));
        }
        if !kind.starts_with(JSON) {
            let fault = Fault::Malformed(format!(
                "it answered with {kind:?}, which is neither JSON nor a stream of events"
            ));
            return Err(self.failure(id, fault));
        }
        match self.read_message(response, id).await? {
            Some(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            None => Err(self.failure(
                id,
                Fault::Malformed("its answer belongs to another request".to_owned()),
            )),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let request = |token| {
            self.request(
                self.client.delete(uri.as_ref()),
                Some(&*session_id),
                token,
                custom_headers.clone(),
            )
        };
        // A server may refuse to end sessions, so the status doesn't matter.
        self.send_with_token(request, auth_header, None)
            .await
            .map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let request = |token| {
            let mut request = self.client.get(uri.as_ref()).header(header::ACCEPT, EVENTS);
            if let Some(last) = &last_event_id {
                request = request.header(LAST_EVENT_ID, last);
            }
            self.request(
                request,
                session_id.as_deref(),
                token,
                custom_headers.clone(),
            )
        };
        let response = self.send_with_token(request, auth_header, None).await;
        self.awaits_stream.send_replace(false);
        let response = response?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(self.refusal(response, None).await),
            _ if content_type(&response).starts_with(EVENTS) => Ok(self.events(response)),
            _ => Err(StreamableHttpError::UnexpectedContentType(Some(
                content_type(&response),
            ))),
        }
    }
}

impl Http {
    /// Reads an answer with an error status. An error of the protocol in its body is an ordinary answer.
    async fn answer_refusal(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return Err(self.refusal(response, None).await);
        };
        let id = Some(&request.id);
        let is_about_access = matches!(
            response.status(),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        );
        if is_about_access || response.status().is_redirection() {
            return Err(self.refusal(response, id).await);
        }
        let is_clients = response.status().is_client_error();
        let refusal = read_refusal(response).await;
        let error = serde_json::from_str::<Value>(&refusal.body)
            .ok()
            .filter(|body| body.get("error").is_some());
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let error = match error {
            // A server that refuses a request before it parses it doesn't know the id, so ignore that.
            Some(error) => serde_json::from_value(error["error"].clone()).ok(),
            // An older server or its proxy doesn't know the probe.
            None if is_probe && is_clients => {
                Some(rmcp::ErrorData::invalid_request(refusal.to_string(), None))
            }
            None => None,
        };
        match error {
            Some(error) => {
                // If the request after the probe fails, too, this is the more useful error.
                self.raw
                    .fail(&request.id, Fault::Status(Box::new(shorten(refusal))));
                let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(message, None))
            }
            None => Err(self.failure(id, Fault::Status(Box::new(shorten(refusal))))),
        }
    }
}

fn is_initialized(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Notification(message) = message else {
        return false;
    };
    matches!(
        message.notification,
        ClientNotification::InitializedNotification(_)
    )
}

fn shorten(refusal: HttpStatus) -> HttpStatus {
    let body = if refusal.body.is_empty() {
        String::new()
    } else {
        quote(&refusal.body)
    };
    HttpStatus { body, ..refusal }
}

/// Reads an answer with an error status, up to [`MAX_ERROR_BYTES`].
async fn read_refusal(mut response: Response) -> HttpStatus {
    let header = |name| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let location = header(header::LOCATION);
    let challenge = challenge(&response);
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_ERROR_BYTES);
    let body = String::from_utf8_lossy(&body).trim().to_owned();
    HttpStatus {
        status,
        location,
        challenge,
        body,
    }
}

/// Returns the challenge of a server; of several, the one about bearer tokens (RFC 6750 §3).
fn challenge(response: &Response) -> Option<String> {
    let all = response.headers().get_all(header::WWW_AUTHENTICATE);
    let mut all: Vec<_> = all.iter().filter_map(|value| value.to_str().ok()).collect();
    all.sort_by_key(|value| {
        !value
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("bearer")
    });
    all.first().map(|&value| value.to_owned())
}

fn content_type(response: &Response) -> String {
    let kind = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_ascii_lowercase()
}

/// Returns the scope that a challenge asks for (RFC 6750 §3).
fn scope(challenge: &str) -> Option<String> {
    let (_, rest) = challenge.split_once("scope=\"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Describes why a request could not be made, with all causes.
fn causes(error: &reqwest::Error) -> String {
    let mut text = "it can't be reached".to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
