//! `jp config`.

use serde_json::json;

use crate::{
    args::Config,
    error::{Code, Failure},
    output::table,
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
        let entry = |entry: &&jp_config::Entry<'_>| json!({"key": entry.key.to_string(), "value": entry.value, "layer": entry.layer.to_string()});
        context.output.json(&shown.iter().map(entry).collect::<Vec<_>>())?;
    } else {
        let row = |entry: &&jp_config::Entry<'_>| {
            vec![format!("{} = {}", entry.key, entry.value), format!("# {}", entry.layer)]
        };
        for line in table(&shown.iter().map(row).collect::<Vec<_>>()) {
            context.output.line(&line)?;
        }
    }
    for (key, layer) in &resolved.unknown {
        context.output.warn(&format!("unknown key `{key}` in {layer}: it has no effect"));
    }
    Ok(Code::Done)
}
