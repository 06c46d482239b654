//! The servers' answers as they came.
//!
//! rmcp reads results into types of its own and loses what those don't have: annotations inside a resource, unknown fields,
//! a whole result for one unknown block. So the transports hand every message through here first. The answer to a request
//! that was announced ([`Raw::note_request`]) is kept as it is, and rmcp sees a stand-in; what rmcp itself has a use for
//! (the lifecycle, subscriptions, and the tools whose parameters become headers) it sees whole.

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

/// Remarks that are kept until a caller takes them: a server may log without end.
const MAX_REMARKS: usize = 100;
/// Length of a remark in characters.
const MAX_REMARK: usize = 2_000;
/// Requests of the server that are kept for their parameters. rmcp answers some itself, so these
/// are never taken.
const MAX_QUESTIONS: usize = 100;
/// Characters of a line that is no message, in a remark about it.
const MAX_QUOTED: usize = 200;

/// What passes between the transport and whoever waits.
#[derive(Default)]
pub(crate) struct Raw(Mutex<Inner>);

/// Shows nothing: answers may hold secrets.
impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Inner {
    /// Requests without an answer yet, and what rmcp sees of the answer.
    open: HashMap<i64, Seen>,
    answers: HashMap<i64, Value>,
    /// Parameters of the server's own requests, by their ids as JSON.
    questions: HashMap<String, Value>,
    faults: HashMap<i64, Fault>,
    /// Why there will be no more answers.
    end: Option<Fault>,
    remarks: VecDeque<LogMessage>,
}

/// What rmcp sees of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// All of it.
    Whole,
    /// That there is one.
    StandIn,
    /// All of it, where it says which revisions the server speaks. Servers of older revisions that answer whatever they don't
    /// know with an empty result know nothing of that: rmcp sees an error, and begins anew with `initialize`.
    Probe,
}

impl Raw {
    /// Notes a request on its way to the server, so that its answer is kept.
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
        if is_answer && !self.keep(id, &mut message) {
            let id = message.get("id").unwrap_or(&Value::Null);
            self.remark(format!("it answered a request that was not made: id {id}"));
            return None;
        }
        if message
            .get("method")
            .is_some_and(|method| method == "notifications/message")
        {
            // rmcp would hand it on after the answer that it came before.
            self.remark_logged(LogMessage::read(
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
                self.wonder(&request.id, params.unwrap_or_default());
                Some(ServerJsonRpcMessage::Request(request))
            }
            Ok(message) => Some(message),
            Err(error) if is_answer => {
                let fault = format!("its answer is no message of JSON-RPC: {error}");
                let id = id?;
                self.fail(&RequestId::Number(id), Fault::Malformed(fault.clone()));
                let error = rmcp::ErrorData::parse_error(fault, None);
                Some(ServerJsonRpcMessage::error(
                    error,
                    Some(RequestId::Number(id)),
                ))
            }
            Err(error) => {
                self.remark(format!("it sent what is no message of JSON-RPC: {error}"));
                None
            }
        }
    }

    /// Keeps an answer, if it is one to an open request.
    fn keep(&self, id: Option<i64>, message: &mut Value) -> bool {
        let mut inner = self.inner();
        let Some((id, seen)) = id.and_then(|id| inner.open.remove_entry(&id)) else {
            // An error without an id is about no request in particular.
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

    /// Returns the answer to a request.
    pub(crate) fn take(&self, id: &RequestId) -> Option<Value> {
        self.inner().answers.remove(&number(id)?)
    }

    /// Keeps the parameters of a request that the server made, until it is answered.
    fn wonder(&self, id: &RequestId, params: Value) {
        let mut inner = self.inner();
        // Those that rmcp answers itself are never asked for.
        if inner.questions.len() >= MAX_QUESTIONS {
            inner.questions.clear();
        }
        inner
            .questions
            .insert(id.clone().into_json_value().to_string(), params);
    }

    /// Returns the parameters of a request that the server made.
    pub(crate) fn question(&self, id: &RequestId) -> Value {
        let id = id.clone().into_json_value().to_string();
        self.inner().questions.remove(&id).unwrap_or_default()
    }

    /// Says why a request has no answer.
    pub(crate) fn fail(&self, id: &RequestId, fault: Fault) {
        if let Some(id) = number(id) {
            self.inner().faults.insert(id, fault);
        }
    }

    /// Returns why a request has no answer; without one, why there will be no more.
    pub(crate) fn fault(&self, id: Option<&RequestId>) -> Option<Fault> {
        let mut inner = self.inner();
        let own = id.and_then(number).and_then(|id| inner.faults.remove(&id));
        own.or_else(|| inner.end.clone())
    }

    /// Returns why a server did not get ready: of the requests that are made for that the last counts.
    pub(crate) fn start_fault(&self) -> Option<Fault> {
        let mut inner = self.inner();
        let last = inner
            .faults
            .drain()
            .max_by_key(|(id, _)| *id)
            .map(|(_, fault)| fault);
        last.or_else(|| inner.end.clone())
    }

    /// Gives a request up.
    pub(crate) fn forget(&self, id: &RequestId) {
        let Some(id) = number(id) else { return };
        let mut inner = self.inner();
        inner.open.remove(&id);
        inner.answers.remove(&id);
        inner.faults.remove(&id);
    }

    /// Says why there will be no more answers; the first reason counts.
    pub(crate) fn end(&self, fault: Fault) {
        self.inner().end.get_or_insert(fault);
    }

    /// Notes something about the server that the person may want to know.
    pub(crate) fn remark(&self, text: String) {
        self.remark_logged(LogMessage {
            level: "warning".to_owned(),
            logger: None,
            text,
        });
    }

    /// Keeps what the server logs while nobody waits for it.
    pub(crate) fn remark_logged(&self, mut message: LogMessage) {
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
                let text = "what else it logged meanwhile is left out".to_owned();
                inner.remarks.push_back(LogMessage {
                    level: "warning".to_owned(),
                    logger: None,
                    text,
                });
            }
            _ => {}
        }
    }

    /// Returns what was noted since the last time.
    pub(crate) fn remarks(&self) -> VecDeque<LogMessage> {
        std::mem::take(&mut self.inner().remarks)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts a text after some characters.
fn shorten(text: &mut String, characters: usize) {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push('…');
    }
}

/// Returns the beginning of a text.
pub(crate) fn excerpt(text: &str) -> String {
    let mut text = text.to_owned();
    shorten(&mut text, MAX_QUOTED);
    text
}

/// Counts the values of a JSON document, about: what is between commas and brackets, strings apart.
///
/// Each takes far more memory once it is read than the two bytes that it can be written with.
pub(crate) fn values(json: &[u8]) -> usize {
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

/// Reads a message, unless it holds too many values.
pub(crate) fn read(json: &[u8], limits: &Limits) -> Result<Option<Value>, Fault> {
    if values(json) > limits.values {
        return Err(Fault::TooMany {
            what: "values in one message",
            limit: limits.values,
        });
    }
    Ok(serde_json::from_slice(json).ok())
}

/// Returns the beginning of a text, to be quoted.
pub(crate) fn quote(text: &str) -> String {
    let end = text
        .char_indices()
        .nth(MAX_QUOTED)
        .map_or(text.len(), |(end, _)| end);
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", &text[..end])
}

fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(text) => text.parse().ok(),
    }
}

/// Returns the id of an answer; some servers write the number as a string.
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
    fn answer_is_kept_as_it_came_and_rmcp_sees_one() {
        let raw = Raw::default();
        raw.note_request(&request(7, "tools/call"));
        let result = json!({"content": [{"type": "hologram"}], "x": 1});
        let seen = raw.hand_through(answer("7".into(), result.clone()));
        assert!(
            matches!(seen, Some(ServerJsonRpcMessage::Response(response)) if response.id == RequestId::Number(7))
        );
        assert_eq!(raw.take(&RequestId::Number(7)), Some(result));
        assert_eq!(raw.take(&RequestId::Number(7)), None);
    }

    #[test]
    fn tools_are_seen_by_rmcp_too() {
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
        assert_eq!(raw.take(&RequestId::Number(1)), Some(tools));
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
    fn answer_to_nothing_is_remarked() {
        let raw = Raw::default();
        raw.note_request(&request(1, "tools/call"));
        assert!(raw.hand_through(answer(99.into(), json!({}))).is_none());
        assert_eq!(
            raw.remarks()[0].text,
            "it answered a request that was not made: id 99"
        );
    }

    #[test]
    fn answer_that_is_no_message_fails_its_request() {
        let raw = Raw::default();
        raw.note_request(&request(1, "tools/call"));
        let seen = raw.hand_through(json!({"jsonrpc": "2.0", "id": 1, "error": "no"}));
        assert!(matches!(seen, Some(ServerJsonRpcMessage::Error(_))));
        assert!(matches!(
            raw.fault(Some(&RequestId::Number(1))),
            Some(Fault::Malformed(_))
        ));
    }
}
