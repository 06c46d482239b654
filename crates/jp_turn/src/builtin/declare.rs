//! Declares a builtin tool to models, and reads what they call it with.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::kind::Builtin;
use crate::tool::{Permission, Source, Tool};

/// Makes a builtin tool from its description and the JSON Schema of its arguments.
pub(super) fn declare(builtin: Builtin, description: &str, parameters: Value) -> Tool {
    let Value::Object(parameters) = parameters else {
        unreachable!("an object was written")
    };
    let permission = if builtin.is_reader() {
        Permission::Unattended
    } else {
        Permission::Ask
    };
    Tool {
        description: description.to_owned(),
        permission,
        ..Tool::new(builtin.name(), parameters, Source::Builtin(builtin))
    }
}

/// Reads arguments that fit the tool's schema.
pub(super) fn read_arguments<'a, T: Deserialize<'a>>(
    arguments: &'a Map<String, Value>,
) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("The arguments can't be read: {error}."))
}
