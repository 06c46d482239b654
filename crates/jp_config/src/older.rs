//! Rewrites the forms of older versions of jp to today's before a layer is merged.
//!
//! - `{"value": …, "strategy": …}` around the system prompt and the attachments is its value;
//! - a model `{"provider": "google", "name": "x"}` is `"google/x"`; a missing part comes from earlier
//!   layers;
//! - `providers.llm.aliases` is `providers.aliases`;
//! - a tool's `enable = "explicit"` is `false`, `"always"` is `true`.

use serde_json::{Map, Value};

use crate::Key;

/// A value whose key has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Today's key.
    pub(crate) key: Key,
    /// The key in the layer.
    pub(crate) older: Key,
}

/// Rewrites the older forms in `layer` before it is merged over `earlier`. Returns the moved values.
pub(crate) fn modernise(layer: &mut Value, earlier: &Value) -> Vec<Moved> {
    unwrap_value(layer, "/assistant/system_prompt");
    unwrap_value(layer, "/conversation/attachments");
    join_model(
        layer.pointer_mut("/assistant/model/id"),
        earlier.pointer("/assistant/model/id"),
    );
    modernise_tools(layer.pointer_mut("/conversation/tools"));
    move_aliases(layer, earlier)
}

/// Removes a conversation's changes of its attachments, `{"add": […], "remove": […]}`.
///
/// They aren't configuration; the conversation itself applies them.
pub(crate) fn drop_attachment_changes(layer: &mut Value) {
    let Some(conversation) = layer.get_mut("conversation").and_then(Value::as_object_mut) else {
        return;
    };
    let is_change = |value: &Value| value.get("add").is_some() || value.get("remove").is_some();
    if conversation.get("attachments").is_some_and(is_change) {
        conversation.shift_remove("attachments");
    }
}

fn unwrap_value(layer: &mut Value, pointer: &str) {
    let Some(node) = layer.pointer_mut(pointer) else {
        return;
    };
    if let Some(value) = node.get_mut("value") {
        *node = value.take();
    }
}

fn modernise_tools(tools: Option<&mut Value>) {
    let tools = tools.and_then(Value::as_object_mut);
    for enable in tools
        .into_iter()
        .flat_map(|tools| tools.values_mut())
        .filter_map(|tool| tool.get_mut("enable"))
    {
        match enable.as_str() {
            Some("explicit") => *enable = false.into(),
            Some("always") => *enable = true.into(),
            _ => {}
        }
    }
}

fn join_model(model: Option<&mut Value>, earlier: Option<&Value>) {
    if let Some(model) = model
        && let Some(table) = model.as_object()
        && let Some(joined) = joined_model(table, earlier)
    {
        *model = Value::String(joined);
    }
}

fn joined_model(table: &Map<String, Value>, earlier: Option<&Value>) -> Option<String> {
    let earlier = earlier
        .and_then(Value::as_str)
        .and_then(|id| id.split_once('/'));
    let part = |name| table.get(name).and_then(Value::as_str);
    let provider = part("provider").or(earlier.map(|(provider, _)| provider))?;
    let name = part("name").or(earlier.map(|(_, name)| name))?;
    Some(format!("{provider}/{name}"))
}

fn move_aliases(layer: &mut Value, earlier: &Value) -> Vec<Moved> {
    let providers = layer.get_mut("providers").and_then(Value::as_object_mut);
    let Some(providers) = providers else {
        return Vec::new();
    };
    let llm = providers.get_mut("llm").and_then(Value::as_object_mut);
    let older = llm.and_then(|llm| llm.shift_remove("aliases"));
    let Some(Value::Object(mut aliases)) = older else {
        return Vec::new();
    };
    // If a layer has an alias in both forms, today's wins.
    let today = providers.get("aliases");
    let moved = aliases
        .keys()
        .filter(|alias| today.is_none_or(|today| today.get(alias.as_str()).is_none()))
        .map(|alias| Moved {
            key: ["providers", "aliases", alias].into_iter().collect(),
            older: ["providers", "llm", "aliases", alias].into_iter().collect(),
        })
        .collect();
    for (alias, model) in &mut aliases {
        join_model(
            Some(model),
            earlier
                .pointer("/providers/aliases")
                .and_then(|aliases| aliases.get(alias)),
        );
    }
    let merged = match providers.get_mut("aliases").map(Value::take) {
        Some(Value::Object(today)) => {
            aliases.extend(today);
            Value::Object(aliases)
        }
        // Not a table, which reading reports as an error.
        Some(today) => today,
        None => Value::Object(aliases),
    };
    providers.insert("aliases".to_owned(), merged);
    moved
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn modernised(mut layer: Value, earlier: Value) -> Value {
        modernise(&mut layer, &earlier);
        layer
    }

    #[test]
    fn wrapped_values_are_unwrapped() {
        let layer = json!({
            "assistant": { "system_prompt": { "value": "Be brief.", "strategy": "replace" } },
            "conversation": { "attachments": { "value": ["a"], "discard_when_merged": false } },
        });
        let expected = json!({ "assistant": { "system_prompt": "Be brief." }, "conversation": { "attachments": ["a"] } });
        assert_eq!(modernised(layer, json!({})), expected);
    }

    #[test]
    fn half_a_model_is_completed_from_earlier_layers() {
        let model = |id: Value| json!({ "assistant": { "model": { "id": id } } });
        let half = model(json!({ "name": "y" }));
        assert_eq!(
            modernised(half.clone(), model(json!("google/x"))),
            model(json!("google/y"))
        );
        assert_eq!(modernised(half.clone(), json!({})), half);
    }

    #[test]
    fn aliases_move_out_of_the_providers() {
        let layer = json!({ "providers": {
            "llm": { "ollama": {}, "aliases": { "opus": { "provider": "anthropic", "name": "o" }, "g": "google/old" } },
            "aliases": { "g": "google/new" },
        } });
        let expected = json!({ "providers": {
            "llm": { "ollama": {} },
            "aliases": { "opus": "anthropic/o", "g": "google/new" },
        } });
        assert_eq!(modernised(layer, json!({})), expected);
    }

    #[test]
    fn only_attachment_changes_are_dropped() {
        let mut changes =
            json!({ "conversation": { "attachments": { "add": ["a"] }, "tools": {} } });
        drop_attachment_changes(&mut changes);
        assert_eq!(changes, json!({ "conversation": { "tools": {} } }));

        let mut list = json!({ "conversation": { "attachments": ["a"] } });
        drop_attachment_changes(&mut list);
        assert_eq!(list, json!({ "conversation": { "attachments": ["a"] } }));
    }
}
