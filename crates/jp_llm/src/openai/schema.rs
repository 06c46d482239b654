//! Tells which schemas the API can enforce.

use serde_json::{Map, Value};

/// Returns whether a schema is of the subset that `strict` takes (guide "Structured outputs", "Supported
/// schemas"); any other is refused with it.
///
/// Every object closed and every property required; keywords that are not known to pass don't.
pub(super) fn is_strict(schema: &Map<String, Value>) -> bool {
    let is_object = schema.get("type").is_some_and(|name| name == "object");
    is_object && !schema.contains_key("anyOf") && is_supported(schema)
}

fn is_supported(schema: &Map<String, Value>) -> bool {
    is_closed(schema)
        && schema
            .iter()
            .all(|(keyword, value)| is_supported_keyword(keyword, value))
}

fn is_supported_keyword(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type"
        | "description"
        | "title"
        | "enum"
        | "const"
        | "$ref"
        | "required"
        | "additionalProperties" => true,
        "items" => is_supported_value(value),
        "anyOf" => value
            .as_array()
            .is_some_and(|any| any.iter().all(is_supported_value)),
        "properties" | "$defs" | "definitions" => value
            .as_object()
            .is_some_and(|schemas| schemas.values().all(is_supported_value)),
        _ => false,
    }
}

fn is_supported_value(schema: &Value) -> bool {
    schema.as_object().is_some_and(is_supported)
}

/// Returns whether a schema is of no object, or of one that has all its properties and no others.
fn is_closed(schema: &Map<String, Value>) -> bool {
    let is_object =
        schema.get("type").is_some_and(names_object) || schema.contains_key("properties");
    !is_object
        || (schema.get("additionalProperties") == Some(&Value::Bool(false)) && has_all(schema))
}

/// Reads the value of `type`: a name or several.
fn names_object(value: &Value) -> bool {
    value == "object"
        || value
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == "object"))
}

fn has_all(schema: &Map<String, Value>) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    properties.is_some_and(|properties| {
        properties
            .keys()
            .all(|name| required.iter().any(|known| known == name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(json: &str) -> bool {
        is_strict(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn closed_objects_with_all_properties_are_strict() {
        for schema in [
            r#"{"type":"object","properties":{},"additionalProperties":false}"#,
            r##"{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":"array","items":{"$ref":"#/$defs/c"}}},"required":["b","a"],"additionalProperties":false,"$defs":{"c":{"anyOf":[{"type":"number"},{"const":1}]}}}"##,
        ] {
            assert!(strict(schema), "{schema}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for schema in [
            "{}",
            r#"{"type":"object"}"#,
            r#"{"type":"string"}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"not":{}}},"required":["a"],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false}"#,
        ] {
            assert!(!strict(schema), "{schema}");
        }
    }
}
