//! Answers that must fit a JSON Schema.

use std::fs;

use crate::{error::SessionError, session::Session, size};
use jp_turn::Schema;
use serde_json::{Map, Value};

/// More takes seconds to check, and no provider takes it.
const MAX_BYTES: usize = 128_000;

/// Reads what `--schema` was given: a JSON Schema object, or `@` and the file that holds one.
pub(crate) fn given(argument: &str, session: &Session) -> Result<Map<String, Value>, SessionError> {
    let unusable = |reason: String| SessionError::usage(format!("invalid --schema: {reason}"));
    let (what, text) = match argument.strip_prefix('@') {
        Some(path) => {
            let file = session.surroundings.current_dir.join(path);
            let read = fs::read_to_string(file).map_err(|error| {
                unusable(format!("failed to read {path}: {error}"))
                    .with_hint("give the path from the current directory: --schema @schema.json")
            });
            (path, read?)
        }
        None => ("the argument", argument.to_owned()),
    };
    let example = r#"a schema is an object, such as '{"type": "object", "properties": {"title": {"type": "string"}}}'."#;
    let file = "`--schema @FILE` reads it from a file.";
    if text.len() > MAX_BYTES {
        return Err(unusable(format!(
            "{what} has {}, and the limit is {}",
            size::bytes(text.len() as u64),
            size::bytes(MAX_BYTES as u64)
        )));
    }
    let document = serde_json::from_str(&text).map_err(|error| {
        unusable(format!("{what} is not JSON: {error}"))
            .with_hint(example)
            .with_hint(file)
    })?;
    let Value::Object(schema) = document else {
        return Err(unusable(format!("{what} is not a JSON Schema object")).with_hint(example));
    };
    match Schema::compile(&schema) {
        Ok(_) => Ok(schema),
        Err(error) if error.is_reference => Err(unusable(format!("{what}: {error}"))
            .with_hint("put the schemas that it refers to into its `$defs`.")),
        Err(error) => {
            Err(unusable(format!("{what} is not a JSON Schema: {error}")).with_hint(example))
        }
    }
}

/// Takes the schema that is stored with a message.
pub(crate) fn of_message(schema: &Map<String, Value>) -> Result<Schema, SessionError> {
    Schema::compile(schema).map_err(|error| {
        SessionError::new(format!("the message's schema is invalid: {error}"))
            .with_hint("ask again with another schema: `jp query --schema JSON \"…\"`")
    })
}
