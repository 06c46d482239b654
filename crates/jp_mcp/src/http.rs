//! Servers that are reached by Streamable HTTP (MCP, "Transports", "Streamable HTTP").
//!
//! rmcp keeps the sessions and takes streams up again; here is what it sends and receives with: no redirects, every body
//! bounded, each answer handed through [`Raw`].

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

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long requests wait for the server to open the session's stream.
///
/// A server that sends its headers at once costs one round trip, which may take a second on a busy
/// machine. A server that sends them with the first event costs this much, once for each session.
const STREAM_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of the body of an error is read.
const MAX_ERROR_BYTES: usize = 64_000;
const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const ACCEPTED: &str = "application/json, text/event-stream";

type Failure = StreamableHttpError<HttpError>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Sends and receives for rmcp.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    /// What logins gave, where the configuration does not say what proves who asks.
    access: Option<Arc<Access>>,
    raw: Arc<Raw>,
    limits: Limits,
    /// Whether a session has begun whose stream isn't open yet.
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
    let header = |(name, value): (&String, &String)| {
        let read = HeaderName::try_from(name)
            .ok()
            .zip(HeaderValue::try_from(value).ok());
        // The value may be a key.
        let (name, mut value) =
            read.ok_or_else(|| Fault::Malformed(format!("the header {name:?} is none of HTTP")))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    endpoint.headers.iter().map(header).collect()
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
            // No certificate is looked at: reading the system's would be most of the cost.
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

    /// Sends a request with the token that is configured, or else with that of a login; once more where that is refused and
    /// there is another.
    async fn send_proved(
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

    /// Waits until the server has answered the request for the session's stream, but no longer than
    /// [`STREAM_TIMEOUT`].
    ///
    /// A server asks its questions on this stream if they belong to no request of ours. Official
    /// SDKs drop such a question while the stream isn't open, and the call that asks it then never
    /// ends.
    async fn wait_for_stream(&self) {
        let mut awaits_stream = self.awaits_stream.subscribe();
        let opened = awaits_stream.wait_for(|awaits| !awaits);
        if time::timeout(STREAM_TIMEOUT, opened).await.is_err() {
            self.awaits_stream.send_replace(false);
        }
    }

    /// Sends a request; the fault of one that fails is kept for whoever waits for `id`.
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

    /// Makes a failure of an answer that is none of success.
    async fn refusal(&self, response: Response, id: Option<&RequestId>) -> Failure {
        let refusal = refusal(response).await;
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

    /// Reads the events of a response, each handed through [`Raw`].
    fn events(&self, response: Response) -> Events {
        let limit = self.limits.message;
        let mut event = EventLength::default();
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk =
                chunk.map_err(|error| HttpError::new(Fault::Unreachable(causes(&error))))?;
            if event.after(&chunk) > limit {
                Err(HttpError::new(Fault::MessageTooLong(limit)))
            } else {
                Ok(chunk)
            }
        });
        let (raw, limits) = (Arc::clone(&self.raw), self.limits);
        let events = SseStream::from_bytes_stream(bytes);
        let events = events.filter_map(move |event| {
            let event = match event {
                Ok(event) => hand_through_event(event, &raw, &limits).map(Ok),
                Err(error) => {
                    note(&raw, &error);
                    Some(Err(error))
                }
            };
            std::future::ready(event)
        });
        events.boxed()
    }

    /// Reads an answer that is one message.
    async fn message(
        &self,
        response: Response,
        id: Option<&RequestId>,
    ) -> Result<Option<ServerJsonRpcMessage>, Failure> {
        let body = self.body(response, id).await?;
        match raw::read(&body, &self.limits) {
            Ok(Some(message)) => Ok(self.raw.hand_through(message)),
            Ok(None) => {
                let quoted = quote(&String::from_utf8_lossy(&body));
                Err(self.failure(
                    id,
                    Fault::Malformed(format!("its answer is no JSON: {quoted}")),
                ))
            }
            Err(fault) => Err(self.failure(id, fault)),
        }
    }

    async fn body(
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

/// How long the event is that a stream is in.
#[derive(Default)]
struct EventLength {
    bytes: usize,
    /// Whether a line has just ended: another end is an empty line, which ends the event.
    is_at_line: bool,
}

impl EventLength {
    /// Returns the greatest length that an event has within more of the stream.
    fn after(&mut self, chunk: &[u8]) -> usize {
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

/// Hands the message of an event through; nothing is left of what rmcp need not see.
fn hand_through_event(mut event: Sse, raw: &Raw, limits: &Limits) -> Option<Sse> {
    let data = event.data.as_deref().unwrap_or_default();
    if data.trim().is_empty() {
        return Some(event);
    }
    let message = match raw::read(data.as_bytes(), limits) {
        Ok(Some(message)) => raw.hand_through(message),
        Ok(None) => {
            raw.remark(format!(
                "it sent an event that is no message: {}",
                quote(data)
            ));
            None
        }
        Err(fault) => {
            raw.end(fault);
            None
        }
    };
    // An event without data still counts for where a stream is taken up again.
    event.data = message.and_then(|message| serde_json::to_string(&message).ok());
    Some(event)
}

/// Keeps what a stream broke with, which rmcp takes for an end.
fn note(raw: &Raw, error: &SseError) {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        // A stream that only broke off is taken up again.
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
        let response = self.send_proved(request, auth_header, id).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.answer_refusal(response, &message).await;
        }
        if session_id.is_some() && is_initialized(&message) {
            // rmcp asks for the stream next.
            self.awaits_stream.send_replace(true);
        }
        let session = response
            .headers()
            .get(SESSION_ID)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let kind = content_type(&response);
        // Nothing is answered to what is no request, whatever the body says.
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
        match self.message(response, id).await? {
            Some(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            None => Err(self.failure(
                id,
                Fault::Malformed("its answer is not to what it was asked".to_owned()),
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
        // Whether the server takes sessions back is its own affair.
        self.send_proved(request, auth_header, None).await.map(drop)
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
        let response = self.send_proved(request, auth_header, None).await;
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
    /// Reads an answer that is none of success; the protocol's own errors are answers.
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
        let refusal = refusal_whole(response).await;
        let error = serde_json::from_str::<Value>(&refusal.body)
            .ok()
            .filter(|body| body.get("error").is_some());
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let error = match error {
            // Who refuses before the request is looked at does not know its id.
            Some(error) => serde_json::from_value(error["error"].clone()).ok(),
            // An older server, or what stands before it, knows nothing of the probe.
            None if is_probe && is_clients => {
                Some(rmcp::ErrorData::invalid_request(refusal.to_string(), None))
            }
            None => None,
        };
        match error {
            Some(error) => {
                // Where what follows the probe fails, this says more than that.
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

async fn refusal(response: Response) -> HttpStatus {
    shorten(refusal_whole(response).await)
}

fn shorten(refusal: HttpStatus) -> HttpStatus {
    let body = if refusal.body.is_empty() {
        String::new()
    } else {
        quote(&refusal.body)
    };
    HttpStatus { body, ..refusal }
}

async fn refusal_whole(mut response: Response) -> HttpStatus {
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

/// Returns what a server says of who may ask: where it says several things, that which is about tokens (RFC 6750 §3).
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

/// Says why a request could not be made, with its causes.
fn causes(error: &reqwest::Error) -> String {
    let mut text = "it can't be reached".to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
