//! Turns the configured parameters of a tool into one JSON Schema.
//!
//! Each parameter is a JSON Schema that may also have `required = true` and `summary`, at any depth. `required` moves to
//! the object's list, and `summary` into the description.

use crate::{error::SessionError, tools::settings::Settings};
use jp_config::ToolSettings;
use jp_turn::Schema;
use serde_json::{Map, Value, json};

/// Returns the schema of a tool's arguments.
pub(crate) fn schema(
    settings: Settings<'_>,
    own: &ToolSettings,
) -> Result<Map<String, Value>, SessionError> {
    if let Some((name, _)) = own
        .parameters
        .iter()
        .find(|(_, parameter)| !parameter.is_object())
    {
        let failure = settings.fault(&["parameters", name], "is not a table");
        return Err(failure.with_hint(format!("write a table: {name} = {{ type = \"string\" }}")));
    }
    let mut object = Map::from_iter([("type".to_owned(), json!("object"))]);
    put_properties(&mut object, own.parameters.clone());
    // A misspelled argument is an error that the model can correct. Otherwise the tool would ignore it.
    object.insert("additionalProperties".to_owned(), json!(false));
    match Schema::compile(&object) {
        Ok(_) => Ok(object),
        Err(error) => {
            Err(settings.fault(&["parameters"], &format!("is not a JSON Schema: {error}")))
        }
    }
}

/// Sets the properties of an object, and the list of the required ones.
fn put_properties(object: &mut Map<String, Value>, properties: Map<String, Value>) {
    let mut required = Vec::new();
    let mut read = Map::new();
    for (name, property) in properties {
        let (property, is_required) = read_parameter(property);
        required.extend(is_required.then(|| Value::from(name.as_str())));
        read.insert(name, property);
    }
    object.insert("properties".to_owned(), Value::Object(read));
    if !required.is_empty() {
        object.insert("required".to_owned(), Value::Array(required));
    }
}

/// Returns the schema of a parameter, and whether it is required.
fn read_parameter(parameter: Value) -> (Value, bool) {
    let Value::Object(mut schema) = parameter else {
        return (parameter, false);
    };
    // `required` of an object may be its own list, which stays.
    let required = schema.get("required").and_then(Value::as_bool);
    if required.is_some() {
        schema.shift_remove("required");
    }
    describe(&mut schema);
    if let Some(items) = schema.get_mut("items") {
        *items = read_parameter(items.take()).0;
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties").map(Value::take) {
        put_properties(&mut schema, properties);
    }
    (Value::Object(schema), required == Some(true))
}

/// Puts the summary before the description.
fn describe(schema: &mut Map<String, Value>) {
    let Some(Value::String(summary)) = schema.get("summary").cloned() else {
        return;
    };
    schema.shift_remove("summary");
    let description = match schema.get("description").and_then(Value::as_str) {
        Some(description) => format!("{summary}\n\n{description}"),
        None => summary,
    };
    schema.insert("description".to_owned(), description.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: Value) -> Value {
        let mut object = Map::new();
        put_properties(&mut object, parameters.as_object().unwrap().clone());
        Value::Object(object)
    }

    #[test]
    fn extensions_move_to_their_places_in_a_schema() {
        let read = read(json!({
            "path": {"type": "string", "required": true, "summary": "Where."},
            "depth": {"type": "integer", "required": false, "summary": "How deep.", "description": "From 0."},
        }));
        let expected = json!({
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "depth": {"type": "integer", "description": "How deep.\n\nFrom 0."},
            },
            "required": ["path"],
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn extensions_move_at_any_depth() {
        let read = read(json!({
            "tags": {"type": "array", "items": {"type": "string", "required": false}},
            "point": {"type": "object", "properties": {"x": {"type": "number", "required": true}, "y": {}}},
            "plain": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        }));
        let expected = json!({"properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {}}, "required": ["x"]},
            "plain": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        }});
        assert_eq!(read, expected);
    }
}
