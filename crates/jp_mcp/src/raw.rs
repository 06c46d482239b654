//! Keeps the servers' original answers.
//!
//! rmcp parses results into its own types, which lose information: annotations inside a resource, unknown
//! fields, a whole result because of one unknown block. So the transports first pass every message through
//! [`Raw`]. It keeps the answer to a noted request ([`Raw::note_request`]), and rmcp sees a placeholder.
//! rmcp only sees the whole answer if it needs it: for the lifecycle, subscriptions, and the list of tools,
//! whose parameters can become headers.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, DiscoverResult, RequestId, ServerJsonRpcMessage,
};
use serde_json::{Value, json};

use crate::{Fault, Limits, LogMessage};

/// The most remarks that are kept until a caller takes them. A server may log without end.
const MAX_REMARKS: usize = 100;
/// The longest remark, in characters.
const MAX_REMARK: usize = 2_000;
/// The most requests of the server whose parameters are kept. rmcp answers some itself, so nothing takes
/// their parameters.
const MAX_QUESTIONS: usize = 100;
/// The longest quotation in a message, in characters.
const MAX_QUOTED: usize = 200;

/// The state between the transport and the requests.
#[derive(Default)]
pub(crate) struct Raw(Mutex<Inner>);

/// Shows nothing, because answers may contain secrets.
impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Inner {
    /// The open requests, with the form of the answer for rmcp.
    open: HashMap<i64, Seen>,
    answers: HashMap<i64, Value>,
    /// The parameters of the server's requests, by their ids as JSON.
    questions: HashMap<String, Value>,
    faults: HashMap<i64, Fault>,
    /// The reason why there will be no more answers.
    end: Option<Fault>,
    remarks: VecDeque<LogMessage>,
}

/// The form of an answer that rmcp sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The whole answer.
    Whole,
    /// A placeholder.
    StandIn,
    /// The whole answer if it names the server's revisions, otherwise an error. Some servers of older
    /// revisions answer an unknown method with an empty result. After the error, rmcp sends `initialize`.
    Probe,
}

impl Raw {
    /// Registers a request before it is sent, so that its answer is kept.
    pub(crate) fn note_request(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        let Some(id) = number(&request.id) else {
            return;
        };
        let seen = match &request.request {
            ClientRequest::CustomRequest(custom) if custom.method != "tools/list" => Seen::StandIn,
            ClientRequest::DiscoverRequest(_) => Seen::Probe,
            _ => Seen::Whole,
        };
        self.inner().open.insert(id, seen);
    }

    /// Keeps a message of the server and returns the one for rmcp; `None` if rmcp should not see it.
    pub(crate) fn hand_through(&self, mut message: Value) -> Option<ServerJsonRpcMessage> {
        let id = message.get("id").and_then(id_number);
        let is_answer = message.get("method").is_none();
        if is_answer && !self.keep_answer(id, &mut message) {
            let id = message.get("id").unwrap_or(&Value::Null);
            self.remark(format!("it answered a request that was not made: id {id}"));
            return None;
        }
        if message
            .get("method")
            .is_some_and(|method| method == "notifications/message")
        {
            // rmcp would deliver it after the answer that follows it.
            self.keep_log(LogMessage::read(
                message.get("params").unwrap_or(&Value::Null),
            ));
            return None;
        }
        let params = if is_answer {
            None
        } else {
            message.get("params").cloned()
        };
        match serde_json::from_value(message) {
            Ok(ServerJsonRpcMessage::Request(request)) => {
                self.keep_question(&request.id, params.unwrap_or_default());
                Some(ServerJsonRpcMessage::Request(request))
            }
            Ok(message) => Some(message),
            Err(error) if is_answer => {
                let fault = format!("its answer is not a JSON-RPC message: {error}");
                let id = id?;
                self.fail(&RequestId::Number(id), Fault::Malformed(fault.clone()));
                let error = rmcp::ErrorData::parse_error(fault, None);
                Some(ServerJsonRpcMessage::error(
                    error,
                    Some(RequestId::Number(id)),
                ))
            }
            Err(error) => {
                self.remark(format!("it sent an invalid JSON-RPC message: {error}"));
                None
            }
        }
    }

    /// Keeps an answer to an open request. Returns false if there is no such request.
    fn keep_answer(&self, id: Option<i64>, message: &mut Value) -> bool {
        let mut inner = self.inner();
        let Some((id, seen)) = id.and_then(|id| inner.open.remove_entry(&id)) else {
            // An error without an id belongs to no particular request.
            return message.get("error").is_some() && message.get("id").is_none_or(Value::is_null);
        };
        message["id"] = id.into();
        let Some(result) = message.get_mut("result") else {
            return true;
        };
        if seen == Seen::Probe && serde_json::from_value::<DiscoverResult>(result.clone()).is_err()
        {
            let error = rmcp::ErrorData::internal_error(
                "its answer to `server/discover` names no revisions",
                None,
            );
            *message = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return true;
        }
        let answer = if seen == Seen::StandIn {
            std::mem::replace(result, json!({"kept": id}))
        } else {
            result.clone()
        };
        inner.answers.insert(id, answer);
        true
    }

    /// Takes the answer to a request.
    pub(crate) fn take_answer(&self, id: &RequestId) -> Option<Value> {
        self.inner().answers.remove(&number(id)?)
    }

    /// Keeps the parameters of a server's request until it is answered.
    fn keep_question(&self, id: &RequestId, params: Value) {
        let mut inner = self.inner();
        // Only requests that rmcp answers itself can pile up, and nothing takes their parameters.
        if inner.questions.len() >= MAX_QUESTIONS {
            inner.questions.clear();
        }
        inner
            .questions
            .insert(id.clone().into_json_value().to_string(), params);
    }

    /// Takes the parameters of a server's request.
    pub(crate) fn take_question(&self, id: &RequestId) -> Value {
        let id = id.clone().into_json_value().to_string();
        self.inner().questions.remove(&id).unwrap_or_default()
    }

    /// Stores the reason why a request has no answer.
    pub(crate) fn fail(&self, id: &RequestId, fault: Fault) {
        if let Some(id) = number(id) {
            self.inner().faults.insert(id, fault);
        }
    }

    /// Takes the reason why a request has no answer. If there is none, returns the reason why there will be
    /// no more answers.
    pub(crate) fn take_fault(&self, id: Option<&RequestId>) -> Option<Fault> {
        let mut inner = self.inner();
        let own = id.and_then(number).and_then(|id| inner.faults.remove(&id));
        own.or_else(|| inner.end.clone())
    }

    /// Takes the reason why a server did not start: the fault of the last request of the handshake.
    pub(crate) fn take_start_fault(&self) -> Option<Fault> {
        let mut inner = self.inner();
        let last = inner
            .faults
            .drain()
            .max_by_key(|(id, _)| *id)
            .map(|(_, fault)| fault);
        last.or_else(|| inner.end.clone())
    }

    /// Removes everything about a request.
    pub(crate) fn forget(&self, id: &RequestId) {
        let Some(id) = number(id) else { return };
        let mut inner = self.inner();
        inner.open.remove(&id);
        inner.answers.remove(&id);
        inner.faults.remove(&id);
    }

    /// Stores the reason why there will be no more answers. Only the first one counts.
    pub(crate) fn end(&self, fault: Fault) {
        self.inner().end.get_or_insert(fault);
    }

    /// Adds a warning about the server for the user.
    pub(crate) fn remark(&self, text: String) {
        self.keep_log(LogMessage {
            level: "warning".to_owned(),
            logger: None,
            text,
        });
    }

    /// Keeps a log message until a caller takes it.
    pub(crate) fn keep_log(&self, mut message: LogMessage) {
        for text in std::iter::once(&mut message.text)
            .chain(&mut message.logger)
            .chain([&mut message.level])
        {
            shorten(text, MAX_REMARK);
        }
        let mut inner = self.inner();
        match inner.remarks.len() {
            0..MAX_REMARKS => inner.remarks.push_back(message),
            MAX_REMARKS => {
                let text = "further log messages were left out".to_owned();
                inner.remarks.push_back(LogMessage {
                    level: "warning".to_owned(),
                    logger: None,
                    text,
                });
            }
            _ => {}
        }
    }

    /// Takes the warnings and log messages since the last call.
    pub(crate) fn take_remarks(&self) -> VecDeque<LogMessage> {
        std::mem::take(&mut self.inner().remarks)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shortens a text to a number of characters.
fn shorten(text: &mut String, characters: usize) {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push('…');
    }
}

/// Returns the start of a text.
pub(crate) fn excerpt(text: &str) -> String {
    let mut text = text.to_owned();
    shorten(&mut text, MAX_QUOTED);
    text
}

/// Estimates the number of values in a JSON document by counting commas and opening brackets outside
/// strings.
///
/// A parsed value takes far more memory than the two bytes that it can have in JSON.
pub(crate) fn count_values(json: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Parses a message. Returns `None` if it isn't JSON, and a fault if it has too many values.
pub(crate) fn read(json: &[u8], limits: &Limits) -> Result<Option<Value>, Fault> {
    if count_values(json) > limits.values {
        return Err(Fault::TooMany {
            what: "values in one message",
            limit: limits.values,
        });
    }
    Ok(serde_json::from_slice(json).ok())
}

/// Quotes the start of a text.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(text) => text.parse().ok(),
    }
}

/// Returns the id of an answer. Some servers write the number as a string.
fn id_number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| id.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CustomRequest, JsonRpcRequest, JsonRpcVersion2_0};

    use super::*;

    fn request(id: i64, method: &str) -> ClientJsonRpcMessage {
        ClientJsonRpcMessage::Request(JsonRpcRequest {
            jsonrpc: JsonRpcVersion2_0,
            id: RequestId::Number(id),
            request: ClientRequest::CustomRequest(CustomRequest::new(method, None)),
        })
    }

    fn answer(id: Value, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }

    #[test]
    fn original_answer_is_kept() {
        let raw = Raw::default();
        raw.note_request(&request(7, "tools/call"));
        let result = json!({"content": [{"type": "hologram"}], "x": 1});
        let seen = raw.hand_through(answer("7".into(), result.clone()));
        assert!(
            matches!(seen, Some(ServerJsonRpcMessage::Response(response)) if response.id == RequestId::Number(7))
        );
        assert_eq!(raw.take_answer(&RequestId::Number(7)), Some(result));
        assert_eq!(raw.take_answer(&RequestId::Number(7)), None);
    }

    #[test]
    fn rmcp_sees_the_list_of_tools() {
        let raw = Raw::default();
        raw.note_request(&request(1, "tools/list"));
        let tools = json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}, "x": 1}]});
        let Some(ServerJsonRpcMessage::Response(seen)) =
            raw.hand_through(answer(1.into(), tools.clone()))
        else {
            panic!("it is an answer")
        };
        assert!(matches!(
            seen.result,
            rmcp::model::ServerResult::ListToolsResult(_)
        ));
        assert_eq!(raw.take_answer(&RequestId::Number(1)), Some(tools));
    }

    #[test]
    fn empty_answer_to_the_probe_is_an_error_to_rmcp() {
        let raw = Raw::default();
        let request = rmcp::model::DiscoverRequest::default();
        raw.note_request(&ClientJsonRpcMessage::request(
            ClientRequest::DiscoverRequest(request),
            RequestId::Number(0),
        ));
        let seen = raw.hand_through(answer(0.into(), json!({})));
        assert!(
            matches!(seen, Some(ServerJsonRpcMessage::Error(error)) if error.id == Some(RequestId::Number(0)))
        );
    }

    #[test]
    fn answer_without_a_request_is_reported() {
        let raw = Raw::default();
        raw.note_request(&request(1, "tools/call"));
        assert!(raw.hand_through(answer(99.into(), json!({}))).is_none());
        assert_eq!(
            raw.take_remarks()[0].text,
            "it answered a request that was not made: id 99"
        );
    }

    #[test]
    fn malformed_answer_fails_its_request() {
        let raw = Raw::default();
        raw.note_request(&request(1, "tools/call"));
        let seen = raw.hand_through(json!({"jsonrpc": "2.0", "id": 1, "error": "no"}));
        assert!(matches!(seen, Some(ServerJsonRpcMessage::Error(_))));
        assert!(matches!(
            raw.take_fault(Some(&RequestId::Number(1))),
            Some(Fault::Malformed(_))
        ));
    }
}
