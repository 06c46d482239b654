use std::path::PathBuf;

use serde_json::Value;

use crate::{Cause, Error, Key, key::find_equals};

/// One `-c` argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    /// `KEY=VALUE`: sets a value given as text.
    ///
    /// The text is read as a TOML boolean, integer, array or inline table if it is one and the key
    /// takes one. Otherwise it is a string.
    Set {
        /// The key to set.
        key: Key,
        /// The text of the argument.
        text: String,
    },
    /// `KEY:=JSON`: sets a value given as JSON; `null` removes the values of earlier layers.
    SetJson {
        /// The key to set.
        key: Key,
        /// The parsed JSON.
        value: Value,
    },
    /// `KEY+=VALUE`: appends one element to a list, or all elements of a TOML array.
    Append {
        /// The list.
        key: Key,
        /// The text of the argument, read as for [`Assignment::Set`].
        text: String,
    },
    /// A bare path: the caller reads the file and adds its text with [`Layers::add_toml`].
    ///
    /// [`Layers::add_toml`]: crate::Layers::add_toml
    File(PathBuf),
}

impl Assignment {
    /// Parses an argument.
    ///
    /// A text without `=` outside quotes is a path. The path of a file may contain `=`, so callers
    /// look for a file first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Key`] for a malformed key, [`Error::Json`] for malformed JSON.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let Some(equals) = find_equals(text) else {
            return Ok(Self::File(PathBuf::from(text)));
        };
        let (left, value) = (&text[..equals], &text[equals + 1..]);
        if let Some(key) = left.strip_suffix(':') {
            let value = serde_json::from_str(value).map_err(|error| Error::Json {
                text: text.to_owned(),
                source: Cause(error.to_string()),
            })?;
            return Ok(Self::SetJson {
                key: key.parse()?,
                value,
            });
        }
        if let Some(key) = left.strip_suffix('+') {
            return Ok(Self::Append {
                key: key.parse()?,
                text: value.to_owned(),
            });
        }
        Ok(Self::Set {
            key: left.parse()?,
            text: value.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    #[test]
    fn each_operator_has_its_variant() {
        assert_eq!(
            ["a.b=c=d", "a.b:=[1]", "a.b+=c", "dir/file.toml"]
                .map(|text| Assignment::parse(text).unwrap()),
            [
                Assignment::Set {
                    key: key("a.b"),
                    text: "c=d".into()
                },
                Assignment::SetJson {
                    key: key("a.b"),
                    value: json!([1])
                },
                Assignment::Append {
                    key: key("a.b"),
                    text: "c".into()
                },
                Assignment::File("dir/file.toml".into()),
            ]
        );
    }

    #[test]
    fn equals_sign_in_a_quoted_key_is_part_of_it() {
        let assignment = Assignment::parse("tools.'a=b'.run=ask").unwrap();
        assert_eq!(
            assignment,
            Assignment::Set {
                key: key("tools.'a=b'.run"),
                text: "ask".into()
            }
        );
    }

    #[test]
    fn malformed_argument_is_an_error() {
        let messages =
            ["=x", "a..b=1", "a:={"].map(|text| Assignment::parse(text).unwrap_err().to_string());
        assert_eq!(
            messages,
            [
                "read configuration: `` is not a key",
                "read configuration: `a..b` is not a key",
                "read configuration: `-c a:={`",
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = Assignment::parse(&text);
        }
    }
}
