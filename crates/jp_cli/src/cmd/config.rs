//! `jp config`.

use crate::{
    args::Config,
    context::Context,
    error::{Code, SessionError},
};
use jp_attachment::find_secret;
use jp_config::{Entry, Key, without_secrets};
use jp_session::{notice::Notice, text::without_credentials};
use serde_json::{Value, json};

pub(crate) fn run(command: Config, context: &Context<'_>) -> Result<Code, SessionError> {
    let Config::Show { key } = command;
    // The current conversation's settings are part of the configuration.
    let current = context.session.current()?;
    let conversation = current
        .map(|found| context.session.read(&found))
        .transpose()?;
    let resolved = context.session.config(conversation.as_ref(), &[])?;
    let mut entries = resolved.entries();
    if let Some(key) = key {
        entries.retain(|entry| is_at_or_below(&entry.key.to_string(), &key));
        if entries.is_empty() {
            return Err(SessionError::new(format!("`{key}` has no value"))
                .with_hint("`jp config show` lists all keys that have one."));
        }
    }
    if context.output.is_json() {
        let entries = entries.iter().map(|entry| {
            json!({
                "key": entry.key.to_string(),
                "value": value_without_secrets(entry),
                "layer": layer_without_secrets(entry),
            })
        });
        context.output.json(&entries.collect::<Vec<_>>())?;
    } else {
        let rows = entries.iter().map(|entry| {
            vec![
                format!("{} = {}", entry.key, value_without_secrets(entry)),
                format!("# {}", layer_without_secrets(entry)),
            ]
        });
        context.output.table(&rows.collect::<Vec<_>>())?;
    }
    for (key, layer) in &resolved.unknown {
        context.session.person.tell(Notice::UnknownKey {
            key: key.to_string(),
            layer: layer.without_value().to_string(),
        });
    }
    Ok(Code::Done)
}

/// Returns whether an entry has the key `key` or one below it.
fn is_at_or_below(entry: &str, key: &str) -> bool {
    entry
        .strip_prefix(key)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the value of an entry without anything that may be a secret.
fn value_without_secrets(entry: &Entry<'_>) -> Value {
    map_texts(&without_secrets(&entry.key, entry.value), &|text| {
        hide_secrets(&entry.key, text)
    })
}

/// Returns the layer of an entry. The layer `-c KEY=VALUE` contains the value, so it may contain a secret, too.
fn layer_without_secrets(entry: &Entry<'_>) -> String {
    hide_secrets(&entry.key, &entry.layer.to_string())
}

/// Returns a text of an entry without the credentials of its URLs.
///
/// If the text belongs to an MCP server and looks like a secret, such as a token in an argument, it
/// is hidden completely.
fn hide_secrets(key: &Key, text: &str) -> String {
    let is_of_server = key.parts().take(2).eq(["providers", "mcp"]);
    let text = without_credentials(text);
    if is_of_server && find_secret(&text).is_some() {
        "…".to_owned()
    } else {
        text
    }
}

/// Returns a value with each text in it replaced.
fn map_texts(value: &Value, map: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => map(text).into(),
        Value::Array(values) => values.iter().map(|value| map_texts(value, map)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), map_texts(value, map)))
            .collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_urls_are_not_shown() {
        for (text, shown) in [
            (
                r#"["http://joe:s3cret@host/a@b", "https://u@h"]"#,
                r#"["http://…@host/a@b", "https://…@h"]"#,
            ),
            ("-c a+=http://joe:s3cret@host", "-c a+=http://…@host"),
            ("http://host/x", "http://host/x"),
            ("no URL: a@b", "no URL: a@b"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
        let shown = map_texts(&json!({"a": ["x://u:p@h"]}), &|text| {
            without_credentials(text)
        });
        assert_eq!(shown, json!({"a": ["x://…@h"]}));
    }
}
