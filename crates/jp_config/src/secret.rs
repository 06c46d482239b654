//! Detects and hides configuration values that may be secrets.

use serde_json::Value;

use crate::{Key, assignment::find_equals};

/// Placeholder for a hidden value.
const HIDDEN: &str = "…";

/// Returns a value for display, with possible secrets hidden.
///
/// These are the headers and variables of MCP servers, and commands that print an API key.
#[must_use]
pub fn without_secrets(key: &Key, value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(|value| without_secrets(key, value)).collect(),
        Value::Object(table) => {
            let entry =
                |(name, value): (&String, &Value)| (name.clone(), without_secrets(&key.child(name), value));
            table.iter().map(entry).collect()
        }
        _ if is_secret(key) => HIDDEN.into(),
        value => value.clone(),
    }
}

/// Returns a `KEY=VALUE` argument for display, with a value that may hold a secret hidden.
pub(crate) fn argument_without_secrets(text: &str) -> String {
    let Some(equals) = find_equals(text) else { return text.to_owned() };
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let key = name.strip_suffix([':', '+']).unwrap_or(name).parse::<Key>();
    match key {
        Ok(key) if is_secret(&key) || is_in_server_table(&key) || may_hold_secrets(&key, value) => {
            format!("{name}={HIDDEN}")
        }
        _ => text.to_owned(),
    }
}

/// Returns a `KEY=VALUE` of the command line as people are shown it where the key is unknown: nobody knows whether the
/// value is a secret.
pub(crate) fn argument_without_value(text: &str) -> String {
    find_equals(text).map_or_else(|| text.to_owned(), |equals| format!("{}={HIDDEN}", &text[..equals]))
}

/// Returns whether the value at a key, or a part of it, may be a secret.
fn is_secret(key: &Key) -> bool {
    match &key.parts().collect::<Vec<_>>()[..] {
        ["providers", "mcp", _, field, ..] => matches!(*field, "headers" | "environment"),
        ["providers", "llm", _, field, ..] => *field == "api_key_command",
        _ => false,
    }
}

/// Returns whether a key is in a table of an MCP server: headers or variables, also where that name is mistyped.
fn is_in_server_table(key: &Key) -> bool {
    matches!(key.parts().collect::<Vec<_>>()[..], ["providers", "mcp", _, _, _, ..])
}

/// Returns whether the text of a table seems to name a field that may be a secret.
fn may_hold_secrets(table: &Key, text: &str) -> bool {
    let is_above = matches!(
        table.parts().collect::<Vec<_>>()[..],
        ["providers"] | ["providers", "mcp" | "llm"] | ["providers", "mcp" | "llm", _]
    );
    is_above && ["headers", "environment", "api_key_command"].iter().any(|field| text.contains(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_is_shown_without_a_secret_in_it() {
        for (text, shown) in [
            (
                "providers.mcp.docs.headers.Authorization=Bearer s",
                "providers.mcp.docs.headers.Authorization=…",
            ),
            ("providers.mcp.'a=b'.headers.x=s", "providers.mcp.'a=b'.headers.x=…"),
            ("providers.mcp.docs.environment:={\"A\": \"s\"}", "providers.mcp.docs.environment:=…"),
            ("providers.mcp.docs={ url = 'x', headers = { A = 's' } }", "providers.mcp.docs=…"),
            ("providers:={\"llm\": {\"x\": {\"api_key_command\": [\"s\"]}}}", "providers:=…"),
            (
                "providers.mcp.docs.header.Authorization:=Bearer s",
                "providers.mcp.docs.header.Authorization:=…",
            ),
            ("providers.llm.x.api_key_command+=s", "providers.llm.x.api_key_command+=…"),
            ("providers.mcp.docs={ command = 'a' }", "providers.mcp.docs={ command = 'a' }"),
            ("assistant.system_prompt=headers", "assistant.system_prompt=headers"),
            ("file.toml", "file.toml"),
        ] {
            assert_eq!(argument_without_secrets(text), shown);
        }
    }
}
