//! Writes JSON that can be read again.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{
    Serializer, Value,
    ser::{CompactFormatter, Formatter},
};

/// The most levels of an event. serde_json reads 127.
const MAX_DEPTH: usize = 120;

/// The most levels of a part from outside, which the event adds some levels to.
const MAX_PART_DEPTH: usize = 100;

/// Returns true if a value has at most 100 levels, so that an event can contain it.
#[must_use]
pub fn is_shallow(value: &Value) -> bool {
    fn has_at_most(levels: usize, value: &Value) -> bool {
        match value {
            Value::Array(values) => {
                levels > 0 && values.iter().all(|value| has_at_most(levels - 1, value))
            }
            Value::Object(map) => {
                levels > 0 && map.values().all(|value| has_at_most(levels - 1, value))
            }
            _ => true,
        }
    }
    has_at_most(MAX_PART_DEPTH, value)
}

/// Writes a value on one line. Fails if it is nested so deeply that it could not be read again.
pub(crate) fn to_string<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut json = Vec::with_capacity(128);
    value.serialize(&mut Serializer::with_formatter(
        &mut json,
        Shallow { depth: 0 },
    ))?;
    Ok(String::from_utf8(json).expect("serde_json writes UTF-8"))
}

/// Limits the number of levels.
struct Shallow {
    depth: usize,
}

impl Shallow {
    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let reason = format!(
                "it is nested more than {MAX_DEPTH} levels deep, so it could not be read again"
            );
            return Err(io::Error::other(reason));
        }
        Ok(())
    }
}

impl Formatter for Shallow {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        CompactFormatter.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        CompactFormatter.end_array(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        CompactFormatter.end_object(writer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!([]), |inner, _| json!([inner]))
    }

    #[test]
    fn too_deep_value_is_not_written() {
        let json = to_string(&nested(MAX_DEPTH)).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&json).unwrap(),
            nested(MAX_DEPTH)
        );
        let error = to_string(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is nested more than 120 levels deep, so it could not be read again"
        );
        assert!(is_shallow(&nested(MAX_PART_DEPTH)) && !is_shallow(&nested(MAX_PART_DEPTH + 1)));
        let wide = vec![json!({"a": [1, {}]}); MAX_DEPTH];
        assert_eq!(
            to_string(&wide).unwrap(),
            serde_json::to_string(&wide).unwrap()
        );
    }
}
