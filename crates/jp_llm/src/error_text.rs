//! Finds the message in an error that a server sent.

use serde_json::Value;

/// Finds the error object in the body of an error response; a body that is no JSON is a string of its own.
pub(crate) fn error_in(body: &str) -> Value {
    let Ok(json) = serde_json::from_str::<Value>(body) else {
        return body.into();
    };
    let response = json.get(0).unwrap_or(&json);
    unpack(response.get("error").unwrap_or(response))
}

/// Unpacks an error: a server that asks another one hands on what that said, as a string.
pub(crate) fn unpack(error: &Value) -> Value {
    match error.as_str().map(serde_json::from_str::<Value>) {
        Some(Ok(inner)) if inner.is_object() => unpack(inner.get("error").unwrap_or(&inner)),
        _ => error.clone(),
    }
}

/// Finds the message in the error that a body holds.
pub(crate) fn error_message(error: &Value, body: &str) -> String {
    excerpt(message_in(error).unwrap_or(body))
}

/// Finds the message in an error object; a string is its own message.
pub(crate) fn message_in(error: &Value) -> Option<&str> {
    let fields = ["message", "detail"]
        .into_iter()
        .filter_map(|field| error.get(field)?.as_str());
    error
        .as_str()
        .into_iter()
        .chain(fields)
        .find(|message| !message.is_empty())
}

/// Makes one short line of a server's text: white space runs are one space, other control
/// characters are left out.
pub(crate) fn excerpt(text: &str) -> String {
    // Two or three lines of a terminal.
    const CHARACTERS: usize = 300;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut printable = words.chars().filter(|character| !character.is_control());
    let mut short: String = printable.by_ref().take(CHARACTERS).collect();
    if printable.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_one_short_line_without_control_characters() {
        assert_eq!(excerpt(" a\r\n\tb\u{1b}[31m\u{0} c\u{85}"), "a b[31m c");
        assert_eq!(excerpt(&"ä".repeat(301)), "ä".repeat(300) + "…");
        assert_eq!(excerpt(&"ä".repeat(300)), "ä".repeat(300));
    }

    #[test]
    fn error_message_is_found_where_servers_put_it() {
        for (body, message) in [
            (
                r#"{"error":{"code":400,"message":"too long\n","type":"x"}}"#,
                "too long",
            ),
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
            (
                r#"{"error":"{\"error\":{\"message\":\"too long\"}}"}"#,
                "too long",
            ),
            (r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
            (r#"{"message":"no"}"#, "no"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"error":{"code":1}}"#, r#"{"error":{"code":1}}"#),
            ("<html>\n<b>Bad Gateway</b>", "<html> <b>Bad Gateway</b>"),
            ("", ""),
        ] {
            assert_eq!(error_message(&error_in(body), body), message);
        }
    }
}
