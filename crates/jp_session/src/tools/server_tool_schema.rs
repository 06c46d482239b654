//! The argument schema of an MCP tool: the version that models receive, and the version that jp checks against.

use jp_mcp::ToolInfo;
use jp_turn::Schema;
use serde_json::{Map, Value, json};

/// Limit for the argument schema of a tool, in bytes: about 50,000 tokens in every request.
const MAX_SCHEMA: usize = 200_000;
/// Limit for the properties that jp checks one by one. Each check compiles a schema with all definitions.
const MAX_PROPERTIES: usize = 100;

/// The arguments that a tool takes.
pub(crate) struct Parameters {
    /// The schema that models receive.
    pub(crate) offered: Map<String, Value>,
    /// The schema that jp checks against, if it is a different one.
    pub(crate) checked: Option<Map<String, Value>>,
    /// The reason if jp can't check against the whole schema.
    pub(crate) doubt: Option<String>,
}

impl Parameters {
    /// Reads a server's schema. The error says why no provider would accept the tool.
    ///
    /// jp can't compile some schemas. Most often the reason is a regular expression with syntax that jp doesn't support.
    /// Then jp checks without the expressions, and models receive the whole schema. Other schemas are not JSON Schema or
    /// refer to another document. Providers refuse a request with such a schema, so models receive the usable parts.
    pub(crate) fn read(info: &ToolInfo) -> Result<Self, String> {
        let mut offered = info.input_schema.clone();
        // Some servers leave the type out, and providers refuse a schema without it.
        offered.entry("type").or_insert_with(|| "object".into());
        if offered["type"] != "object" {
            return Err("its arguments are not an object".to_owned());
        }
        let bytes = Value::Object(offered.clone()).to_string().len();
        if bytes > MAX_SCHEMA {
            return Err(format!(
                "its argument schema has {bytes} bytes, over the limit of {MAX_SCHEMA}"
            ));
        }
        let Err(error) = Schema::compile(&offered) else {
            return Ok(Self {
                offered,
                checked: None,
                doubt: None,
            });
        };
        let doubt = Some(error.to_string());
        let mut checked = offered.clone();
        remove_patterns(&mut checked);
        Ok(match is_usable(&checked) {
            true => Self {
                offered,
                checked: Some(checked),
                doubt,
            },
            false => Self {
                offered: usable_part(&offered),
                checked: None,
                doubt,
            },
        })
    }
}

fn is_usable(schema: &Map<String, Value>) -> bool {
    Schema::compile(schema).is_ok()
}

/// Removes the regular expressions of a schema, but nothing from literal values.
fn remove_patterns(schema: &mut Map<String, Value>) {
    const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];
    // In `properties`, `pattern` is the name of a property, and its value is a schema.
    if schema.get("pattern").is_some_and(Value::is_string) {
        schema.shift_remove("pattern");
    }
    schema.shift_remove("patternProperties");
    for (_, value) in schema
        .iter_mut()
        .filter(|(key, _)| !VALUES.contains(&key.as_str()))
    {
        match value {
            Value::Object(inner) => remove_patterns(inner),
            Value::Array(items) => items
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(remove_patterns),
            _ => {}
        }
    }
}

/// Returns a schema with the properties of another. Those that jp can't compile keep only their name and description.
fn usable_part(schema: &Map<String, Value>) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_many = properties.is_some_and(|properties| properties.len() > MAX_PROPERTIES);
    let mut kept = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let alone = Map::from_iter([(name.clone(), property.clone())]);
        let property = match !is_many && is_usable(&with_definitions(alone, schema)) {
            true => property.clone(),
            false => without_constraints(property),
        };
        kept.insert(name.clone(), property);
    }
    let mut part = with_definitions(kept, schema);
    if !is_usable(&part) {
        // Only the definitions are left to blame, and no property refers to them any more.
        for key in DEFINITIONS {
            part.shift_remove(key);
        }
    }
    let required = required_names(schema);
    if !required.is_empty() {
        part.insert("required".to_owned(), required.into());
    }
    part
}

/// The keywords with schemas that properties may refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Returns an object schema with these properties and the definitions of `schema`.
fn with_definitions(
    properties: Map<String, Value>,
    schema: &Map<String, Value>,
) -> Map<String, Value> {
    let mut part = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
    ]);
    for key in DEFINITIONS {
        let definitions = schema.get(key).cloned();
        part.extend(definitions.map(|definitions| (key.to_owned(), definitions)));
    }
    part
}

/// Returns a property that admits any value, with its description.
fn without_constraints(property: &Value) -> Value {
    match property.get("description") {
        Some(Value::String(description)) => json!({"description": description}),
        _ => json!({}),
    }
}

/// Returns the names in `required`, each once, because providers refuse other entries.
fn required_names(schema: &Map<String, Value>) -> Vec<Value> {
    let mut names: Vec<Value> = Vec::new();
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten() {
        if name.is_string() && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schema: Value) -> Parameters {
        let info = serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap();
        Parameters::read(&info).unwrap_or_else(|reason| panic!("{reason}"))
    }

    #[test]
    fn unsupported_pattern_is_offered_but_not_checked() {
        let property = json!({"type": "string", "pattern": "^(?!x).*$", "minLength": 1});
        let schema = json!({"type": "object", "properties": {"pattern": property}});
        let parameters = read(schema.clone());
        assert_eq!(Value::Object(parameters.offered), schema);
        let checked = json!({"type": "object", "properties": {"pattern": {"type": "string", "minLength": 1}}});
        assert_eq!(parameters.checked.map(Value::Object), Some(checked));
        assert!(parameters.doubt.unwrap().contains("regex"));
    }

    #[test]
    fn property_without_a_usable_schema_keeps_its_name() {
        let parameters = read(json!({
            "type": "object", "required": ["a", "a", 1],
            "properties": {
                "a": {"type": "text", "description": "A text."}, "b": {"type": "integer"},
                "c": {"$ref": "https://example.com/c.json"}, "d": {"$ref": "#/$defs/d"}, "e": "integer",
            },
            "$defs": {"d": {"type": "boolean"}},
        }));
        let offered = json!({
            "type": "object",
            "properties": {
                "a": {"description": "A text."}, "b": {"type": "integer"}, "c": {}, "d": {"$ref": "#/$defs/d"}, "e": {},
            },
            "$defs": {"d": {"type": "boolean"}},
            "required": ["a"],
        });
        assert_eq!(Value::Object(parameters.offered), offered);
        assert!(parameters.checked.is_none() && parameters.doubt.is_some());
    }

    #[test]
    fn any_schema_of_a_server_becomes_a_usable_one() {
        for schema in [
            json!({"properties": 5}),
            json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": 1}}}),
            json!({"$defs": [], "required": "a", "properties": {"a": true, "b": null}}),
            json!({"$ref": "https://example.com/"}),
            json!({"$schema": "https://example.com/no-schema", "anyOf": "no"}),
        ] {
            let Parameters {
                offered, checked, ..
            } = read(schema);
            assert!(is_usable(&checked.unwrap_or(offered)));
        }
    }
}
