use std::{
    collections::VecDeque,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::{
    Body, Decoder, Endpoint, Error, Fault, Refusal, RetryNotice, Server, StreamEvent,
    body::Sending,
    error_text::{self, excerpt},
    http,
    retry::{Advice, next_delay},
};

/// Sends requests to one endpoint.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    http: reqwest::Client,
}

/// An answer while it arrives. Dropping it ends the connection.
#[derive(Debug)]
pub struct Response<'c> {
    client: &'c Client,
    http: reqwest::Response,
    decoder: Decoder,
    events: VecDeque<StreamEvent>,
    fault: Option<Fault>,
    received: u64,
    has_begun: bool,
    has_ended: bool,
}

/// Bytes of an error response that are read for its message.
const ERROR_BYTES: usize = 64 << 10;
/// Time in which an error response is read; the status alone makes an error as well.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of a list of models.
const DOCUMENT_BYTES: usize = 4 << 20;

impl Client {
    /// Makes a client; connects to nothing yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, Error> {
        let http = http::client(&endpoint.base_url).map_err(|error| Error::Setup {
            server: endpoint.server(),
            source: error.into(),
        })?;
        Ok(Self { endpoint, http })
    }

    /// Returns the endpoint that requests go to.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and waits until its answer begins.
    ///
    /// Failures that may pass are retried as the endpoint's policy says, each told to `on_retry`
    /// first. Once an answer has begun there is no retry: [`Response::next`] gives the error.
    /// Dropping the future ends the request.
    pub async fn send(
        &self,
        body: &Body,
        on_retry: &mut dyn FnMut(RetryNotice<'_>),
    ) -> Result<Response<'_>, Error> {
        // The budget starts with the first failure: a long upload before it costs nothing.
        let mut first_failure = None;
        let mut retries = 0;
        loop {
            let error = match self.attempt(body).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let elapsed = first_failure.get_or_insert_with(Instant::now).elapsed();
            let Some(delay) = self.delay(&error, retries, elapsed) else {
                return Err(error);
            };
            retries += 1;
            on_retry(RetryNotice {
                attempt: retries,
                delay,
                reason: &error,
            });
            sleep(delay).await;
        }
    }

    fn delay(&self, error: &Error, retries: u32, elapsed: Duration) -> Option<Duration> {
        let policy = self
            .endpoint
            .retry
            .for_error(error, self.endpoint.base_url.is_loopback())?;
        next_delay(
            &policy,
            retries,
            elapsed,
            error.retry_after(),
            fastrand::f64(),
        )
    }

    async fn attempt(&self, body: &Body) -> Result<Response<'_>, Error> {
        let sending = Arc::default();
        let attempt = async {
            let response = self.post(body, &sending).await?;
            let response = self.check_status(response).await?;
            let response = self.check_content_type(response).await?;
            let mut response = Response::new(self, response);
            response.wait_for_event().await?;
            // An answer that begins before all of the request is sent is not about it.
            if sending.bytes_taken() < body.len() {
                return Err(self.stream_error(Fault::Early));
            }
            Ok(response)
        };
        // A body that can't be read breaks the connection. Its own error says more than that.
        attempt
            .await
            .map_err(|error| sending.take_failure().unwrap_or(error))
    }

    async fn post(&self, body: &Body, sending: &Arc<Sending>) -> Result<reqwest::Response, Error> {
        let request = self
            .http
            .post(
                self.endpoint
                    .base_url
                    .join(&self.endpoint.format.path(&self.endpoint.model)),
            )
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, self.endpoint.format.content_type())
            // Without it hyper would send chunks, which simple servers don't read.
            .header(CONTENT_LENGTH, body.len())
            .body(body.to_reqwest(sending));
        let request = self
            .endpoint
            .format
            .authorize(request, self.endpoint.api_key.as_ref());
        let (limit, len) = (self.endpoint.first_byte_timeout, body.len());
        let mut answer = pin!(request.send());
        // The clock starts again whenever the server takes some of the request, so a slow upload
        // never times out.
        let mut since = Instant::now();
        loop {
            if let Ok(sent) = timeout_at(since + limit, &mut answer).await {
                return sent.map_err(|error| self.request_error(error));
            }
            match (sending.bytes_taken(), sending.last_taken()) {
                // A slow upload is no silence.
                (_, Some(last)) if last > since => since = last,
                (taken, _) if taken < len => {
                    return Err(self.stream_error(Fault::NotTaken { limit, taken, len }));
                }
                _ => return Err(self.stream_error(Fault::Idle { limit })),
            }
        }
    }

    /// Gets a small JSON document; gives up after `limit`, without a retry.
    pub(crate) async fn get_json(&self, path: &str, limit: Duration) -> Result<Value, Error> {
        self.json_answer(self.http.get(self.endpoint.base_url.join(path)), limit)
            .await
    }

    /// Posts a small JSON document and gets one; gives up after `limit`, without a retry.
    pub(crate) async fn post_json(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Value, Error> {
        let request = self.http.post(self.endpoint.base_url.join(path));
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        self.json_answer(request, limit).await
    }

    async fn json_answer(
        &self,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<Value, Error> {
        let request = self
            .endpoint
            .format
            .authorize(request, self.endpoint.api_key.as_ref());
        let exchange = async {
            let response = request
                .send()
                .await
                .map_err(|error| self.request_error(error))?;
            let mut response = self.check_status(response).await?;
            let text = http::read_text(&mut response, DOCUMENT_BYTES).await;
            serde_json::from_str(&text).map_err(|_| {
                self.stream_error(Fault::Malformed {
                    excerpt: excerpt(&text),
                })
            })
        };
        timeout(limit, exchange)
            .await
            .unwrap_or_else(|_| Err(self.stream_error(Fault::Idle { limit })))
    }

    fn request_error(&self, error: reqwest::Error) -> Error {
        let server = self.endpoint.server();
        match error.without_url() {
            error if error.is_builder() => Error::Setup {
                server,
                source: error.into(),
            },
            error if http::is_refused(&error) => Error::Refused { server },
            error => Error::Unreachable {
                server,
                source: error.into(),
            },
        }
    }

    async fn check_status(
        &self,
        mut response: reqwest::Response,
    ) -> Result<reqwest::Response, Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let advice = Advice::from_headers(response.headers(), SystemTime::now());
        let (message, refusal) =
            match header(&response, LOCATION).filter(|_| status.is_redirection()) {
                Some(location) => (
                    format!("redirects to {location}, which is not followed"),
                    None,
                ),
                None => {
                    let body = read_error(&mut response).await;
                    let error = error_text::error_in(&body);
                    (
                        error_text::error_message(&error, &body),
                        Refusal::read(Some(status.as_u16()), &error),
                    )
                }
            };
        let message = match message.as_str() {
            "" => status.canonical_reason().unwrap_or("no message").to_owned(),
            message => self.endpoint.redact(message),
        };
        let (server, refusal) = (self.endpoint.server(), refusal.map(Box::new));
        Err(Error::Status {
            server,
            status: status.as_u16(),
            message,
            advice,
            refusal,
        })
    }

    /// Refuses what calls itself compressed, or something else than a stream of events; a missing type passes.
    async fn check_content_type(
        &self,
        mut response: reqwest::Response,
    ) -> Result<reqwest::Response, Error> {
        if let Some(encoding) = header(&response, CONTENT_ENCODING)
            && !encoding.eq_ignore_ascii_case("identity")
        {
            return Err(self.stream_error(Fault::Compressed { encoding }));
        }
        let expected = self.endpoint.format.content_type();
        match header(&response, CONTENT_TYPE) {
            Some(content_type) if !content_type.to_ascii_lowercase().starts_with(expected) => {
                let excerpt = self
                    .endpoint
                    .redact(&excerpt(&read_error(&mut response).await));
                Err(self.stream_error(Fault::NotAStream {
                    content_type,
                    expected,
                    excerpt,
                }))
            }
            _ => Ok(response),
        }
    }

    fn stream_error(&self, fault: Fault) -> Error {
        let server: Server = self.endpoint.server();
        let fault = match fault {
            Fault::Malformed { excerpt } => Fault::Malformed {
                excerpt: self.endpoint.redact(&excerpt),
            },
            Fault::Provider {
                status,
                message,
                refusal,
            } => Fault::Provider {
                status,
                message: self.endpoint.redact(&message),
                refusal,
            },
            other => other,
        };
        Error::Stream { server, fault }
    }
}

fn header(response: &reqwest::Response, name: reqwest::header::HeaderName) -> Option<String> {
    response
        .headers()
        .get(name)
        .map(|value| excerpt(&String::from_utf8_lossy(value.as_bytes())))
}

async fn read_error(response: &mut reqwest::Response) -> String {
    timeout(ERROR_TIMEOUT, http::read_text(response, ERROR_BYTES))
        .await
        .unwrap_or_default()
}

impl<'c> Response<'c> {
    fn new(client: &'c Client, http: reqwest::Response) -> Self {
        Self {
            client,
            http,
            decoder: client.endpoint.format.decoder(),
            events: VecDeque::new(),
            fault: None,
            received: 0,
            has_begun: false,
            has_ended: false,
        }
    }

    /// Waits for the next event; `None` after the last.
    ///
    /// An error comes after all events that arrived before it, and nothing comes after it. Losing
    /// interest in the future while it waits loses no event.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if let Some(fault) = self.fault.take() {
                return Err(self.client.stream_error(fault));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.read().await;
        }
    }

    async fn wait_for_event(&mut self) -> Result<(), Error> {
        while self.events.is_empty() && !self.has_ended {
            self.read().await;
        }
        // With an event before it, the fault belongs to the answer, and `next` returns it there: no
        // retry any more.
        match self.fault.take_if(|_| self.events.is_empty()) {
            Some(fault) => Err(self.client.stream_error(fault)),
            None => Ok(()),
        }
    }

    /// Takes what comes next from the connection: more events, the end, or a fault.
    async fn read(&mut self) {
        let endpoint = &self.client.endpoint;
        let limit = if self.has_begun {
            endpoint.idle_timeout
        } else {
            endpoint.first_byte_timeout
        };
        let taken = match timeout(limit, self.http.chunk()).await {
            Ok(Ok(Some(bytes))) => self.take(&bytes),
            Ok(Ok(None)) => self.finish(),
            // Some servers drop the connection once they have said all.
            Ok(Err(_)) | Err(_) if self.decoder.is_complete() => self.finish(),
            Ok(Err(error)) => Err(Fault::Broken(error.without_url().into())),
            Err(_) => Err(Fault::Idle { limit }),
        };
        self.has_begun |= !self.events.is_empty();
        self.has_ended |= self.decoder.has_ended();
        if let Err(fault) = taken {
            self.fault = Some(fault);
            self.has_ended = true;
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.received += bytes.len() as u64;
        let limit = self.client.endpoint.max_response_bytes;
        if self.received > limit {
            return Err(Fault::TooLarge { limit });
        }
        self.decoder.push(bytes, &mut self.events)
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.decoder.finish(&mut self.events)
    }
}

#[cfg(test)]
mod tests;
