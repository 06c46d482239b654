//! Converts the formats of older versions.
//!
//! Conversion is a function from JSON to JSON, so that unknown fields survive it. It wraps flat
//! configuration deltas, decodes base64, turns times into RFC 3339, and turns the `answer_type` of a
//! question into a schema.

use jiff::Timestamp;
use jp_conversation::parse_timestamp;
use jp_resource::decode_base64;
use jp_tool::AnswerType;
use serde_json::{Map, Value, json};

/// Events in the current format.
#[derive(Debug, PartialEq)]
pub(crate) struct Converted {
    /// The JSON objects of each older event: one, or several if it held a whole message.
    pub events: Vec<Vec<Value>>,
    /// The parts that could not be converted and are unchanged.
    pub warnings: Vec<String>,
}

/// An event's envelope.
#[derive(serde::Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    timestamp: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    /// The model's answer, in an exchange of `messages.json`.
    #[serde(default)]
    reply: Option<serde::de::IgnoredAny>,
}

impl Head<'_> {
    /// Returns true if it holds whole messages, with calls of tools or their results.
    fn is_message(&self) -> bool {
        match &*self.kind {
            "" => self.reply.is_some(),
            kind => is_message(kind),
        }
    }
}

/// Returns true if an older version wrote the event. Doesn't parse most events of this version.
#[must_use]
pub(crate) fn is_older(event: &str) -> bool {
    if current_kind(event).is_some_and(|kind| !is_message(kind)) {
        return false;
    }
    serde_json::from_str::<Head<'_>>(event).is_ok_and(|head| match &head.timestamp {
        // RFC 3339 has a `T` where the older format has a space.
        Some(time) => time.as_bytes().get(10) == Some(&b' ') || head.is_message(),
        None => head.kind == "config_delta" || head.is_message(),
    })
}

/// Returns the kind of an event in this version's form: the time with a `T` comes first, then the kind.
fn current_kind(event: &str) -> Option<&str> {
    let (time, rest) = event.strip_prefix(r#"{"timestamp":""#)?.split_once('"')?;
    let (kind, _) = rest.strip_prefix(r#","type":""#)?.split_once('"')?;
    (time.as_bytes().get(10) == Some(&b'T')).then_some(kind)
}

/// Returns true if events of this kind hold a whole message, with its tool calls or their results.
fn is_message(kind: &str) -> bool {
    matches!(kind, USER_MESSAGE | ASSISTANT_MESSAGE)
}

const USER_MESSAGE: &str = "user_message";
const ASSISTANT_MESSAGE: &str = "assistant_message";

/// Returns the time of an event, if it has one.
#[must_use]
pub(crate) fn time_of(event: &str) -> Option<Timestamp> {
    parse_timestamp(&serde_json::from_str::<Head<'_>>(event).ok()?.timestamp?).ok()
}

/// Gives an event a time if it has none. An older version wrote `config_delta` without one.
pub(crate) fn add_time(event: &mut Value, time: Timestamp) {
    if let Some(event) = event.as_object_mut()
        && event.get("timestamp").is_none_or(Value::is_null)
    {
        event.insert("timestamp".to_owned(), time.to_string().into());
    }
}

/// Returns true if an event starts a turn: it is the user's message and doesn't hold results of tools.
pub(crate) fn is_request(event: &str) -> bool {
    serde_json::from_str::<Head<'_>>(event).is_ok_and(|head| match &*head.kind {
        "chat_request" => true,
        USER_MESSAGE | "" if head.is_message() => serde_json::from_str::<Map<String, Value>>(event)
            .is_ok_and(|event| user_content(&event).is_some_and(Value::is_string)),
        _ => false,
    })
}

/// Converts events of an older version.
///
/// `are_all` is true for a whole conversation. Only then can base64 be detected.
#[must_use]
pub(crate) fn convert(mut events: Vec<Value>, are_all: bool) -> Converted {
    let mut warnings = Vec::new();
    if are_all && is_base64(&events) {
        let mut position = 0;
        for_each_encoded(&mut events, &mut |index, text| {
            position += 1;
            match decode_text(text) {
                Some(decoded) => *text = decoded,
                None => warnings.push(format!(
                    "event {}: damaged base64 is kept unchanged",
                    index + 1
                )),
            }
        });
    }
    for event in events.iter_mut().filter_map(Value::as_object_mut) {
        convert_timestamp(event);
        match event.get("type").and_then(Value::as_str) {
            Some("config_delta") => wrap_delta(event),
            Some("inquiry_request") => convert_question(event),
            _ => {}
        }
    }
    let events = events
        .into_iter()
        .zip(1..)
        .map(|(event, number)| {
            split_message(event).unwrap_or_else(|event| {
                warnings.push(format!(
                    "event {number}: this message has an unknown form and is kept unchanged"
                ));
                vec![event]
            })
        })
        .collect();
    Converted { events, warnings }
}

/// Splits an event that holds a whole message; others stay unchanged. Returns a message without any
/// known part as the error.
fn split_message(event: Value) -> Result<Vec<Value>, Value> {
    let parts = match (event.get("type").and_then(Value::as_str), event.as_object()) {
        (Some(USER_MESSAGE), Some(message)) => split_user_message(message),
        (Some(ASSISTANT_MESSAGE), Some(message)) => split_assistant_message(message),
        (None, Some(exchange)) if exchange.contains_key("reply") => split_exchange(exchange),
        _ => return Ok(vec![event]),
    };
    let Some(mut parts) = parts.filter(|parts| !parts.is_empty()) else {
        return Err(event);
    };
    // All parts have the message's time. Unknown fields stay with the first.
    let time = event.get("timestamp").cloned();
    for part in &mut parts {
        let kind = part.shift_remove_entry("type");
        let fields = std::mem::take(part);
        part.extend(time.clone().map(|time| ("timestamp".to_owned(), time)));
        part.extend(kind.into_iter().chain(fields));
    }
    if let (Some(first), Value::Object(event)) = (parts.first_mut(), event) {
        let unknown = event.into_iter().filter(|(key, _)| !is_message_field(key));
        unknown.for_each(|(key, value)| _ = first.entry(key).or_insert(value));
    }
    Ok(parts.into_iter().map(Value::Object).collect())
}

/// The fields of a message that its parts contain. All other fields are unknown and are kept.
const MESSAGE_FIELDS: [&str; 10] = [
    "timestamp",
    "type",
    "message",
    "query",
    "content",
    "results",
    "reasoning",
    "tool_calls",
    "metadata",
    "reply",
];

fn is_message_field(key: &str) -> bool {
    MESSAGE_FIELDS.contains(&key)
}

/// Splits an element of `messages.json`: the user's message and the model's reply.
fn split_exchange(exchange: &Map<String, Value>) -> Option<Vec<Map<String, Value>>> {
    let mut parts = split_user_message(exchange)?;
    let reply = exchange.get("reply")?.as_object()?;
    let mut answers = split_assistant_message(reply)?;
    if let Some(first) = answers.first_mut() {
        let unknown = reply.iter().filter(|(key, _)| !is_message_field(key));
        unknown.for_each(|(key, value)| _ = first.entry(key).or_insert_with(|| value.clone()));
    }
    parts.extend(answers);
    Some(parts)
}

/// Returns the text of the user's message, or the results of tools that it holds.
fn user_content(message: &Map<String, Value>) -> Option<&Value> {
    ["message", "query", "content", "results"]
        .into_iter()
        .filter_map(|key| message.get(key))
        .find(|value| value.is_string() || value.is_array())
}

fn split_user_message(message: &Map<String, Value>) -> Option<Vec<Map<String, Value>>> {
    match user_content(message)? {
        Value::Array(results) => results.iter().map(convert_result).collect(),
        content => Some(vec![fields(
            json!({"type": "chat_request", "content": content}),
        )]),
    }
}

/// Converts a result of a tool. The older name of its error flag is `error`.
fn convert_result(result: &Value) -> Option<Map<String, Value>> {
    let mut result = result.as_object()?.clone();
    let is_error = result
        .shift_remove("error")
        .filter(Value::is_boolean)
        .unwrap_or(Value::Bool(false));
    let is_whole = result.get("id").is_some_and(Value::is_string)
        && result.get("content").is_some_and(Value::is_string);
    result.insert("type".to_owned(), "tool_call_response".into());
    result.entry("is_error").or_insert(is_error);
    is_whole.then_some(result)
}

fn split_assistant_message(message: &Map<String, Value>) -> Option<Vec<Map<String, Value>>> {
    let reasoning = text_at(message, "reasoning")
        .map(|text| json!({"type": "chat_response", "reasoning": text}));
    let words = text_at(message, "content").or_else(|| text_at(message, "message"));
    let words = words.map(|text| json!({"type": "chat_response", "message": text}));
    let calls = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let calls: Vec<_> = calls.map(convert_call).collect::<Option<_>>()?;
    let said = reasoning.into_iter().chain(words).map(fields);
    let mut parts: Vec<_> = said.chain(calls).collect();
    // Providers expect their metadata with the first part of an answer.
    if let (Some(first), Some(Value::Object(metadata))) =
        (parts.first_mut(), message.get("metadata"))
    {
        first.insert("metadata".to_owned(), Value::Object(metadata.clone()));
    }
    Some(parts)
}

/// Returns a text field that isn't empty.
fn text_at<'a>(message: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let text = message.get(key)?;
    text.as_str()
        .is_some_and(|text| !text.is_empty())
        .then_some(text)
}

fn convert_call(call: &Value) -> Option<Map<String, Value>> {
    let mut call = call.as_object()?.clone();
    let is_whole = ["id", "name"]
        .iter()
        .all(|key| call.get(*key).is_some_and(Value::is_string));
    call.insert("type".to_owned(), "tool_call_request".into());
    is_whole.then_some(call)
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns true if the tool arguments and results of a whole conversation are base64.
///
/// A single string is no proof: it can be valid base64 by chance, and it can be damaged.
fn is_base64(events: &[Value]) -> bool {
    let (mut decoded, mut all) = (0, 0);
    for_each_encoded(&mut events.to_vec(), &mut |_, text| {
        if !text.is_empty() {
            all += 1;
            decoded += usize::from(decode_text(text).is_some());
        }
    });
    // One in ten may be damaged. Among plain texts, far fewer than nine in ten decode by chance.
    all > 0 && decoded * 10 >= all * 9
}

fn decode_text(text: &str) -> Option<String> {
    String::from_utf8(decode_base64(text).ok()?).ok()
}

/// Visits the strings that are base64 in the older format, with the index of their event.
fn for_each_encoded(events: &mut [Value], visit: &mut dyn FnMut(usize, &mut String)) {
    for (index, event) in events.iter_mut().enumerate() {
        let kind = event.get("type").and_then(Value::as_str);
        let field = match kind {
            Some("tool_call_request") => event.get_mut("arguments"),
            Some("tool_call_response") => event
                .get_mut("content")
                .filter(|content| content.is_string()),
            _ => None,
        };
        if let Some(value) = field {
            for_each_string(value, &mut |text| visit(index, text));
        }
    }
}

fn for_each_string(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| for_each_string(value, visit)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|value| for_each_string(value, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn convert_timestamp(event: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = event.get_mut("timestamp")
        && let Ok(timestamp) = parse_timestamp(text)
    {
        *text = timestamp.to_string();
    }
}

fn wrap_delta(event: &mut Map<String, Value>) {
    if event.contains_key("delta") {
        return;
    }
    let (envelope, delta) = std::mem::take(event)
        .into_iter()
        .partition(|(key, _)| matches!(key.as_str(), "timestamp" | "type"));
    *event = envelope;
    event.insert("delta".to_owned(), Value::Object(delta));
}

fn convert_question(event: &mut Map<String, Value>) {
    let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
    let id = id.rsplit('.').next().unwrap_or_default().to_owned();
    let Some(Value::Object(question)) = event.get_mut("question") else {
        return;
    };
    if !question.contains_key("schema") {
        let answer_type = question.shift_remove("answer_type").unwrap_or_default();
        question.insert("schema".to_owned(), Value::Object(schema(&answer_type)));
    }
    question.entry("id").or_insert(Value::String(id));
}

fn schema(answer_type: &Value) -> Map<String, Value> {
    let options = answer_type.get("options").and_then(Value::as_array);
    match (answer_type.get("type").and_then(Value::as_str), options) {
        (Some("boolean"), _) => AnswerType::Boolean.into(),
        (Some("select"), Some(options)) => {
            let options = options.iter().map(option_text).collect();
            AnswerType::Select { options }.into()
        }
        _ => AnswerType::Text.into(),
    }
}

fn option_text(option: &Value) -> String {
    option
        .as_str()
        .map_or_else(|| option.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts events each of which becomes one.
    fn convert_each(events: Vec<Value>, are_all: bool) -> Vec<Value> {
        convert(events, are_all)
            .events
            .into_iter()
            .map(|mut event| event.remove(0))
            .collect()
    }

    #[test]
    fn base64_of_either_alphabet_is_decoded() {
        let response =
            |content: &str| json!({"type": "tool_call_response", "id": "1", "content": content});
        let mut events: Vec<Value> = (0..10).map(|_| response("YT4_")).collect();
        events.push(
            json!({"type": "tool_call_request", "arguments": {"a": [{"b": "eA=="}], "n": 1}}),
        );
        events.push(response("damaged!"));
        let converted = convert(events, true);
        assert_eq!(converted.events[0], [response("a>?")]);
        assert_eq!(
            converted.events[10][0]["arguments"],
            json!({"a": [{"b": "x"}], "n": 1})
        );
        assert_eq!(converted.events[11], [response("damaged!")]);
        assert_eq!(
            converted.warnings,
            ["event 12: damaged base64 is kept unchanged"]
        );
    }

    #[test]
    fn plain_text_like_base64_stays() {
        let call = |path: &str| json!({"type": "tool_call_request", "arguments": {"path": path}});
        let events = vec![call("abcd"), call("src/lib.rs"), call("two words")];
        assert_eq!(convert_each(events.clone(), true), events);
    }

    #[test]
    fn part_of_a_conversation_is_not_decoded() {
        let call = |time: &str, path: &str| json!({"timestamp": time, "type": "tool_call_request", "arguments": {"path": path}});
        let older = vec![call("2026-11-21 12:00:00.5", "YWJjZA==")];
        let time = "2026-11-21T12:00:00.5Z";
        assert_eq!(convert_each(older.clone(), false), [call(time, "YWJjZA==")]);
        assert_eq!(convert_each(older, true), [call(time, "abcd")]);
    }

    #[test]
    fn wrapped_flat_delta_keeps_everything() {
        let event = json!({"type": "config_delta", "timestamp": "2025-12-04 09:28:23.2", "inherit": true, "assistant": {}});
        assert_eq!(
            convert_each(vec![event], true),
            [
                json!({"type": "config_delta", "timestamp": "2025-12-04T09:28:23.2Z", "delta": {"inherit": true, "assistant": {}}})
            ]
        );
    }

    #[test]
    fn message_becomes_its_events() {
        let time = "2025-07-30 10:00:00.5";
        let events = vec![
            json!({"timestamp": time, "type": "user_message", "message": "go", "mood": "good"}),
            json!({"timestamp": time, "type": "assistant_message", "provider": "openai", "reasoning": "hm", "content": "well",
                "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": "x"}}], "metadata": {"k": "v"}}),
            json!({"timestamp": time, "type": "user_message", "message": [{"id": "1", "content": "y", "error": true}]}),
            json!({"timestamp": time, "type": "user_message", "message": 7}),
        ];
        let converted = convert(events, true);
        let time = "2025-07-30T10:00:00.5Z";
        assert_eq!(
            converted.events,
            [
                vec![
                    json!({"timestamp": time, "type": "chat_request", "content": "go", "mood": "good"})
                ],
                vec![
                    json!({"timestamp": time, "type": "chat_response", "reasoning": "hm", "metadata": {"k": "v"}, "provider": "openai"}),
                    json!({"timestamp": time, "type": "chat_response", "message": "well"}),
                    json!({"timestamp": time, "type": "tool_call_request", "id": "1", "name": "f", "arguments": {"a": "x"}}),
                ],
                vec![
                    json!({"timestamp": time, "type": "tool_call_response", "id": "1", "content": "y", "is_error": true})
                ],
                vec![json!({"timestamp": time, "type": "user_message", "message": 7})],
            ]
        );
        assert_eq!(
            converted.warnings,
            ["event 4: this message has an unknown form and is kept unchanged"]
        );
    }

    #[test]
    fn exchange_becomes_two_events() {
        let events = vec![
            json!({"timestamp": "2025-05-02 16:43:28.8", "message": "go", "context": {"persona_id": "default"},
                "reply": {"provider": "anthropic", "content": "well", "tool_calls": [{"id": "1", "name": "f", "arguments": {}}]}}),
            json!({"timestamp": "2025-05-02 16:43:29.8", "message": [{"id": "1", "content": "y", "error": false}], "reply": {}}),
        ];
        let converted = convert(events, true);
        let times = ["2025-05-02T16:43:28.8Z", "2025-05-02T16:43:29.8Z"];
        assert_eq!(
            converted.events,
            [
                vec![
                    json!({"timestamp": times[0], "type": "chat_request", "content": "go", "context": {"persona_id": "default"}}),
                    json!({"timestamp": times[0], "type": "chat_response", "message": "well", "provider": "anthropic"}),
                    json!({"timestamp": times[0], "type": "tool_call_request", "id": "1", "name": "f", "arguments": {}}),
                ],
                vec![
                    json!({"timestamp": times[1], "type": "tool_call_response", "id": "1", "content": "y", "is_error": false})
                ],
            ]
        );
    }

    #[test]
    fn older_events_are_recognised() {
        let time = "2026-11-21T12:00:00Z";
        for (event, is_old) in [
            (
                format!(
                    r#"{{"timestamp":"{time}","type":"chat_request","content":"user_message"}}"#
                ),
                false,
            ),
            (
                format!(r#"{{"timestamp":"{time}","type":"user_message","message":"x"}}"#),
                true,
            ),
            (
                format!(r#"{{"type": "assistant_message", "timestamp": "{time}"}}"#),
                true,
            ),
            (
                r#"{"timestamp":"2025-11-21 12:00:00.5","type":"turn_start"}"#.to_owned(),
                true,
            ),
            (r#"{"type": "config_delta"}"#.to_owned(), true),
            (
                r#"{"timestamp":null,"type":"config_delta"}"#.to_owned(),
                true,
            ),
            (
                format!(r#"{{"timestamp":"{time}","message":"x","reply":{{}}}}"#),
                true,
            ),
            (r#"{"type":"chat_request","content":"x"}"#.to_owned(), false),
        ] {
            assert_eq!(is_older(&event), is_old, "{event}");
        }
    }

    #[test]
    fn answer_type_becomes_a_schema() {
        let question = |answer_type| {
            let event = json!({"type": "inquiry_request", "id": "call.apply", "question": {"text": "?", "answer_type": answer_type}});
            convert_each(vec![event], true).remove(0)["question"].take()
        };
        assert_eq!(
            question(json!({"type": "boolean"})),
            json!({"text": "?", "schema": {"type": "boolean"}, "id": "apply"})
        );
        let select = question(json!({"type": "select", "options": ["a", "b"]}));
        assert_eq!(
            select["schema"],
            json!({"type": "string", "enum": ["a", "b"]})
        );
    }
}
