//! Batches over HTTP: the answers of their messages, in one stream.

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

const NO_MESSAGE: &str = "this is not a message of JSON-RPC 2.0";

const REFUSAL: &str = "only sessions of 2025-03-26 have batches, of 1 to 100 messages without initialize; send one message at a time";

/// Streams of events that become one: a frame is an event.
struct Joined(Vec<BoxBody<Bytes, Infallible>>);

/// Hands each message of a batch on as if it had come alone. What the first is refused with is the answer to all, as it
/// is about the session or the headers, which they share; what is refused later, or is no message, has an error of its own.
pub(super) async fn answer<H: ServerHandler>(
    endpoint: &Endpoint<H>,
    head: &Parts,
    body: &[u8],
) -> Response<BoxBody<Bytes, Infallible>> {
    let messages = match batch::messages(body) {
        Ok(messages) => messages
            .iter()
            .map(|message| from_str(message.get()).unwrap_or_default())
            .collect(),
        Err(error) => {
            return invalid(
                ErrorCode::PARSE_ERROR,
                &format!("the batch is not JSON: {error}"),
            );
        }
    };
    let messages: Vec<Value> = messages;
    if !may_send(&head.headers, &messages) {
        return invalid(ErrorCode::INVALID_REQUEST, REFUSAL);
    }
    let mut streams = Vec::new();
    let mut answer = None;
    for message in messages {
        if !is_message(&message) {
            let error = json!({ "code": ErrorCode::INVALID_REQUEST.0, "message": NO_MESSAGE });
            streams.push(refused(&message, &error));
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
            streams.push(refused(&message, &refusal(response).await));
            continue;
        }
        let (head, body) = response.into_parts();
        // What is only accepted has no stream.
        if head.status == StatusCode::OK {
            streams.push(body);
            answer = Some(head);
        } else {
            answer.get_or_insert(head);
        }
    }
    match answer {
        Some(mut answer) => {
            // Errors alone are a stream, too.
            if !streams.is_empty() {
                answer.status = StatusCode::OK;
                answer
                    .headers
                    .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            }
            Response::from_parts(answer, Joined(streams).boxed())
        }
        None => invalid(ErrorCode::INVALID_REQUEST, REFUSAL),
    }
}

/// Whether this is a message of JSON-RPC 2.0 as far as its shape goes.
fn is_message(message: &Value) -> bool {
    let is_request = message["method"].is_string();
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    message["jsonrpc"] == "2.0" && (is_request || is_answer)
}

/// The error that a message was refused with when it was handed on.
async fn refusal(response: Response<BoxBody<Bytes, Infallible>>) -> Value {
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

/// An error as an event of the stream, with the id of what it is about where that has one.
fn refused(message: &Value, error: &Value) -> BoxBody<Bytes, Infallible> {
    let id = message
        .get("id")
        .filter(|id| id.is_string() || id.is_number());
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    Full::new(Bytes::from(format!("data: {answer}\n\n"))).boxed()
}

/// Whether a client may send this as a batch. One that names no revision speaks 2025-03-26.
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
