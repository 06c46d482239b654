//! Bounds the number of values in a message.

/// The most values in a message. Long texts are cheap, but a parsed message of small numbers takes a hundred
/// times its bytes: 14 MB of them took 2.4 GB.
const MAX_VALUES: usize = 100_000;

/// The error for a message with more values.
pub(super) const TOO_MANY_VALUES: &str = "a message can have at most 100,000 values";

/// Returns whether a JSON text has more than [`MAX_VALUES`] values, about: it counts commas and brackets outside of
/// strings.
pub(super) fn has_too_many_values(json: &[u8]) -> bool {
    // Each value takes a byte at least.
    if json.len() <= MAX_VALUES {
        return false;
    }
    let (mut values, mut is_in_string) = (0, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_in_string = !is_in_string,
            b'\\' if is_in_string => _ = bytes.next(),
            b',' | b'[' | b'{' if !is_in_string => values += 1,
            _ => (),
        }
    }
    values > MAX_VALUES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_counts_as_one_value() {
        let numbers = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert!(!has_too_many_values(numbers(MAX_VALUES).as_bytes()));
        assert!(has_too_many_values(numbers(MAX_VALUES + 1).as_bytes()));
        assert!(has_too_many_values("[".repeat(MAX_VALUES + 1).as_bytes()));
        assert!(has_too_many_values(
            format!("[{}]", vec![r#"{"":0}"#; MAX_VALUES / 2 + 1].join(",")).as_bytes()
        ));
        let text = serde_json::to_string(&[r#"a","[{\"#.repeat(MAX_VALUES)]).unwrap();
        assert!(!has_too_many_values(text.as_bytes()));
    }
}
