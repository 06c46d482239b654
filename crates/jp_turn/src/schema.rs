//! JSON Schema for answers, for arguments of tools and for answers to questions.

use std::error::Error;

use boon::{CompileError, Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::{Map, Value};

use crate::excerpt;

/// A schema, ready to check values.
pub struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

/// The reason why a document is not a usable schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SchemaError {
    reason: String,
    /// True if the schema refers to another document, which jp does not read.
    pub is_reference: bool,
}

/// The URL of the schema for the library. References are relative to it, and errors don't show it.
const LOCATION: &str = "jp:///schema.json";
const ROOT: &str = "jp:///";

impl Schema {
    /// Compiles a schema. It may refer only to itself and to the metaschemas, which the library
    /// contains.
    pub fn compile(schema: &Map<String, Value>) -> Result<Self, SchemaError> {
        Self::compile_with(Compiler::new(), schema).map_err(|error| unusable(&error))
    }

    /// Compiles a schema that also checks `format`, for values that the user types (MCP,
    /// "Elicitation").
    pub fn with_formats(schema: &Map<String, Value>) -> Result<Self, SchemaError> {
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        Self::compile_with(compiler, schema).map_err(|error| unusable(&error))
    }

    fn compile_with(
        mut compiler: Compiler,
        schema: &Map<String, Value>,
    ) -> Result<Self, Box<CompileError>> {
        // Schemas come from models, servers and workspaces. They must not cause reads of files or
        // URLs.
        compiler.use_loader(Box::new(Nothing));
        compiler.add_resource(LOCATION, Value::Object(schema.clone()))?;
        let mut schemas = Schemas::new();
        let index = compiler.compile(LOCATION, &mut schemas)?;
        Ok(Self { schemas, index })
    }

    /// Parses and checks a document. The error names the first faults with their places.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let value = serde_json::from_str(answer)
            .map_err(|error| format!("the answer is not valid JSON: {error}"))?;
        match self.check_value(&value) {
            Ok(()) => Ok(value),
            Err(faults) => Err(format!("the answer does not match the schema: {faults}")),
        }
    }

    /// Checks a value; the error names the first faults with their places.
    pub fn check_value(&self, value: &Value) -> Result<(), String> {
        self.schemas
            .validate(value, self.index)
            .map_err(|error| faults(&error))
    }
}

/// A loader that refuses every document.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, _url: &str) -> Result<Value, Box<dyn Error>> {
        Err("jp reads no document other than the schema".into())
    }
}

fn unusable(error: &CompileError) -> SchemaError {
    SchemaError {
        is_reference: matches!(error, CompileError::LoadUrlError { .. }),
        reason: reason(error),
    }
}

/// Describes why a schema is unusable, in the schema's own terms.
fn reason(error: &CompileError) -> String {
    let text = match error {
        CompileError::LoadUrlError { url, .. } => {
            format!("it refers to {url}, but jp reads no document other than the schema")
        }
        CompileError::ValidationError { src, .. } => faults(src),
        error => format!("{error:#}"),
    };
    text.replace(LOCATION, "").replace(ROOT, "")
}

/// Joins the first few faults, each with its place as a JSON Pointer (RFC 6901).
fn faults(error: &ValidationError<'_, '_>) -> String {
    const SHOWN: usize = 3;
    let mut all = Vec::new();
    collect(error, &mut all);
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    all.into_iter().chain(more).collect::<Vec<_>>().join("; ")
}

/// Collects the errors without further causes: the others only say that a part is invalid.
fn collect(error: &ValidationError<'_, '_>, faults: &mut Vec<String>) {
    const CHARACTERS: usize = 200;
    error.causes.iter().for_each(|cause| collect(cause, faults));
    if error.causes.is_empty() {
        let place = error.instance_location.to_string();
        let place = if place.is_empty() {
            "at its top".to_owned()
        } else {
            format!("at {place}")
        };
        let fault = format!("{place}: {}", error.kind).replace(LOCATION, "");
        let fault = fault.split_whitespace().collect::<Vec<_>>().join(" ");
        let fault = excerpt::beginning(&fault, CHARACTERS);
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compiled(schema: Value) -> Result<Schema, String> {
        Schema::compile(schema.as_object().unwrap()).map_err(|error| error.to_string())
    }

    fn fault(schema: Value, answer: &str) -> String {
        compiled(schema).unwrap().check(answer).unwrap_err()
    }

    #[test]
    fn answer_that_fits_is_returned() {
        let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
        assert_eq!(
            compiled(schema).unwrap().check(" {\"n\": 3}\n"),
            Ok(json!({"n": 3}))
        );
    }

    #[test]
    fn faults_name_their_place() {
        let schema = json!({"type": "object", "required": ["title"], "properties": {
            "scores": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}});
        insta::assert_snapshot!(fault(schema.clone(), r#"{"scores": [1, "x"]}"#), @"the answer does not match the schema: at its top: missing properties 'title'; at /scores/1: want integer, but got string; at /scores/1: want null, but got string");
        insta::assert_snapshot!(fault(schema.clone(), r#"{"scores": ["x", "y"]}"#), @"the answer does not match the schema: at its top: missing properties 'title'; at /scores/0: want integer, but got string; at /scores/0: want null, but got string; and 2 more");
        insta::assert_snapshot!(fault(json!({"$ref": "#"}), "1"), @"the answer does not match the schema: at its top: both '/$ref' and '' resolve to # causing reference cycle");
        insta::assert_snapshot!(fault(schema, "Sure! {}"), @"the answer is not valid JSON: expected value at line 1 column 1");
    }

    #[test]
    fn long_fault_is_cut_visibly() {
        let schema = json!({"enum": ["x".repeat(500)]});
        let fault = fault(schema, "1");
        assert!(fault.ends_with("xxx…") && fault.len() < 300, "{fault}");
    }

    #[test]
    fn nothing_outside_of_the_schema_is_read() {
        for (reference, said) in [
            (
                "https://example.com/other.json",
                "https://example.com/other.json",
            ),
            ("file:///etc/hostname", "file:///etc/hostname"),
            ("other.json", "other.json"),
        ] {
            let refused = compiled(json!({"$ref": reference})).err().unwrap();
            assert_eq!(
                refused,
                format!("it refers to {said}, but jp reads no document other than the schema")
            );
        }
        let own = json!({"$id": "https://example.com/a.json", "$ref": "b.json"});
        assert!(
            compiled(own)
                .err()
                .unwrap()
                .contains("https://example.com/b.json")
        );
    }

    #[test]
    fn invalid_schema_is_explained() {
        insta::assert_snapshot!(compiled(json!({"type": "text"})).err().unwrap(), @"at /type: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'; at /type: want array, but got string");
        insta::assert_snapshot!(compiled(json!({"$ref": "#/$defs/none"})).err().unwrap(), @"json-pointer in #/$defs/none not found");
        insta::assert_snapshot!(compiled(json!({"pattern": "("})).err().unwrap(), @"at /pattern: '(' is not valid regex: regex parse error: ( ^ error: unclosed group");
    }
}
