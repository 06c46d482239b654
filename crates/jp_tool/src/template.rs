use serde_json::{Map, Value, json};

/// Creates a document for a JSON Schema that a user can fill in, with default or empty values.
///
/// An object has its properties, the required ones first. Of several alternatives the first is
/// chosen. A list is empty. An unknown value is `null`. Only references within the schema are
/// followed. If a reference leads back to itself, or the document becomes deep or large, optional
/// properties are left out. The document matches the schema in common cases, but not always.
///
/// ```
/// let schema = serde_json::json!({
///     "type": "object",
///     "properties": {"draft": {"type": "boolean"}, "title": {"type": "string", "default": "Untitled"}},
///     "required": ["title"],
/// });
/// let template = jp_tool::template(schema.as_object().unwrap());
/// assert_eq!(template.to_string(), r#"{"title":"Untitled","draft":false}"#);
/// ```
#[must_use]
pub fn template(schema: &Map<String, Value>) -> Value {
    let root = Value::Object(schema.clone());
    let mut maker = Maker {
        root: &root,
        followed: Vec::new(),
        left: MAX_VALUES,
    };
    maker.value(&root, 0).unwrap_or(Value::Null)
}

/// The most levels of a template. Real schemas have fewer.
const MAX_DEPTH: usize = 12;
/// The most values of a template. A schema that refers to itself twice could grow exponentially.
const MAX_VALUES: usize = 2_000;

struct Maker<'s> {
    root: &'s Value,
    /// The references that led to the current schema.
    followed: Vec<&'s str>,
    /// The number of values that may still be created.
    left: usize,
}

impl<'s> Maker<'s> {
    /// Creates a value; `None` if it would be infinite or too large.
    fn value(&mut self, schema: &'s Value, depth: usize) -> Option<Value> {
        // The depth alone is not enough: two references per level give 2^12 values.
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let given = ["default", "const"].iter().find_map(|key| schema.get(key));
        if let Some(given) = given.or_else(|| schema.pointer("/enum/0")) {
            return Some(given.clone());
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.follow_reference(reference, depth);
        }
        if schema.get("properties").is_some() {
            return self.object(schema, depth);
        }
        if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(all, depth);
        }
        if let Some(first) = ["anyOf", "oneOf"]
            .iter()
            .find_map(|key| schema.get(key)?.get(0))
        {
            return self.value(first, depth + 1);
        }
        Some(empty(schema))
    }

    fn follow_reference(&mut self, reference: &'s str, depth: usize) -> Option<Value> {
        // A reference that leads back to itself has no finite value. `object` leaves out an
        // optional property then.
        if self.followed.contains(&reference) {
            return None;
        }
        let Some(target) = reference
            .strip_prefix('#')
            .and_then(|place| self.root.pointer(place))
        else {
            // A reference to another document.
            return Some(Value::Null);
        };
        self.followed.push(reference);
        let value = self.value(target, depth + 1);
        self.followed.pop();
        value
    }

    fn object(&mut self, schema: &'s Value, depth: usize) -> Option<Value> {
        let properties = schema.get("properties").and_then(Value::as_object)?;
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let mut object = Map::new();
        // Required properties come first, in the order of `required`.
        for name in required.iter().filter_map(Value::as_str) {
            let value = properties
                .get(name)
                .map_or(Some(Value::Null), |part| self.value(part, depth + 1));
            object.insert(name.to_owned(), value?);
        }
        for (name, part) in properties {
            if !object.contains_key(name)
                && let Some(value) = self.value(part, depth + 1)
            {
                object.insert(name.clone(), value);
            }
        }
        Some(Value::Object(object))
    }

    /// Joins the values of all parts if they are objects. Otherwise the first value counts.
    fn all_of(&mut self, all: &'s [Value], depth: usize) -> Option<Value> {
        let mut joined: Option<Value> = None;
        for part in all {
            match (&mut joined, self.value(part, depth + 1)?) {
                (Some(Value::Object(joined)), Value::Object(more)) => joined.extend(more),
                (Some(_), _) => {}
                (None, value) => joined = Some(value),
            }
        }
        joined
    }
}

/// Returns the empty value of a schema's type, or of the first type if there are several.
fn empty(schema: &Value) -> Value {
    let types = schema.get("type");
    let first = types
        .and_then(Value::as_str)
        .or_else(|| types?.get(0)?.as_str());
    match first {
        Some("object") => json!({}),
        Some("array") => json!([]),
        Some("string") => json!(""),
        Some("boolean") => json!(false),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(schema: Value) -> String {
        template(schema.as_object().unwrap()).to_string()
    }

    #[test]
    fn object_has_required_properties_first_then_the_others() {
        let schema = json!({
            "type": "object",
            "properties": {
                "note": {"type": ["string", "null"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "size": {"enum": ["small", "large"]},
                "kind": {"const": "branch"},
                "author": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 1}}},
                "share": {"type": "number"},
                "draft": {"type": "boolean", "default": true},
                "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "any": {},
            },
            "required": ["size", "draft", "extra"],
        });
        assert_eq!(
            made(schema),
            r#"{"size":"small","draft":true,"extra":null,"note":"","tags":[],"kind":"branch","author":{"name":"","age":1},"share":0,"owner":"","any":null}"#
        );
    }

    #[test]
    fn references_are_followed_until_they_lead_back() {
        let node = json!({"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}, "required": ["name"]});
        let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": node}});
        assert_eq!(made(schema), r#"{"name":""}"#);
        assert_eq!(made(json!({"$ref": "#"})), "null");
        assert_eq!(
            made(json!({"properties": {"a": {"$ref": "https://example.com/a.json"}}})),
            r#"{"a":null}"#
        );
    }

    #[test]
    fn parts_of_all_of_are_joined() {
        let part = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
        assert_eq!(
            made(json!({"allOf": [part("a"), part("b")]})),
            r#"{"a":"","b":""}"#
        );
    }

    #[test]
    fn other_types_have_an_empty_value() {
        for (schema, expected) in [
            (json!({}), "null"),
            (json!({"type": "integer"}), "0"),
            (json!({"type": "array", "items": {"type": "integer"}}), "[]"),
            (json!({"type": "object"}), "{}"),
            (json!({"type": "array", "default": ["a"]}), r#"["a"]"#),
        ] {
            assert_eq!(made(schema.clone()), expected, "{schema}");
        }
    }

    #[test]
    fn exponential_schema_gives_a_bounded_document() {
        let doubled = |step: usize| {
            let next = json!({"$ref": format!("#/$defs/{}", step + 1)});
            json!({"properties": {"a": next, "b": next}})
        };
        let steps: Map<String, Value> = (0..40)
            .map(|step| (step.to_string(), doubled(step)))
            .collect();
        assert!(made(json!({"$ref": "#/$defs/0", "$defs": steps})).len() < 20_000);
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            prop::sample::select(vec!["object", "array", "string", "x"])
                .prop_map(|kind| json!({"type": kind})),
            prop::sample::select(vec!["#", "#/properties/a", "#/allOf/0", "#a"])
                .prop_map(|to| json!({"$ref": to})),
            Just(json!(true)),
            Just(json!({"enum": []})),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let key = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "required", "enum"]);
            prop_oneof![
                (key, prop::collection::vec(inner.clone(), 0..3))
                    .prop_map(|(key, all)| json!({key: all})),
                (inner.clone(), inner)
                    .prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}, "required": ["a"]})),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_schema_panics(schema in any_schema()) {
            if let Some(schema) = schema.as_object() {
                prop_assert!(template(schema).to_string().len() < 100_000);
            }
        }
    }
}
