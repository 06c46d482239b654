//! Events and their stored JSON: `{"timestamp", "type", …}`, one object for each event.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use jp_resource::{Checksum, Payload, Snapshot};
use jp_tool::{InputRequest, StoredBlock};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value, value::RawValue};

use crate::{Declaration, json};

/// One entry of a conversation's stream.
#[derive(Debug, Clone)]
pub struct Event {
    /// The time of the event.
    pub timestamp: Timestamp,
    /// The kind of the event, with its content.
    pub kind: EventKind,
}

/// The kind of an event, with its content.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// A turn begins.
    TurnStart,
    /// The user's message with its attachments.
    ChatRequest(ChatRequest),
    /// A part of the model's answer.
    ChatResponse(ChatResponse),
    /// The model calls a tool.
    ToolCallRequest(ToolCallRequest),
    /// The response of a tool.
    ToolCallResponse(ToolCallResponse),
    /// A question to the user or a model.
    InquiryRequest(InquiryRequest),
    /// Its answer.
    InquiryResponse(InquiryResponse),
    /// The conversation's configuration changed.
    ConfigDelta(ConfigDelta),
    /// The cost of one provider response.
    Usage(Usage),
    /// Requests leave out snapshots that newer ones replaced.
    Superseded(Superseded),
    /// The model learns that the source of an attachment has changed.
    Notification(Notification),
    /// Older turns are sent shortened.
    Compaction(Compaction),
    /// A kind that this version doesn't know, kept unchanged.
    Unknown(Box<RawValue>),
}

/// The user's message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The words.
    pub content: String,
    /// The author of the words, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// JSON Schema that the answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// The attached snapshots: frozen, never resolved again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Snapshot>,
    /// The declarations, each with the resources that it gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered: Vec<Delivered>,
}

/// A declaration that a request delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The declaration.
    pub declaration: Declaration,
    /// Indexes into the request's `resources`; empty for an exclude.
    #[serde(default)]
    pub resources: Vec<usize>,
}

/// A part of the model's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatResponse {
    /// Reasoning or words.
    pub content: ResponseContent,
    /// Metadata that the provider wants back verbatim, such as signatures.
    pub metadata: Map<String, Value>,
    /// The reason why the answer ends here, if it was cut off.
    pub incomplete: Option<String>,
}

/// The content of a part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseContent {
    /// The model's reasoning.
    Reasoning(String),
    /// The model's words.
    Message(String),
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// The id of the call. Its response has the same.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Arguments by name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Metadata that the provider wants back verbatim.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The response of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallResponse {
    /// The call's id.
    pub id: String,
    /// The blocks, in the tool's order; a string is read as one text block.
    #[serde(deserialize_with = "blocks_or_text")]
    pub content: Vec<StoredBlock>,
    /// True if the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// MCP's `structuredContent`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none",
        rename = "structuredContent"
    )]
    pub structured_content: Option<Value>,
    /// MCP's `_meta`.
    #[serde(default, skip_serializing_if = "Map::is_empty", rename = "_meta")]
    pub meta: Map<String, Value>,
}

/// A question to the user or a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InquiryRequest {
    /// The id of the inquiry. Its response has the same.
    pub id: String,
    /// The tool that asks.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub source: Value,
    /// The question.
    pub question: InputRequest,
}

/// The answer to an inquiry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InquiryResponse {
    /// The inquiry's id.
    pub id: String,
    /// The answer.
    pub answer: Value,
}

/// A change of the conversation's own configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConfigDelta {
    /// The changed keys; `conversation.attachments` as `{"add": […], "remove": […]}`.
    #[serde(default)]
    pub delta: Map<String, Value>,
    /// Snapshots taken now for the next request: of files that can't be resolved later, and by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Snapshot>,
    /// The declarations of the snapshots taken by hand, which the next request delivers unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivered: Vec<Delivered>,
}

/// The cost of one provider response, in the provider's own figures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Provider and model, as `provider/name`.
    pub model: String,
    /// Input tokens, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Input tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<u64>,
    /// Input tokens written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Output tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// A recorded decision to leave out snapshots before this event. Because it is recorded, later requests have
/// the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Superseded {
    /// The versions that are left out.
    pub dropped: Vec<Version>,
}

/// A version of a resource: all its deliveries before the event that names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The canonical URI, fragment included.
    pub uri: String,
    /// The SHA-256 of the raw content.
    pub checksum: Checksum,
    /// The MCP server that it is from; another server's content may have the same URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// The source of an attachment differs from the conversation's snapshot. The next request notifies the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// The canonical URI.
    pub uri: String,
    /// The SHA-256 of the snapshot's content.
    pub checksum: Checksum,
    /// The resource's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The checksum of the source now; `None` if it is gone.
    pub now: Option<Checksum>,
}

/// Requests after this event shorten older turns. The events don't change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compaction {
    /// Cancels all compactions before this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    /// The number of turns before this event that stay whole. Earlier ones are shortened.
    #[serde(default)]
    pub keep_last: usize,
    /// The kinds of content that the shortened turns lose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strip: Vec<Strip>,
    /// A summary by a model that replaces the shortened turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// A kind of content that a compaction leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strip {
    /// The model's reasoning.
    Reasoning,
    /// The results of tools.
    Tools,
}

/// The error of JSON that isn't an event.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// A field is missing or of the wrong type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The time can't be read.
    #[error("timestamp {text:?} is neither RFC 3339 nor `YYYY-MM-DD hh:mm:ss.f`")]
    Timestamp {
        /// The text of the timestamp.
        text: String,
        /// The parser's error.
        source: jiff::Error,
    },
}

impl Event {
    /// Makes an event.
    #[must_use]
    pub fn new(timestamp: Timestamp, kind: EventKind) -> Self {
        Self { timestamp, kind }
    }

    /// Reads an event's JSON object.
    ///
    /// Unknown fields of known kinds are ignored. They stay in the file, which is never rewritten from
    /// events.
    pub fn from_json(json: &str) -> Result<Self, EventError> {
        #[derive(Deserialize)]
        #[serde(expecting = "an event, an object with `timestamp` and `type`")]
        struct Head<'a> {
            #[serde(borrow)]
            timestamp: std::borrow::Cow<'a, str>,
            #[serde(borrow, rename = "type")]
            kind: std::borrow::Cow<'a, str>,
        }
        let head: Head<'_> = serde_json::from_str(json)?;
        let timestamp = parse_timestamp(&head.timestamp)?;
        let kind = match &*head.kind {
            "turn_start" => EventKind::TurnStart,
            "chat_request" => EventKind::ChatRequest(serde_json::from_str(json)?),
            "chat_response" => EventKind::ChatResponse(serde_json::from_str(json)?),
            "tool_call_request" => EventKind::ToolCallRequest(serde_json::from_str(json)?),
            "tool_call_response" => EventKind::ToolCallResponse(serde_json::from_str(json)?),
            "inquiry_request" => EventKind::InquiryRequest(serde_json::from_str(json)?),
            "inquiry_response" => EventKind::InquiryResponse(serde_json::from_str(json)?),
            "config_delta" => EventKind::ConfigDelta(serde_json::from_str(json)?),
            "usage" => EventKind::Usage(serde_json::from_str(json)?),
            "superseded" => EventKind::Superseded(serde_json::from_str(json)?),
            "notification" => EventKind::Notification(serde_json::from_str(json)?),
            "compaction" => EventKind::Compaction(serde_json::from_str(json)?),
            _ => EventKind::Unknown(RawValue::from_string(json.to_owned())?),
        };
        Ok(Self { timestamp, kind })
    }

    /// Writes the event as one line of JSON without a newline. Fails if it is nested so deeply that it could not
    /// be read again.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let (kind, fields) = match &self.kind {
            EventKind::TurnStart => ("turn_start", "{}".to_owned()),
            EventKind::ChatRequest(request) => ("chat_request", json::to_string(request)?),
            EventKind::ChatResponse(response) => ("chat_response", json::to_string(response)?),
            EventKind::ToolCallRequest(request) => ("tool_call_request", json::to_string(request)?),
            EventKind::ToolCallResponse(response) => {
                ("tool_call_response", json::to_string(response)?)
            }
            EventKind::InquiryRequest(request) => ("inquiry_request", json::to_string(request)?),
            EventKind::InquiryResponse(response) => {
                ("inquiry_response", json::to_string(response)?)
            }
            EventKind::ConfigDelta(delta) => ("config_delta", json::to_string(delta)?),
            EventKind::Usage(usage) => ("usage", json::to_string(usage)?),
            EventKind::Superseded(superseded) => ("superseded", json::to_string(superseded)?),
            EventKind::Notification(notification) => {
                ("notification", json::to_string(notification)?)
            }
            EventKind::Compaction(compaction) => ("compaction", json::to_string(compaction)?),
            EventKind::Unknown(raw) => return Ok(raw.get().to_owned()),
        };
        let separator = if fields == "{}" { "" } else { "," };
        Ok(format!(
            r#"{{"timestamp":"{}","type":"{kind}"{separator}{}"#,
            self.timestamp,
            &fields[1..]
        ))
    }
}

/// Reads RFC 3339, or the older `YYYY-MM-DD hh:mm:ss.f` as UTC.
pub fn parse_timestamp(text: &str) -> Result<Timestamp, EventError> {
    text.parse::<Timestamp>()
        .or_else(|_| parse_older_timestamp(text))
        .map_err(|source| EventError::Timestamp {
            text: text.to_owned(),
            source,
        })
}

fn parse_older_timestamp(text: &str) -> Result<Timestamp, jiff::Error> {
    let time = text.parse::<DateTime>()?.to_zoned(TimeZone::UTC)?;
    Ok(time.timestamp())
}

impl ChatRequest {
    /// Makes a request that only has words.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }
}

impl ChatResponse {
    /// Makes a part of an answer that is words.
    pub fn message(content: impl Into<String>) -> Self {
        Self::new(ResponseContent::Message(content.into()))
    }

    /// Makes a part of an answer that is reasoning.
    pub fn reasoning(content: impl Into<String>) -> Self {
        Self::new(ResponseContent::Reasoning(content.into()))
    }

    fn new(content: ResponseContent) -> Self {
        Self {
            content,
            metadata: Map::new(),
            incomplete: None,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct WireResponse<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

impl Serialize for ChatResponse {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (reasoning, message) = match &self.content {
            ResponseContent::Reasoning(text) => (Some(text.into()), None),
            ResponseContent::Message(text) => (None, Some(text.into())),
        };
        let (metadata, incomplete) = (self.metadata.clone(), self.incomplete.clone());
        WireResponse {
            reasoning,
            message,
            metadata,
            incomplete,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ChatResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireResponse::deserialize(deserializer)?;
        let content = match (wire.reasoning, wire.message) {
            (Some(text), None) => ResponseContent::Reasoning(text.into_owned()),
            (None, Some(text)) => ResponseContent::Message(text.into_owned()),
            (None, None) => return Err(de::Error::custom("neither `reasoning` nor `message`")),
            (Some(_), Some(_)) => return Err(de::Error::custom("both `reasoning` and `message`")),
        };
        Ok(Self {
            content,
            metadata: wire.metadata,
            incomplete: wire.incomplete,
        })
    }
}

/// Reads a present field, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn blocks_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<StoredBlock>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(vec![StoredBlock::Text {
            text: Payload::Inline(text),
            annotations: None,
            meta: None,
        }]),
        blocks => serde_json::from_value(blocks).map_err(de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) {
        let event = Event::from_json(json).unwrap();
        assert_eq!(event.to_json().unwrap(), json);
    }

    #[test]
    fn every_kind_reads_what_it_writes() {
        for fields in [
            r#""type":"turn_start"}"#,
            r#""type":"chat_request","content":"hi"}"#,
            r#""type":"chat_request","content":"hi","author":"J","resources":[{"uri":"a:b","content":{"text":"x"}}],"delivered":[{"declaration":"a:b","resources":[0]}]}"#,
            r#""type":"chat_response","message":"ho","metadata":{"k":"v"},"incomplete":"connection lost"}"#,
            r#""type":"chat_response","reasoning":"hm"}"#,
            r#""type":"tool_call_request","id":"1","name":"read","arguments":{"path":"a"}}"#,
            r#""type":"tool_call_response","id":"1","content":[{"type":"text","text":"x"}],"is_error":false,"structuredContent":null}"#,
            r#""type":"tool_call_response","id":"1","content":[{"length":2,"type":"video","uri":"workspace:///v"},{"type":"text","text":"x"}],"is_error":false}"#,
            r#""type":"tool_call_request","id":"1","name":"f","arguments":{"x":1.6484757319101372e-7}}"#,
            r#""type":"inquiry_request","id":"1","question":{"id":"q","text":"?","schema":{"type":"boolean"}}}"#,
            r#""type":"inquiry_response","id":"1","answer":true}"#,
            r#""type":"config_delta","delta":{"conversation":{"attachments":{"add":["file:a"]}}}}"#,
            r#""type":"usage","model":"a/b","input":3,"cached_read":2,"output":1}"#,
            r#""type":"superseded","dropped":[{"uri":"a:b","checksum":"3687c5d6189e4854287b43cba131a88d2e156c8976d0359d60055da525a84330","server":"docs"}]}"#,
            r#""type":"notification","uri":"a:b","checksum":"3687c5d6189e4854287b43cba131a88d2e156c8976d0359d60055da525a84330","name":"b","now":null}"#,
            r#""type":"compaction","keep_last":2,"strip":["reasoning","tools"],"summary":"x"}"#,
            r#""type":"compaction","reset":true,"keep_last":0}"#,
            r#""type":"from_the_future","anything":[1.0,{"x":null}]}"#,
        ] {
            round_trip(&format!(
                r#"{{"timestamp":"2026-11-21T12:00:00.123456Z",{fields}"#
            ));
        }
    }

    #[test]
    fn older_timestamps_are_utc() {
        let time = |text: &str| parse_timestamp(text).unwrap().to_string();
        assert_eq!(time("2026-03-05 19:31:45.7"), "2026-03-05T19:31:45.7Z");
        assert_eq!(time("2026-03-05T20:31:45+01:00"), "2026-03-05T19:31:45Z");
        assert!(parse_timestamp("yesterday").is_err());
    }

    #[test]
    fn flat_tool_response_becomes_one_text_block() {
        let event = Event::from_json(
            r#"{"timestamp":"2026-11-21T12:00:00Z","type":"tool_call_response","id":"1","content":"x","is_error":true}"#,
        )
        .unwrap();
        let EventKind::ToolCallResponse(response) = event.kind.clone() else {
            panic!("a tool response")
        };
        let text = StoredBlock::Text {
            text: Payload::Inline("x".into()),
            annotations: None,
            meta: None,
        };
        assert_eq!((&response.content, response.is_error), (&vec![text], true));
        let event = Event {
            kind: EventKind::ToolCallResponse(response),
            ..event
        };
        insta::assert_snapshot!(event.to_json().unwrap(), @r#"{"timestamp":"2026-11-21T12:00:00Z","type":"tool_call_response","id":"1","content":[{"type":"text","text":"x"}],"is_error":true}"#);
    }

    #[test]
    fn error_names_the_missing_field() {
        let error =
            Event::from_json(r#"{"timestamp":"2026-11-21T12:00:00Z","type":"chat_request"}"#)
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "missing field `content` at line 1 column 58"
        );
    }
}
