//! `jp config`.

use jp_config::without_secrets;
use serde_json::{Value, json};

use crate::{
    args::Config,
    error::{Code, Failure},
    output::{table, without_credentials},
    workspace::Context,
};

pub(crate) fn run(command: Config, context: &Context<'_>) -> Result<Code, Failure> {
    let Config::Show { key } = command;
    let current = context.current()?;
    let conversation = current.map(|found| context.read(&found)).transpose()?;
    let resolved = context.config(conversation.as_ref(), &[])?;
    let is_shown = |entry: &str| {
        key.as_deref().is_none_or(|key| {
            entry == key || entry.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    let entries = resolved.entries();
    let shown: Vec<_> = entries.iter().filter(|entry| is_shown(&entry.key.to_string())).collect();
    if let Some(key) = key.filter(|_| shown.is_empty()) {
        return Err(Failure::new(format!("there is no value of `{key}`"))
            .with_hint("`jp config show` lists every key that has one."));
    }
    if context.output.is_json() {
        let entry = |entry: &&jp_config::Entry<'_>| json!({"key": entry.key.to_string(), "value": shown_value(&without_secrets(&entry.key, entry.value)), "layer": without_credentials(&entry.layer.to_string())});
        context.output.json(&shown.iter().map(entry).collect::<Vec<_>>())?;
    } else {
        let row = |entry: &&jp_config::Entry<'_>| {
            let value = without_secrets(&entry.key, entry.value);
            let value = without_credentials(&format!("{} = {value}", entry.key));
            vec![value, without_credentials(&format!("# {}", entry.layer))]
        };
        for line in table(&shown.iter().map(row).collect::<Vec<_>>()) {
            context.output.line(&line)?;
        }
    }
    for (key, layer) in &resolved.unknown {
        context.output.warn(&format!("unknown key `{key}` in {}: it has no effect", layer.without_value()));
    }
    Ok(Code::Done)
}

/// Returns a value with the credentials of its URLs taken out.
fn shown_value(value: &Value) -> Value {
    match value {
        Value::String(text) => without_credentials(text).into(),
        Value::Array(values) => values.iter().map(shown_value).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shown_value(value))).collect()
        }
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_urls_are_not_shown() {
        for (text, shown) in [
            (r#"["http://joe:s3cret@host/a@b", "https://u@h"]"#, r#"["http://…@host/a@b", "https://…@h"]"#),
            ("-c a+=http://joe:s3cret@host", "-c a+=http://…@host"),
            ("http://host/x", "http://host/x"),
            ("no URL: a@b", "no URL: a@b"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
        assert_eq!(shown_value(&json!({"a": ["x://u:p@h"]})), json!({"a": ["x://…@h"]}));
    }
}
