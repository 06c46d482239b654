//! The arguments of a call: defaults are filled in, then they are checked against the schema.

use std::{borrow::Cow, collections::HashSet, ptr};

use jp_conversation::ToolCallRequest;
use jp_llm::INVALID_ARGUMENTS;
use serde_json::{Map, Value};

use crate::{
    schema::Schema,
    tool::{ServerTool, Source, Tool},
};

/// Arguments that the user wrote and that are invalid, with the reason.
pub(crate) type Rejected = (Map<String, Value>, String);

/// Returns the arguments with defaults filled in, if they match the schema; the error is one that
/// the model can fix.
pub(crate) fn read(call: &ToolCallRequest, tool: &Tool) -> Result<Map<String, Value>, String> {
    if let Some(written) = call.metadata.get(INVALID_ARGUMENTS) {
        return Err(format!(
            "The arguments are not a JSON object of at most 100 levels: {written}"
        ));
    }
    complete(call.arguments.clone(), tool).map_err(|(_, misfit)| misfit)
}

/// Returns the arguments with defaults filled in; if they don't match, returns them with the
/// reason.
pub(crate) fn complete(
    mut arguments: Map<String, Value>,
    tool: &Tool,
) -> Result<Map<String, Value>, Rejected> {
    let parameters = match &tool.source {
        Source::Server(ServerTool {
            checked: Some(checked),
            ..
        }) => Cow::Borrowed(checked),
        _ => Cow::Owned(tool.offered_parameters()),
    };
    fill_in(&mut arguments, &parameters);
    let misfit = format!(
        "The arguments of `{}` do not match its parameters",
        tool.name
    );
    match check(&arguments, &parameters, tool, &misfit) {
        Ok(()) => Ok(arguments),
        Err(reason) => Err((arguments, reason)),
    }
}

/// The maximum number of defaults that one call gets. A schema that refers to itself could require
/// them without end.
const MAX_DEFAULTS: usize = 200;

/// Fills in the default of each required property that is missing, also in nested objects.
///
/// Authors of such a schema expect the default to apply. By the letter (JSON Schema 2020-12
/// validation, section 9.2), a call that relies on it would be invalid.
///
/// Looks behind `allOf` and local references (`#/$defs/…`), but not behind `anyOf` and `oneOf`:
/// which of their branches holds isn't known before the arguments are complete.
fn fill_in(values: &mut Map<String, Value>, schema: &Map<String, Value>) {
    Defaults {
        root: schema,
        left: MAX_DEFAULTS,
    }
    .fill_in(values, vec![schema]);
}

/// The defaults of a schema.
struct Defaults<'a> {
    root: &'a Map<String, Value>,
    /// The number of defaults that may still be filled in.
    left: usize,
}

impl<'a> Defaults<'a> {
    /// Fills in the defaults of an object for which all of `schemas` hold.
    fn fill_in(&mut self, values: &mut Map<String, Value>, schemas: Vec<&'a Map<String, Value>>) {
        let schemas = self.expand(schemas);
        let required = schemas
            .iter()
            .filter_map(|schema| schema.get("required")?.as_array())
            .flatten();
        // Only required properties: a tool knows its own defaults for the others.
        for name in required.filter_map(Value::as_str) {
            if self.left == 0 || values.contains_key(name) {
                continue;
            }
            let property = self.expand(property(&schemas, name));
            if let Some(default) = property.iter().find_map(|schema| schema.get("default")) {
                self.left -= 1;
                values.insert(name.to_owned(), default.clone());
            }
        }
        for (name, value) in values {
            if let Value::Object(inner) = value {
                self.fill_in(inner, property(&schemas, name));
            }
        }
    }

    /// Adds the schemas that hold wherever the given ones do, each once, so that a cycle of
    /// references ends.
    fn expand(&self, mut schemas: Vec<&'a Map<String, Value>>) -> Vec<&'a Map<String, Value>> {
        let mut seen: HashSet<*const Map<String, Value>> = schemas
            .iter()
            .map(|schema| ptr::from_ref(*schema))
            .collect();
        let mut next = 0;
        while let Some(schema) = schemas.get(next).copied() {
            let referred = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|to| self.resolve(to));
            let parts = schema
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let found = referred
                .into_iter()
                .chain(parts.filter_map(Value::as_object));
            schemas.extend(found.filter(|found| seen.insert(ptr::from_ref(*found))));
            next += 1;
        }
        schemas
    }

    /// Returns the schema that a local reference leads to.
    fn resolve(&self, reference: &str) -> Option<&'a Map<String, Value>> {
        let Some(pointer) = reference.strip_prefix("#/") else {
            return (reference == "#").then_some(self.root);
        };
        // `Map` has no `pointer`, so the first segment is looked up apart.
        let (key, below) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
        self.root.get(key)?.pointer(below)?.as_object()
    }
}

/// Returns what schemas say of a property.
fn property<'a>(schemas: &[&'a Map<String, Value>], name: &str) -> Vec<&'a Map<String, Value>> {
    schemas
        .iter()
        .filter_map(|schema| schema.get("properties")?.get(name)?.as_object())
        .collect()
}

/// Checks values against parameters that a tool has; `misfit` says what does not fit.
pub(crate) fn check(
    values: &Map<String, Value>,
    parameters: &Map<String, Value>,
    tool: &Tool,
    misfit: &str,
) -> Result<(), String> {
    let schema = Schema::compile(parameters).map_err(|error| {
        format!(
            "The configured parameters of `{}` are not a valid JSON Schema: {error}",
            tool.name
        )
    })?;
    schema
        .check_value(&Value::Object(values.clone()))
        .map_err(|faults| format!("{misfit}: {faults}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns `{}` with the defaults that a schema gives it.
    fn filled(schema: Value) -> Value {
        let Value::Object(schema) = schema else {
            panic!("{schema}")
        };
        let mut values = Map::new();
        fill_in(&mut values, &schema);
        values.into()
    }

    #[test]
    fn default_is_filled_in_through_references() {
        let mode = json!({"mode": {"default": "fast"}});
        let expected = json!({"mode": "fast"});
        for schema in [
            json!({"allOf": [{"properties": mode, "required": ["mode"]}]}),
            json!({"required": ["mode"], "allOf": [{"allOf": [{"properties": mode}]}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": mode, "required": ["mode"]}}}),
            json!({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"properties": mode, "required": ["mode"]}}}),
            json!({"required": ["mode"], "properties": {"mode": {"$ref": "#/$defs/m"}}, "$defs": {"m": {"default": "fast"}}}),
        ] {
            assert_eq!(filled(schema.clone()), expected, "{schema}");
        }
        let nested = json!({
            "required": ["options"],
            "properties": {"options": {"default": {}, "allOf": [{"$ref": "#/$defs/options"}]}},
            "$defs": {"options": {"required": ["mode"], "properties": mode}},
        });
        assert_eq!(filled(nested), json!({"options": expected}));
    }

    #[test]
    fn default_of_a_branch_that_may_not_hold_is_left_out() {
        let branch = json!([{"properties": {"mode": {"default": "fast"}}, "required": ["mode"]}]);
        for keyword in ["anyOf", "oneOf"] {
            assert_eq!(filled(json!({keyword: branch})), json!({}), "{keyword}");
        }
        assert_eq!(
            filled(json!({"$ref": "https://a.b/#/$defs/a", "$defs": {"a": branch[0]}})),
            json!({})
        );
    }

    #[test]
    fn recursive_schema_gives_a_limited_number_of_defaults() {
        let round =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
        assert_eq!(filled(round), json!({}));
        // Each gives two more.
        let child = json!({"$ref": "#", "default": {}});
        let tree = json!({"required": ["l", "r"], "properties": {"l": child, "r": child}});
        assert_eq!(
            filled(tree).to_string().matches(['l', 'r']).count(),
            MAX_DEFAULTS
        );
    }
}
