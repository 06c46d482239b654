//! Rewrites the schema of a tool's arguments for providers that take an object schema only.
//!
//! Anthropic refuses a whole request if one of its tools has `anyOf`, `oneOf` or `allOf` at the root of its schema, and
//! OpenAI if it has `enum` or `not` there too; so does OpenRouter, which passes requests on to both. MCP servers send such
//! schemas. What the rewritten schema can't say, the description does, and jp checks calls against the original.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::Tool;

/// Limit for the schemas that are read, because a schema that refers to itself has no end.
const MAX_READ: usize = 500;
/// Limit for the alternatives in a description, in bytes.
const MAX_NOTE: usize = 4_000;
/// Keyword for schemas that others refer to (JSON Schema 2020-12, section 8.2.4).
const DEFS: &str = "$defs";
/// Name of the definition that holds the original root.
const MOVED: &str = "computer.jp/root";

/// Keywords that providers refuse at the root, and how the arguments relate to their values.
const REFUSED: [(&str, &str); 5] = [
    ("anyOf", "at least one of these JSON Schemas"),
    ("oneOf", "exactly one of these JSON Schemas"),
    ("allOf", "all of these JSON Schemas"),
    ("not", "anything but this JSON Schema"),
    ("enum", "one of these values"),
];

/// A tool whose schema has nothing at its root that providers refuse.
pub(crate) struct FlatTool<'a> {
    pub(crate) description: Cow<'a, str>,
    pub(crate) parameters: Cow<'a, Map<String, Value>>,
}

impl<'a> FlatTool<'a> {
    pub(crate) fn new(tool: &'a Tool) -> Self {
        let Tool {
            description,
            parameters,
            ..
        } = tool;
        if !REFUSED
            .iter()
            .any(|(keyword, _)| parameters.contains_key(*keyword))
        {
            return Self {
                description: Cow::Borrowed(description),
                parameters: Cow::Borrowed(parameters),
            };
        }
        let notes = REFUSED
            .iter()
            .filter_map(|(keyword, relation)| note(parameters, keyword, relation));
        let said = Some(description.clone()).filter(|description| !description.is_empty());
        let description = said
            .into_iter()
            .chain(notes)
            .collect::<Vec<_>>()
            .join("\n\n");
        Self {
            description: description.into(),
            parameters: Cow::Owned(flatten(parameters)),
        }
    }
}

/// Describes the constraints that the rewritten schema loses.
fn note(root: &Map<String, Value>, keyword: &str, relation: &str) -> Option<String> {
    let schemas = root.get(keyword)?;
    // Merging loses nothing of `allOf` if it only adds properties, so the description needs no
    // note.
    if keyword == "allOf" && is_all_merged(schemas, root) {
        return None;
    }
    let text = schemas.to_string();
    let shown = if text.len() <= MAX_NOTE {
        text
    } else {
        "they are too long to show here; if a call does not match, its result says what is wrong"
            .to_owned()
    };
    Some(format!("The arguments must also match {relation}: {shown}"))
}

/// Returns whether nothing that these schemas say is lost when their properties are merged with the root's.
fn is_all_merged(schemas: &Value, root: &Map<String, Value>) -> bool {
    schemas.as_array().is_some_and(|schemas| {
        schemas.iter().all(|schema| {
            schema
                .as_object()
                .is_some_and(|schema| is_merged(schema, root))
        })
    })
}

fn is_merged(schema: &Map<String, Value>, root: &Map<String, Value>) -> bool {
    const MERGED: [&str; 5] = ["type", "properties", "required", "title", "description"];
    let all = match follow_reference(schema, root) {
        Some(_) if schema.len() > 1 => return false,
        all => all.unwrap_or(schema),
    };
    all.keys().all(|key| MERGED.contains(&key.as_str()))
        && is_of_objects(all)
        && has_no_other_properties(all, root)
}

/// Returns whether a schema says of each property what the root says of it, if that has the property: the root's stays.
fn has_no_other_properties(schema: &Map<String, Value>, root: &Map<String, Value>) -> bool {
    let own = root.get("properties");
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .all(|(name, property)| {
            own.and_then(|own| own.get(name))
                .is_none_or(|own| own == property)
        })
}

fn flatten(root: &Map<String, Value>) -> Map<String, Value> {
    let Fields {
        properties,
        required,
    } = Fields::read(root, root, &mut MAX_READ.clone());
    let mut flat = root.clone();
    let taken = REFUSED
        .iter()
        .filter_map(|(keyword, _)| flat.shift_remove_entry(*keyword))
        .collect();
    // The providers want it even if the alternatives have it.
    flat.insert("type".to_owned(), "object".into());
    flat.insert("properties".to_owned(), Value::Object(properties));
    if required.is_empty() {
        flat.shift_remove("required");
    } else {
        flat.insert("required".to_owned(), required.into());
    }
    // `$ref`s to what was taken off the root would lead nowhere.
    let mut flat = Value::Object(flat);
    if redirect(&mut flat) {
        // What is referred to may refer to more of the same.
        let mut taken = Value::Object(taken);
        redirect(&mut taken);
        let defs = &mut flat[DEFS];
        // Older drafts let anything be there.
        if !defs.is_object() {
            *defs = json!({});
        }
        defs[MOVED] = taken;
    }
    match flat {
        Value::Object(flat) => flat,
        _ => unreachable!("it was made of an object"),
    }
}

/// Redirects references into the root to its definition; returns whether there are any.
fn redirect(schema: &mut Value) -> bool {
    match schema {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| redirect(item) | any),
        Value::Object(object) => {
            let mut any = false;
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(path) = reference.strip_prefix("#/")
                && REFUSED
                    .iter()
                    .any(|(keyword, _)| path.split('/').next() == Some(keyword))
            {
                *reference = format!("#/{DEFS}/{}/{path}", MOVED.replace('/', "~1"));
                any = true;
            }
            object
                .values_mut()
                .fold(any, |any, value| redirect(value) | any)
        }
        _ => false,
    }
}

/// The properties that an object may have, and those that it must have.
#[derive(Default)]
struct Fields {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Fields {
    /// Reads a schema with all that it combines; `left` says how many more schemas may be read.
    fn read(schema: &Map<String, Value>, root: &Map<String, Value>, left: &mut usize) -> Self {
        let mut fields = Self::own(schema);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let mut all = Vec::new();
            for branch in branches(schema, keyword, root) {
                if *left == 0 {
                    // Of an alternative that is not read nothing is known to be required.
                    all.push(Self::default());
                    break;
                }
                *left -= 1;
                all.push(Self::read(branch, root, left));
            }
            fields.merge(&all, keyword);
        }
        fields
    }

    fn own(schema: &Map<String, Value>) -> Self {
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required = required
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        Self {
            properties,
            required,
        }
    }

    /// Adds what schemas say. A property that is there stays as it is: what they say of it is in the description.
    fn merge(&mut self, others: &[Self], keyword: &str) {
        let mut properties: Map<String, Value> = Map::new();
        let within = if keyword == "allOf" { "allOf" } else { "anyOf" };
        for (name, schema) in others.iter().flat_map(|other| &other.properties) {
            match properties.get_mut(name) {
                None => _ = properties.insert(name.clone(), schema.clone()),
                Some(known) => combine(known, schema, within),
            }
        }
        for (name, schema) in properties {
            self.properties.entry(name).or_insert(schema);
        }
        for name in others.iter().flat_map(|other| &other.required) {
            if is_required(name, others, keyword) && !self.required.contains(name) {
                self.required.push(name.clone());
            }
        }
    }
}

/// Returns whether a property is required by these schemas together: by any that must hold, or by all alternatives.
fn is_required(name: &String, others: &[Fields], keyword: &str) -> bool {
    let mut others = others.iter();
    match keyword {
        "allOf" => others.any(|other| other.required.contains(name)),
        _ => others.all(|other| other.required.contains(name)),
    }
}

/// Adds another schema of a property to what is known of it.
fn combine(known: &mut Value, schema: &Value, keyword: &str) {
    if known == schema {
        return;
    }
    let is_only = known.as_object().is_some_and(|object| object.len() == 1);
    match known.get_mut(keyword).and_then(Value::as_array_mut) {
        Some(all) if is_only && all.contains(schema) => {}
        Some(all) if is_only => all.push(schema.clone()),
        _ => *known = json!({keyword: [known.take(), schema]}),
    }
}

/// Returns the schemas that a keyword combines, as far as objects may fit them; references within the root are followed.
fn branches<'s>(
    schema: &'s Map<String, Value>,
    keyword: &str,
    root: &'s Map<String, Value>,
) -> impl Iterator<Item = &'s Map<String, Value>> {
    let all = schema
        .get(keyword)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let objects = all
        .filter_map(Value::as_object)
        .map(|branch| follow_reference(branch, root).unwrap_or(branch));
    objects.filter(|branch| is_of_objects(branch))
}

/// Returns whether an object may fit a schema, as far as types go.
fn is_of_objects(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_none_or(|kind| match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        kind => kind == "object",
    })
}

/// Returns what a reference leads to (RFC 6901); `None` for a schema that is none, or leads elsewhere.
fn follow_reference<'s>(
    schema: &Map<String, Value>,
    root: &'s Map<String, Value>,
) -> Option<&'s Map<String, Value>> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let (first, rest) = pointer.split_once('/')?;
    root.get(first)?.pointer(&format!("/{rest}"))?.as_object()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flat(parameters: Value) -> (String, Value) {
        let Value::Object(parameters) = parameters else {
            unreachable!()
        };
        let tool = Tool {
            name: "t".to_owned(),
            description: "Finds.".to_owned(),
            parameters,
        };
        let FlatTool {
            description,
            parameters,
        } = FlatTool::new(&tool);
        (
            description.into_owned(),
            Value::Object(parameters.into_owned()),
        )
    }

    #[test]
    fn schema_of_an_object_is_left_alone() {
        let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
        assert_eq!(flat(schema.clone()), ("Finds.".to_owned(), schema));
    }

    #[test]
    fn alternatives_become_one_object() {
        let text = json!({"type": "string"});
        let alternatives = json!([{"required": ["id", "kind"]}, {"required": ["path", "kind"]}]);
        let schema = json!({
            "type": "object", "properties": {"id": text, "path": text, "kind": text}, "required": ["limit"],
            "anyOf": alternatives, "additionalProperties": false,
        });
        let (description, parameters) = flat(schema);
        assert_eq!(
            parameters,
            json!({
                "type": "object", "properties": {"id": text, "path": text, "kind": text},
                "required": ["limit", "kind"], "additionalProperties": false,
            })
        );
        let said = format!(
            "Finds.\n\nThe arguments must also match at least one of these JSON Schemas: {alternatives}"
        );
        assert_eq!(description, said);
    }

    #[test]
    fn properties_of_alternatives_are_merged() {
        let (_, parameters) = flat(json!({
            "type": "object",
            "oneOf": [
                {"type": "object", "properties": {"by": {"const": "id"}, "id": {"type": "integer"}}, "required": ["by", "id"]},
                {"$ref": "#/$defs/named"},
                {"type": "string"},
            ],
            "$defs": {"named": {"properties": {"by": {"const": "name"}, "name": {}}, "required": ["by"]}},
        }));
        let by = json!({"anyOf": [{"const": "id"}, {"const": "name"}]});
        assert_eq!(
            parameters["properties"],
            json!({"by": by, "id": {"type": "integer"}, "name": {}})
        );
        assert_eq!(parameters["required"], json!(["by"]));
        assert_eq!(parameters.get("oneOf"), None);
    }

    #[test]
    fn parts_of_a_whole_are_merged_without_a_word() {
        let (description, parameters) = flat(json!({
            "type": "object",
            "allOf": [
                {"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]},
            ],
        }));
        assert_eq!(description, "Finds.");
        let merged =
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]});
        assert_eq!(parameters, merged);
        let (description, _) =
            flat(json!({"allOf": [{"if": {}, "then": {}}], "not": {"required": ["c"]}}));
        insta::assert_snapshot!(description, @r#"
        Finds.

        The arguments must also match all of these JSON Schemas: [{"if":{},"then":{}}]

        The arguments must also match anything but this JSON Schema: {"required":["c"]}
        "#);
    }

    #[test]
    fn references_into_what_was_taken_away_still_lead_there() {
        let shared = json!({"$ref": "#/anyOf/0/properties/a"});
        let (_, parameters) = flat(json!({
            "type": "object",
            "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": shared}}],
        }));
        let reference = parameters["properties"]["b"]["$ref"].as_str().unwrap();
        assert_eq!(
            parameters.pointer(&reference[1..]),
            Some(&json!({"type": "string"}))
        );
    }

    #[test]
    fn schema_without_an_end_comes_to_one() {
        let again = json!({"$ref": "#/$defs/again"});
        let (description, parameters) = flat(json!({
            "type": "object", "anyOf": vec![again.clone(); 1000],
            "$defs": {"again": {"properties": {"a": {}}, "anyOf": vec![again; 10]}},
        }));
        assert_eq!(parameters["properties"], json!({"a": {}}));
        assert!(description.ends_with("says what is wrong"), "{description}");
    }

    /// Draft 07 has no `$defs`, so anything may be there.
    #[test]
    fn definitions_that_are_no_object_give_way() {
        for defs in [json!([]), json!("a"), json!(1), json!(null)] {
            let (_, parameters) = flat(json!({
                "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "$defs": defs,
                "anyOf": [{"properties": {"a": {"$ref": "#/anyOf/1"}}}, {"type": "object"}],
            }));
            let reference = parameters["properties"]["a"]["$ref"].as_str().unwrap();
            assert_eq!(
                parameters.pointer(&reference[1..]),
                Some(&json!({"type": "object"}))
            );
        }
    }

    #[test]
    fn what_parts_say_beside_the_root_is_in_the_description() {
        let root = json!({"mode": {"type": "string"}});
        let with = |part: Value| {
            flat(json!({
                "type": "object", "properties": root, "allOf": [part],
                "$defs": {"part": {"properties": {"a": {}}}},
            }))
        };
        for part in [
            json!({"properties": {"mode": {"enum": ["a", "b"]}}}),
            json!({"$ref": "#/$defs/part", "required": ["a"]}),
            json!({"type": "string"}),
            json!(false),
        ] {
            let said = format!(
                "must also match all of these JSON Schemas: {}",
                json!([part])
            );
            let (description, _) = with(part);
            assert!(description.ends_with(&said), "{description}");
        }
        for part in [json!({"properties": root}), json!({"$ref": "#/$defs/part"})] {
            assert_eq!(with(part).0, "Finds.");
        }
        let (_, parameters) = with(json!({"type": ["object", "null"], "properties": {"b": {}}}));
        assert_eq!(parameters["properties"]["b"], json!({}));
    }

    /// What is like a schema, and what no schema should be.
    fn any_schema() -> impl Strategy<Value = Map<String, Value>> {
        let word = prop::sample::select(vec![
            "$defs",
            "$ref",
            "$schema",
            "type",
            "object",
            "properties",
            "required",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "enum",
            "a",
            "computer.jp/root",
            "#/anyOf/0",
            "#/allOf/0/properties/a",
            "#/not",
            "#/enum/0",
            "#/$defs/a",
            "#/$defs/anyOf/0",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            word.clone().prop_map(Value::from),
        ];
        let fields = move |inner: BoxedStrategy<Value>| {
            prop::collection::vec((word.clone().prop_map(str::to_owned), inner), 0..8)
        };
        let of = fields.clone();
        let value = leaf.prop_recursive(4, 60, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                of(inner.boxed()).prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        fields(value.boxed()).prop_map(|fields| fields.into_iter().collect())
    }

    proptest! {
        #[test]
        fn no_schema_panics_or_keeps_what_is_refused(
            mut parameters in any_schema(), defs in prop::option::of(prop::sample::select(vec![json!([]), json!(1)])),
        ) {
            // What chance seldom brings together.
            if let Some(defs) = defs {
                let odd = [(DEFS, defs), ("not", json!({})), ("a", json!({"$ref": "#/not"}))];
                parameters.extend(odd.map(|(key, value)| (key.to_owned(), value)));
            }
            let tool = Tool { name: "t".to_owned(), description: String::new(), parameters };
            let flat = FlatTool::new(&tool);
            prop_assert!(REFUSED.iter().all(|(keyword, _)| !flat.parameters.contains_key(*keyword)));
        }
    }
}
