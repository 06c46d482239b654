//! Reads the JSON Schema of an answer.

use std::fs;

use crate::{error::SessionError, session::Session, size};
use jp_turn::Schema;
use serde_json::{Map, Value};

/// The largest schema, in bytes. A larger one takes seconds to compile, and no provider accepts it.
const MAX_BYTES: usize = 128_000;

/// Shown with every schema that is not one.
const EXAMPLE: &str = r#"a schema is an object, such as '{"type": "object", "properties": {"title": {"type": "string"}}}'."#;

/// Reads the argument of `--schema`: a JSON Schema object, or `@` and the path of a file with one.
pub(crate) fn read_argument(
    argument: &str,
    session: &Session,
) -> Result<Map<String, Value>, SessionError> {
    let (what, text) = match argument.strip_prefix('@') {
        Some(path) => {
            let file = session.surroundings.current_dir.join(path);
            let text = fs::read_to_string(file).map_err(|error| {
                invalid(format!("failed to read {path}: {error}"))
                    .with_hint("give the path from the current directory: --schema @schema.json")
            });
            (path, text?)
        }
        None => ("the argument", argument.to_owned()),
    };
    if text.len() > MAX_BYTES {
        return Err(invalid(format!(
            "{what} has {}, and the limit is {}",
            size::bytes(text.len() as u64),
            size::bytes(MAX_BYTES as u64)
        )));
    }
    let document = serde_json::from_str(&text).map_err(|error| {
        invalid(format!("{what} is not JSON: {error}"))
            .with_hint(EXAMPLE)
            .with_hint("`--schema @FILE` reads it from a file.")
    })?;
    let Value::Object(schema) = document else {
        return Err(invalid(format!("{what} is not a JSON Schema object")).with_hint(EXAMPLE));
    };
    match Schema::compile(&schema) {
        Ok(_) => Ok(schema),
        // jp loads no other documents, so that a schema can't read files or URLs.
        Err(error) if error.is_reference => Err(invalid(format!("{what}: {error}"))
            .with_hint("put the schemas that it refers to into its `$defs`.")),
        Err(error) => {
            Err(invalid(format!("{what} is not a JSON Schema: {error}")).with_hint(EXAMPLE))
        }
    }
}

fn invalid(reason: String) -> SessionError {
    SessionError::usage(format!("invalid --schema: {reason}"))
}

/// Compiles the schema that is stored with a message.
pub(crate) fn compile_stored(schema: &Map<String, Value>) -> Result<Schema, SessionError> {
    Schema::compile(schema).map_err(|error| {
        SessionError::new(format!("the message's schema is invalid: {error}"))
            .with_hint("ask again with another schema: `jp query --schema JSON \"…\"`")
    })
}
