//! Reading the formats of older versions (design 03 and 08, "Old data").
//!
//! Conversion is a function from JSON to JSON, so that fields nobody knows any more survive it: flat
//! configuration deltas are wrapped, base64 is decoded, times become RFC 3339, a question's
//! `answer_type` becomes a schema.

use jp_conversation::parse_timestamp;
use jp_resource::decode_base64;
use jp_tool::AnswerType;
use serde_json::{Map, Value};

/// Events in the current format.
#[derive(Debug, PartialEq)]
pub(crate) struct Converted {
    /// The events' JSON objects.
    pub events: Vec<Value>,
    /// What could not be converted and was kept as it is.
    pub warnings: Vec<String>,
}

/// Returns whether an event is as an older version wrote it; cheap, on its text.
#[must_use]
pub(crate) fn is_older(event: &str) -> bool {
    // As this version writes it: the time first, with its `T`.
    let time = event.strip_prefix(r#"{"timestamp":""#);
    if time.is_some_and(|time| time.as_bytes().get(10) == Some(&b'T')) {
        return false;
    }
    #[derive(serde::Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        timestamp: std::borrow::Cow<'a, str>,
    }
    // RFC 3339 has a `T` where the older format has a space.
    serde_json::from_str::<Head<'_>>(event).is_ok_and(|head| head.timestamp.as_bytes().get(10) == Some(&b' '))
}

/// Converts events: a whole conversation, or those of one that an older version wrote.
#[must_use]
pub(crate) fn convert(mut events: Vec<Value>, are_all: bool) -> Converted {
    let mut warnings = Vec::new();
    if are_all && is_base64(&events) {
        let mut position = 0;
        for_each_encoded(&mut events, &mut |index, text| {
            position += 1;
            match decode_text(text) {
                Some(decoded) => *text = decoded,
                None => warnings.push(format!("event {}: damaged base64 kept as it is", index + 1)),
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
    Converted { events, warnings }
}

/// Decides for the conversation as a whole whether tool arguments and results are base64.
///
/// A single string can be valid base64 by chance, and a single one can be damaged.
fn is_base64(events: &[Value]) -> bool {
    let (mut decoded, mut all) = (0, 0);
    for_each_encoded(&mut events.to_vec(), &mut |_, text| {
        if !text.is_empty() {
            all += 1;
            decoded += usize::from(decode_text(text).is_some());
        }
    });
    all > 0 && decoded * 10 >= all * 9
}

fn decode_text(text: &str) -> Option<String> {
    String::from_utf8(decode_base64(text).ok()?).ok()
}

/// Visits the strings that the older format wrote as base64, with the index of their event.
fn for_each_encoded(events: &mut [Value], visit: &mut dyn FnMut(usize, &mut String)) {
    for (index, event) in events.iter_mut().enumerate() {
        let kind = event.get("type").and_then(Value::as_str);
        let field = match kind {
            Some("tool_call_request") => event.get_mut("arguments"),
            Some("tool_call_response") => event.get_mut("content").filter(|content| content.is_string()),
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
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_string(value, visit)),
        Value::Object(map) => map.values_mut().for_each(|value| for_each_string(value, visit)),
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
    let is_envelope = |key: &str| matches!(key, "timestamp" | "type");
    let keys: Vec<String> = event.keys().filter(|key| !is_envelope(key)).cloned().collect();
    let delta = keys.iter().filter_map(|key| event.shift_remove_entry(key)).collect();
    event.insert("delta".to_owned(), Value::Object(delta));
}

fn convert_question(event: &mut Map<String, Value>) {
    let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
    let id = id.rsplit('.').next().unwrap_or_default().to_owned();
    let Some(Value::Object(question)) = event.get_mut("question") else { return };
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
            let text = |option: &Value| option.as_str().map_or_else(|| option.to_string(), str::to_owned);
            AnswerType::Select { options: options.iter().map(text).collect() }.into()
        }
        _ => AnswerType::Text.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_of_both_alphabets_is_decoded_and_damage_is_kept_with_a_warning() {
        let response = |content: &str| json!({"type": "tool_call_response", "id": "1", "content": content});
        let mut events: Vec<Value> = (0..10).map(|_| response("YT4_")).collect();
        events.push(json!({"type": "tool_call_request", "arguments": {"a": [{"b": "eA=="}], "n": 1}}));
        events.push(response("damaged!"));
        let converted = convert(events, true);
        assert_eq!(converted.events[0], response("a>?"));
        assert_eq!(converted.events[10]["arguments"], json!({"a": [{"b": "x"}], "n": 1}));
        assert_eq!(converted.events[11], response("damaged!"));
        assert_eq!(converted.warnings, ["event 12: damaged base64 kept as it is"]);
    }

    #[test]
    fn plain_text_that_could_be_base64_is_left_alone() {
        let call = |path: &str| json!({"type": "tool_call_request", "arguments": {"path": path}});
        let events = vec![call("abcd"), call("src/lib.rs"), call("two words")];
        assert_eq!(convert(events.clone(), true).events, events);
    }

    #[test]
    fn strings_of_a_part_of_a_conversation_are_no_base64() {
        let call = |time: &str, path: &str| json!({"timestamp": time, "type": "tool_call_request", "arguments": {"path": path}});
        let older = vec![call("2026-11-21 12:00:00.5", "YWJjZA==")];
        let time = "2026-11-21T12:00:00.5Z";
        assert_eq!(convert(older.clone(), false).events, [call(time, "YWJjZA==")]);
        assert_eq!(convert(older, true).events, [call(time, "abcd")]);
    }

    #[test]
    fn flat_delta_is_wrapped_and_keeps_everything() {
        let event = json!({"type": "config_delta", "timestamp": "2025-12-04 09:28:23.2", "inherit": true, "assistant": {}});
        let converted = convert(vec![event], true);
        assert_eq!(
            converted.events,
            [
                json!({"type": "config_delta", "timestamp": "2025-12-04T09:28:23.2Z", "delta": {"inherit": true, "assistant": {}}})
            ]
        );
    }

    #[test]
    fn answer_type_becomes_a_schema() {
        let question = |answer_type| {
            let event = json!({"type": "inquiry_request", "id": "call.apply", "question": {"text": "?", "answer_type": answer_type}});
            convert(vec![event], true).events.remove(0)["question"].take()
        };
        assert_eq!(
            question(json!({"type": "boolean"})),
            json!({"text": "?", "schema": {"type": "boolean"}, "id": "apply"})
        );
        let select = question(json!({"type": "select", "options": ["a", "b"]}));
        assert_eq!(select["schema"], json!({"type": "string", "enum": ["a", "b"]}));
    }
}
