//! The argument schema of an MCP tool: the version that models receive, and the version that jp checks against.

use jp_mcp::ToolInfo;
use jp_turn::Schema;
use serde_json::{Map, Value, json};

/// Limit for the argument schema of a tool, in bytes.
const MAX_SCHEMA: usize = 200_000;
/// Limit for the properties that jp checks one by one.
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
    /// A schema that jp can't compile loses the check. Mostly that is for a regular expression of a kind that jp does not
    /// have: models are told it all the same. Otherwise it is no JSON Schema, or refers to another document. Providers
    /// refuse a whole request for that, so models are told what is left without such parts.
    pub(crate) fn read(info: &ToolInfo) -> Result<Self, String> {
        let mut offered = info.input_schema.clone();
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

/// Removes the regular expressions of a schema, but not from values that it names.
fn remove_patterns(schema: &mut Map<String, Value>) {
    const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];
    // A property of that name has a schema.
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

/// Returns the properties of a schema, those that can't be used by their names and descriptions alone.
fn usable_part(schema: &Map<String, Value>) -> Map<String, Value> {
    let definitions = ["$defs", "definitions"].map(|key| (key, schema.get(key)));
    let with = |properties: Map<String, Value>| {
        let mut part = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
        ]);
        for (key, definition) in definitions {
            definition
                .iter()
                .for_each(|definition| _ = part.insert(key.to_owned(), (*definition).clone()));
        }
        part
    };
    let bare = |property: &Value| match property.get("description") {
        Some(Value::String(description)) => json!({"description": description}),
        _ => json!({}),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_many = properties.is_some_and(|properties| properties.len() > MAX_PROPERTIES);
    let kept = properties.into_iter().flatten().map(|(name, property)| {
        let alone = || with(Map::from_iter([(name.clone(), property.clone())]));
        let is_kept = !is_many && is_usable(&alone());
        (
            name.clone(),
            if is_kept {
                property.clone()
            } else {
                bare(property)
            },
        )
    });
    let mut part = with(kept.collect());
    if !is_usable(&part) {
        // It is the definitions, and nothing that refers to them is left.
        definitions
            .iter()
            .for_each(|(key, _)| _ = part.shift_remove(*key));
    }
    let mut required: Vec<Value> = Vec::new();
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if name.is_string() && !required.contains(name) {
            required.push(name.clone());
        }
    }
    if !required.is_empty() {
        part.insert("required".to_owned(), required.into());
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schema: Value) -> Parameters {
        let info = serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap();
        Parameters::read(&info).unwrap_or_else(|reason| panic!("{reason}"))
    }

    #[test]
    fn pattern_that_jp_does_not_have_is_told_and_not_checked() {
        let property = json!({"type": "string", "pattern": "^(?!x).*$", "minLength": 1});
        let schema = json!({"type": "object", "properties": {"pattern": property}});
        let parameters = read(schema.clone());
        assert_eq!(Value::Object(parameters.offered), schema);
        let checked = json!({"type": "object", "properties": {"pattern": {"type": "string", "minLength": 1}}});
        assert_eq!(parameters.checked.map(Value::Object), Some(checked));
        assert!(parameters.doubt.unwrap().contains("regex"));
    }

    #[test]
    fn what_is_no_schema_is_left_out_and_its_name_stays() {
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
    fn whatever_a_server_says_comes_to_a_schema() {
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
