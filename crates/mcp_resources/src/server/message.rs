//! How much one message may be made of.

/// How many values a message may have: one that is large because of its texts is cheap, and one that is made of numbers
/// takes a hundred times its bytes.
const MAX_VALUES: usize = 100_000;

/// What is wrong with a message that has more values.
pub(super) const TOO_MANY_VALUES: &str = "a message has 100,000 values at the most";

/// Whether a text of JSON has more values than a message may, about: what is between commas and brackets that are in no
/// string.
pub(super) fn has_too_many_values(json: &[u8]) -> bool {
    // A value takes a byte, and what separates it another.
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
    fn values_are_counted_and_texts_are_one_each() {
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
