//! Finds the JSON-RPC messages in a line. Each one that can't be read gets an error with its id, if it has one.

use std::collections::HashMap;
use std::fmt::Display;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::value::RawValue;

use crate::server::batch;
use crate::server::message::{TOO_MANY_VALUES, has_too_many_values};
use crate::server::wire::shorten;

/// A message, and its bytes in the line.
pub(super) struct Incoming {
    pub(super) message: RxJsonRpcMessage<RoleServer>,
    pub(super) bytes: usize,
}

/// An error to answer in place of a message. It is boxed because it is rare and large.
pub(super) struct Refusal {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Refusal {
    pub(super) fn new(id: Option<RequestId>, error: ErrorData) -> Box<Self> {
        Box::new(Self { id, error })
    }

    pub(super) fn invalid_request(id: Option<RequestId>, why: impl Into<String>) -> Box<Self> {
        Self::new(id, ErrorData::invalid_request(why.into(), None))
    }
}

/// The state of the permission to send batches, which only clients of 2025-03-26 have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batches {
    Accepted,
    Refused,
}

/// Returns the messages of a line in their order. An empty line has none.
pub(super) fn parse_line(line: &[u8], batches: Batches) -> Vec<Result<Incoming, Box<Refusal>>> {
    // Some clients on Windows begin with a byte order mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.trim_ascii();
    if line.is_empty() {
        return Vec::new();
    }
    let is_batch = batch::is_batch(line);
    if has_too_many_values(line) {
        return match is_batch {
            true => vec![Err(Refusal::invalid_request(None, TOO_MANY_VALUES))],
            false => explain(line, &TOO_MANY_VALUES).into_iter().collect(),
        };
    }
    if !is_batch {
        return parse_message(line).into_iter().collect();
    }
    match batch::messages(line) {
        Ok(messages) if batches == Batches::Accepted && batch::is_sound(messages.len()) => messages
            .iter()
            .filter_map(|message| parse_message(message.get().as_bytes()))
            .collect(),
        Ok(_) => {
            let why =
                "only 2025-03-26 has batches, of 1 to 100 messages; send one message at a time";
            vec![Err(Refusal::invalid_request(None, why))]
        }
        Err(error) => explain(line, &error).into_iter().collect(),
    }
}

fn parse_message(text: &[u8]) -> Option<Result<Incoming, Box<Refusal>>> {
    match serde_json::from_slice(text) {
        Ok(message) => Some(Ok(Incoming {
            message,
            bytes: text.len(),
        })),
        Err(error) => explain(text, &error),
    }
}

/// Says what is wrong with a message that can't be read. A notification gets no answer. An unreadable
/// answer of the client's becomes an error for whoever waits for it.
fn explain(text: &[u8], error: &dyn Display) -> Option<Result<Incoming, Box<Refusal>>> {
    if serde_json::from_slice::<&RawValue>(text).is_err() {
        let why = format!("a line is not JSON: {error}");
        let error = ErrorData::new(ErrorCode::PARSE_ERROR, why, None);
        return Some(Err(Refusal::new(None, error)));
    }
    // The values stay raw: one that is nested too deep, or is no Unicode, must not hide the id.
    let fields: HashMap<String, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
    let id = fields
        .get("id")
        .and_then(|id| serde_json::from_str(id.get()).ok());
    if fields.contains_key("result") || fields.contains_key("error") {
        let why = format!("the client's answer can't be read: {error}");
        return id.map(|id| {
            Ok(Incoming {
                message: JsonRpcMessage::error(ErrorData::internal_error(why, None), Some(id)),
                bytes: text.len(),
            })
        });
    }
    let is_versioned = fields
        .get("jsonrpc")
        .is_some_and(|version| version.get() == "\"2.0\"");
    let method = fields
        .get("method")
        .and_then(|method| serde_json::from_str::<String>(method.get()).ok());
    match method.filter(|_| is_versioned) {
        Some(_) if !fields.contains_key("id") => None,
        Some(method) if id.is_some() => {
            let method = shorten(&method);
            let why = format!("the parameters of {method} can't be read: {error}");
            Some(Err(Refusal::new(id, ErrorData::invalid_params(why, None))))
        }
        _ => {
            let why =
                "not a JSON-RPC 2.0 request, which has \"jsonrpc\": \"2.0\", an id and a method";
            Some(Err(Refusal::invalid_request(id, why)))
        }
    }
}
