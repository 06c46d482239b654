//! `jp config`.

use crate::{
    args::Config,
    context::Context,
    error::{Code, Failure},
    output::table,
};
use jp_attachment::find_secret;
use jp_config::{Entry, Key, without_secrets};
use jp_session::text::without_credentials;
use serde_json::{Value, json};

pub(crate) fn run(command: Config, context: &Context<'_>) -> Result<Code, Failure> {
    let Config::Show { key } = command;
    let current = context.session.current()?;
    let conversation = current
        .map(|found| context.session.read(&found))
        .transpose()?;
    let resolved = context.session.config(conversation.as_ref(), &[])?;
    let is_shown = |entry: &str| {
        key.as_deref().is_none_or(|key| {
            entry == key
                || entry
                    .strip_prefix(key)
                    .is_some_and(|rest| rest.starts_with('.'))
        })
    };
    let entries = resolved.entries();
    let shown: Vec<_> = entries
        .iter()
        .filter(|entry| is_shown(&entry.key.to_string()))
        .collect();
    if let Some(key) = key.filter(|_| shown.is_empty()) {
        return Err(Failure::new(format!("there is no value of `{key}`"))
            .with_hint("`jp config show` lists every key that has one."));
    }
    if context.output.is_json() {
        let entry = |entry: &&Entry<'_>| json!({"key": entry.key.to_string(), "value": shown_value(entry), "layer": shown_layer(entry)});
        context
            .output
            .json(&shown.iter().map(entry).collect::<Vec<_>>())?;
    } else {
        let row = |entry: &&Entry<'_>| {
            vec![
                format!("{} = {}", entry.key, shown_value(entry)),
                format!("# {}", shown_layer(entry)),
            ]
        };
        for line in table(&shown.iter().map(row).collect::<Vec<_>>()) {
            context.output.line(&line)?;
        }
    }
    for (key, layer) in &resolved.unknown {
        context.output.warn(&format!(
            "unknown key `{key}` in {}: it has no effect",
            layer.without_value()
        ));
    }
    Ok(Code::Done)
}

/// Returns the value of an entry with what may be a secret hidden.
fn shown_value(entry: &Entry<'_>) -> Value {
    map_texts(&without_secrets(&entry.key, entry.value), &|text| {
        shown_text(&entry.key, text)
    })
}

/// Returns the layer of an entry with what may be a secret hidden.
fn shown_layer(entry: &Entry<'_>) -> String {
    shown_text(&entry.key, &entry.layer.to_string())
}

/// Returns a text of an entry without the credentials of its URLs.
///
/// If the text belongs to an MCP server and looks like a secret, such as a token in an argument, it
/// is hidden completely.
fn shown_text(key: &Key, text: &str) -> String {
    let is_servers = key.parts().take(2).eq(["providers", "mcp"]);
    let text = without_credentials(text);
    if is_servers && find_secret(&text).is_some() {
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
