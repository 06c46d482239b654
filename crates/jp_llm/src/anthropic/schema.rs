use serde_json::{Map, Value};

/// Returns a schema with every object closed: the API refuses objects without `additionalProperties: false`.
///
/// An object that has `additionalProperties` keeps its value.
pub(super) fn close_objects(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut closed: Map<String, Value> = schema
        .iter()
        .map(|(key, value)| (key.clone(), close_value(key, value)))
        .collect();
    if schema.get("type").is_some_and(is_object) && !schema.contains_key("additionalProperties") {
        closed.insert("additionalProperties".to_owned(), false.into());
    }
    closed
}

/// Descends wherever schemas can be; what stands for data stays as it is.
fn close_value(key: &str, value: &Value) -> Value {
    match value {
        _ if ["const", "default", "enum", "examples"].contains(&key) => value.clone(),
        Value::Object(schema) => close_objects(schema).into(),
        Value::Array(schemas) => schemas
            .iter()
            .map(|schema| close_value("", schema))
            .collect(),
        _ => value.clone(),
    }
}

/// Reads the value of `type`: a name or several. A property that is called `type` has a schema there.
fn is_object(value: &Value) -> bool {
    value == "object"
        || value
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == "object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_closed_at_every_depth() {
        let schema = json!({
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["object"]},
                "open": {"type": ["object", "null"], "additionalProperties": true},
                "list": {"type": "array", "items": {"type": "object", "default": {"type": "object"}}},
            },
            "$defs": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
        });
        let closed = Value::Object(close_objects(schema.as_object().unwrap()));
        insta::assert_snapshot!(closed, @r#"{"type":"object","properties":{"type":{"type":"string","enum":["object"]},"open":{"type":["object","null"],"additionalProperties":true},"list":{"type":"array","items":{"type":"object","default":{"type":"object"},"additionalProperties":false}}},"$defs":{"a":{"anyOf":[{"type":"object","additionalProperties":false},{"type":"null"}]}},"additionalProperties":false}"#);
    }
}
