use std::str::FromStr;

use crate::secret::argument_without_secrets;
use crate::{Key, Layer, key};

/// An error of reading configuration. Messages finish the sentence "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file is not TOML.
    #[error("read configuration: {layer}, line {line}, column {column}")]
    Syntax {
        /// The file.
        layer: Layer,
        /// The line of the mistake, from 1.
        line: usize,
        /// The column of the mistake in characters, from 1.
        column: usize,
        /// The parser's message.
        source: Cause,
    },
    /// A layer's document isn't a table.
    #[error("read configuration: {layer} is not a table")]
    NotATable {
        /// The layer.
        layer: Layer,
    },
    /// A value has the wrong type for its key, or isn't allowed there.
    #[error("read configuration: {key} = {value} in {layer}")]
    Invalid {
        /// The key, as deep as the mistake could be located.
        key: Key,
        /// The value as JSON, shortened.
        value: String,
        /// The layer that set it.
        layer: Layer,
        /// The expected type or values.
        source: Cause,
    },
    /// The command line or the environment sets a key that does not exist.
    #[error("read configuration: unknown key {key} in {}", layer.without_value())]
    UnknownKey {
        /// The key.
        key: Key,
        /// The layer that set it.
        layer: Layer,
    },
    /// `KEY+=VALUE` names a key that isn't a list.
    #[error("read configuration: {key} in {layer} is not a list to append to")]
    NotAList {
        /// The key.
        key: Key,
        /// The layer that appends.
        layer: Layer,
    },
    /// A key has an empty or badly quoted part.
    #[error("read configuration: `{text}` is not a key")]
    Key {
        /// The text of the key.
        text: String,
    },
    /// An argument `KEY:=JSON` has malformed JSON.
    #[error("read configuration: `-c {}`", argument_without_secrets(text))]
    Json {
        /// The text of the argument.
        text: String,
        /// The parser's message.
        source: Cause,
    },
    /// An argument names a file, which the caller reads and adds as text.
    #[error("read configuration: {layer} names a file that was not loaded")]
    FileNotLoaded {
        /// The layer.
        layer: Layer,
    },
}

/// The cause of an [`Error`], as a sentence fragment such as "expected true or false".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Cause(pub(crate) String);

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        key::parse(text).ok_or_else(|| Error::Key {
            text: text.to_owned(),
        })
    }
}
