//! Checks parameters of tools that become HTTP headers (MCP 2026-07-28, "Custom Headers from Tool
//! Parameters").
//!
//! rmcp makes the headers. If a tool's schema asks for an impossible one, the tool must not be called.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// The keyword with the header's name in the schema of a parameter.
const ANNOTATION: &str = "x-mcp-header";
/// Keywords whose values aren't schemas.
const DATA: [&str; 4] = ["default", "const", "enum", "examples"];
/// Keywords whose values are schemas by name.
const BY_NAME: [&str; 4] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
];

/// The place of a schema in the schema of a tool's arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Below the root and reached only by names of properties.
    Parameter,
    Elsewhere,
}

/// Checks the headers in the schema of a tool's arguments. Describes the first mistake.
pub(crate) fn check(schema: &Map<String, Value>) -> Result<(), String> {
    check_schema(schema, Place::Root, &mut HashSet::new())
}

fn check_schema(
    schema: &Map<String, Value>,
    place: Place,
    seen: &mut HashSet<String>,
) -> Result<(), String> {
    for (keyword, value) in schema {
        match keyword.as_str() {
            ANNOTATION => check_annotation(value, schema, place, seen)?,
            "properties" => {
                let place = if place == Place::Elsewhere {
                    place
                } else {
                    Place::Parameter
                };
                check_all(
                    value.as_object().into_iter().flat_map(Map::values),
                    place,
                    seen,
                )?;
            }
            keyword if DATA.contains(&keyword) => {}
            keyword if BY_NAME.contains(&keyword) => {
                check_all(
                    value.as_object().into_iter().flat_map(Map::values),
                    Place::Elsewhere,
                    seen,
                )?;
            }
            _ => {
                let all = value
                    .as_array()
                    .map_or(std::slice::from_ref(value), Vec::as_slice);
                check_all(all.iter(), Place::Elsewhere, seen)?;
            }
        }
    }
    Ok(())
}

fn check_all<'a>(
    schemas: impl Iterator<Item = &'a Value>,
    place: Place,
    seen: &mut HashSet<String>,
) -> Result<(), String> {
    schemas
        .filter_map(Value::as_object)
        .try_for_each(|schema| check_schema(schema, place, seen))
}

fn check_annotation(
    header: &Value,
    schema: &Map<String, Value>,
    place: Place,
    seen: &mut HashSet<String>,
) -> Result<(), String> {
    let name = header.as_str().unwrap_or_default();
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!(
            "`{ANNOTATION}` is {header}, which is not a header name"
        ));
    }
    if place != Place::Parameter {
        return Err(format!("`{ANNOTATION}` {header} is not on a parameter"));
    }
    if !matches!(
        schema.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "boolean")
    ) {
        return Err(format!(
            "`{ANNOTATION}` {header} is on a parameter that is not a string, an integer or a boolean"
        ));
    }
    if !seen.insert(name.to_ascii_lowercase()) {
        return Err(format!("`{ANNOTATION}` {header} is on two parameters"));
    }
    Ok(())
}

/// Returns true if a byte is valid in the name of a header (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(properties: Value) -> Result<(), String> {
        let Value::Object(schema) = json!({"type": "object", "properties": properties}) else {
            unreachable!()
        };
        check(&schema)
    }

    #[test]
    fn headers_of_plain_parameters_are_accepted() {
        assert_eq!(
            checked(
                json!({"a": {"type": "string", "x-mcp-header": "Region"}, "b": {"type": "number"}})
            ),
            Ok(())
        );
        let nested = json!({"a": {"type": "object", "properties": {"b": {"type": "boolean", "x-mcp-header": "B"}}}});
        assert_eq!(checked(nested), Ok(()));
    }

    #[test]
    fn parameter_named_like_the_keyword_is_accepted() {
        assert_eq!(
            checked(
                json!({"x-mcp-header": {"type": "array"}, "a": {"default": {"x-mcp-header": 1}}})
            ),
            Ok(())
        );
    }

    #[test]
    fn impossible_header_is_refused() {
        for header in [
            json!(""),
            json!(1),
            json!("a b"),
            json!("a:b"),
            json!("é"),
            json!("a\r\nb"),
        ] {
            let fault = format!("`x-mcp-header` is {header}, which is not a header name");
            assert_eq!(
                checked(json!({"a": {"type": "string", "x-mcp-header": header}})),
                Err(fault)
            );
        }
        for kind in [
            json!("number"),
            json!("object"),
            json!("array"),
            json!("null"),
            json!(["string", "null"]),
        ] {
            let fault =
                "`x-mcp-header` \"A\" is on a parameter that is not a string, an integer or a boolean"
                    .to_owned();
            assert_eq!(
                checked(json!({"a": {"type": kind, "x-mcp-header": "A"}})),
                Err(fault)
            );
        }
    }

    #[test]
    fn header_of_two_parameters_is_refused() {
        let twice = json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}});
        assert_eq!(
            checked(twice),
            Err("`x-mcp-header` \"a\" is on two parameters".to_owned())
        );
    }

    #[test]
    fn header_outside_parameters_is_refused() {
        let item =
            json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}});
        assert_eq!(
            checked(item),
            Err("`x-mcp-header` \"A\" is not on a parameter".to_owned())
        );
        let branch = json!({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}});
        assert_eq!(
            checked(branch),
            Err("`x-mcp-header` \"A\" is not on a parameter".to_owned())
        );
    }
}
