//! Parses text into JSON values.

use serde_json::Value;

use crate::{Cause, Error, Layer};

/// Parses a TOML document; dates become strings.
pub(crate) fn parse_toml(layer: &Layer, text: &str) -> Result<Value, Error> {
    match text.parse::<toml::Table>() {
        Ok(table) => Ok(toml_to_json(toml::Value::Table(table))),
        Err(error) => Err(syntax_error(layer, text, &error)),
    }
}

fn syntax_error(layer: &Layer, text: &str, error: &toml::de::Error) -> Error {
    let offset = error.span().map_or(text.len(), |span| span.start);
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Error::Syntax {
        layer: layer.clone(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        source: Cause(error.message().to_owned()),
    }
}

/// Guesses the TOML value in a text from the command line or the environment.
///
/// Only booleans, integers, arrays and inline tables count. `1.10` is more often a version than a
/// number, and a string needs no quotes.
pub(crate) fn guess(text: &str) -> Value {
    match text.trim().parse::<toml::Value>() {
        Ok(
            value @ (toml::Value::Boolean(_)
            | toml::Value::Integer(_)
            | toml::Value::Array(_)
            | toml::Value::Table(_)),
        ) => toml_to_json(value),
        _ => Value::String(text.to_owned()),
    }
}

fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(datetime) => Value::String(datetime.to_string()),
        toml::Value::Array(list) => list.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => table
            .into_iter()
            .map(|(name, value)| (name, toml_to_json(value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_unmistakable_toml_is_a_value() {
        let texts = [
            "true",
            " 7 ",
            "[1, 'a']",
            "{ a = 1 }",
            "1.10",
            "'quoted'",
            "2026-01-01",
            "a b",
            "",
            "1\nb = 2",
        ];
        assert_eq!(
            Value::from_iter(texts.map(guess)),
            json!([true, 7, [1, "a"], { "a": 1 }, "1.10", "'quoted'", "2026-01-01", "a b", "", "1\nb = 2"])
        );
    }

    #[test]
    fn syntax_error_names_the_place() {
        let layer = Layer::Workspace {
            path: ".jp/config.toml".into(),
        };
        let error = parse_toml(&layer, "[assistant]\nmodel = = 3\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "read configuration: .jp/config.toml, line 2, column 9"
        );
    }

    #[test]
    fn toml_becomes_json() {
        let value = parse_toml(&Layer::Default, "b = 1\na = 2026-01-01").unwrap();
        assert_eq!(value.to_string(), r#"{"b":1,"a":"2026-01-01"}"#);
    }
}
