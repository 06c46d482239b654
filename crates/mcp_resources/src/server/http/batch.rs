//! Answers batches over HTTP: the answers to their messages become one stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::http::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::model::ErrorCode;
use serde_json::{Value, from_str, json};

use super::{Endpoint, invalid};
use crate::server::batch;

const NO_MESSAGE: &str = "this is not a JSON-RPC 2.0 message";

const REFUSAL: &str = "only sessions of 2025-03-26 have batches, of 1 to 100 messages without initialize; send one message at a time";

/// Joins streams of events. It passes on whole frames, of which each is an event.
struct Joined(Vec<BoxBody<Bytes, Infallible>>);

/// Answers each message of a batch as if it had come alone.
///
/// If the first message is refused, that is the answer to all: the reason is the session or the headers, which they
/// share. A later message that is refused, or is not a message, gets an error of its own.
pub(super) async fn answer<H: ServerHandler>(
    endpoint: &Endpoint<H>,
    head: &Parts,
    body: &[u8],
) -> Response<BoxBody<Bytes, Infallible>> {
    let messages: Vec<Value> = match batch::messages(body) {
        Ok(messages) => messages
            .iter()
            .map(|message| from_str(message.get()).unwrap_or_default())
            .collect(),
        Err(error) => {
            let why = format!("the batch is not JSON: {error}");
            return invalid(ErrorCode::PARSE_ERROR, &why);
        }
    };
    if !may_send(&head.headers, &messages) {
        return invalid(ErrorCode::INVALID_REQUEST, REFUSAL);
    }
    let mut streams = Vec::new();
    let mut answer = None;
    for message in messages {
        if !is_message(&message) {
            let error = json!({ "code": ErrorCode::INVALID_REQUEST.0, "message": NO_MESSAGE });
            streams.push(error_event(&message, &error));
            continue;
        }
        let mut head = head.clone();
        head.headers.remove(CONTENT_LENGTH);
        let response = endpoint
            .answer_message(head, message.to_string().into())
            .await;
        if !response.status().is_success() {
            if answer.is_none() {
                return response;
            }
            streams.push(error_event(&message, &read_refusal(response).await));
            continue;
        }
        let (head, body) = response.into_parts();
        // A message that is only accepted, such as a notification, has no stream.
        if head.status == StatusCode::OK {
            streams.push(body);
            answer = Some(head);
        } else {
            answer.get_or_insert(head);
        }
    }
    match answer {
        Some(head) => join(head, streams),
        None => invalid(ErrorCode::INVALID_REQUEST, REFUSAL),
    }
}

/// Makes one answer of the streams of a batch. Errors are a stream too, also if all messages were only accepted.
fn join(
    mut head: hyper::http::response::Parts,
    streams: Vec<BoxBody<Bytes, Infallible>>,
) -> Response<BoxBody<Bytes, Infallible>> {
    if !streams.is_empty() {
        head.status = StatusCode::OK;
        let content_type = HeaderValue::from_static("text/event-stream");
        head.headers.insert(CONTENT_TYPE, content_type);
    }
    Response::from_parts(head, Joined(streams).boxed())
}

/// Returns whether this has the shape of a message of JSON-RPC 2.0.
fn is_message(message: &Value) -> bool {
    let is_request = message["method"].is_string();
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    message["jsonrpc"] == "2.0" && (is_request || is_answer)
}

/// Reads the error from the answer that refused a message.
async fn read_refusal(response: Response<BoxBody<Bytes, Infallible>>) -> Value {
    let status = response.status();
    let Ok(body) = response.into_body().collect().await;
    let answer: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    match &answer["error"] {
        error @ Value::Object(_) => error.clone(),
        _ => {
            let message = format!("the message was refused with the status {status}");
            json!({ "code": ErrorCode::INVALID_REQUEST.0, "message": message })
        }
    }
}

/// Makes an event of an error, with the id of the message if that has one.
fn error_event(message: &Value, error: &Value) -> BoxBody<Bytes, Infallible> {
    let id = message
        .get("id")
        .filter(|id| id.is_string() || id.is_number());
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    Full::new(Bytes::from(format!("data: {answer}\n\n"))).boxed()
}

/// Returns whether a client may send this as a batch. One that names no revision speaks 2025-03-26.
fn may_send(headers: &HeaderMap, messages: &[Value]) -> bool {
    headers
        .get("mcp-protocol-version")
        .is_none_or(|version| version == batch::revision())
        && batch::is_sound(messages.len())
        && messages
            .iter()
            .all(|message| message["method"] != "initialize")
}

impl Body for Joined {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let streams = &mut self.get_mut().0;
        let mut place = 0;
        while let Some(stream) = streams.get_mut(place) {
            match Pin::new(stream).poll_frame(context) {
                Poll::Ready(Some(frame)) => return Poll::Ready(Some(frame)),
                Poll::Ready(None) => _ = streams.remove(place),
                Poll::Pending => place += 1,
            }
        }
        match streams.is_empty() {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }
}
