//! What a conversation's history may configure.

use jp_config::Layers;
use serde_json::{Map, Value, json};

/// Keeps what a conversation may set: history can come from anywhere, so it says nothing of where
/// requests go, which keys go with them, how much is attached how safely and what tools may do: of those it
/// says no more than which are off, and which of those are on that `may_be_on`.
pub(crate) fn of_conversation(
    config: &Map<String, Value>,
    may_be_on: &dyn Fn(&str) -> bool,
) -> Map<String, Value> {
    let may_set = |key: &str| matches!(key, "assistant" | "conversation");
    let mut config: Map<String, Value> = config
        .iter()
        .filter(|(key, _)| may_set(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(Value::Object(conversation)) = config.get_mut("conversation") {
        conversation.shift_remove("attachment");
        conversation.shift_remove("read_only_paths");
        if let Some(Value::Object(tools)) = conversation.get_mut("tools") {
            tools.shift_remove("*");
            tools.iter_mut().for_each(|(name, tool)| {
                let enable = tool.get("enable").and_then(Value::as_bool);
                let enable = enable.filter(|is_on| !is_on || may_be_on(name));
                *tool = enable.map_or_else(|| json!({}), |enable| json!({"enable": enable}));
            });
        }
    }
    config
}

/// Takes the names that a conversation gives to models, as older versions of jp wrote them into it, but for those that
/// the person gives.
pub(crate) fn add_aliases(
    config: &Map<String, Value>,
    layers: &Layers,
    aliases: &mut Map<String, Value>,
) {
    let providers = config.get("providers");
    let said = ["/llm/aliases", "/aliases"].map(|pointer| providers?.pointer(pointer)?.as_object());
    let said = said
        .into_iter()
        .flatten()
        .flatten()
        .filter(|(name, _)| !layers.has_alias(name) && !name.contains('/'));
    aliases.extend(said.map(|(name, model)| (name.clone(), model.clone())));
}

/// Puts a model in the place of its name.
pub(crate) fn with_alias(
    mut config: Map<String, Value>,
    aliases: &Map<String, Value>,
) -> Map<String, Value> {
    let id = config
        .get_mut("assistant")
        .and_then(|assistant| assistant.pointer_mut("/model/id"));
    if let Some(id) = id
        && let Some(model) = id.as_str().and_then(|name| aliases.get(name))
    {
        *id = model.clone();
    }
    config
}
