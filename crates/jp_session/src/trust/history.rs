//! The rules for the configuration in a conversation's history.

use super::{Approvals, Decision, Effect, Origin, decide, decide_unapproved};
use jp_config::Layers;
use serde_json::{Map, Value, json};

/// Keeps what a conversation's history may configure, and drops the rest.
///
/// History can come from anywhere. So it doesn't say where requests go and which keys go with them,
/// how much is attached and how safely, or what tools may do. Of tools it keeps which are off, and
/// which of those are on that `was_switched_on` by the user.
pub(crate) fn keep_allowed(
    config: &Map<String, Value>,
    was_switched_on: &dyn Fn(&str) -> bool,
) -> Map<String, Value> {
    let mut config = config.clone();
    config.retain(|key, _| may_set(&[key]));
    let Some(Value::Object(conversation)) = config.get_mut("conversation") else {
        return config;
    };
    conversation.retain(|key, _| may_set(&["conversation", key]));
    let Some(Value::Object(tools)) = conversation.get_mut("tools") else {
        return config;
    };
    tools.retain(|name, _| may_set(&["conversation", "tools", name]));
    for (name, tool) in tools {
        let enable = tool.get("enable").and_then(Value::as_bool);
        let enable = enable.filter(|is_on| !is_on || may_switch_on(was_switched_on(name)));
        *tool = enable.map_or_else(|| json!({}), |enable| json!({"enable": enable}));
    }
    config
}

/// Returns whether a conversation's history may have a tool on.
pub(crate) fn may_switch_on(was_switched_on: bool) -> bool {
    let approvals = Approvals::with_remembered(was_switched_on);
    decide(Origin::History, Effect::SwitchToolOn, approvals) == Decision::Allowed
}

fn may_set(key: &[&str]) -> bool {
    decide_unapproved(Origin::History, effect_of(key)) == Decision::Allowed
}

/// Returns the effect of setting a table of the configuration.
fn effect_of(key: &[&str]) -> Effect {
    match key {
        // Settings of all tools also apply to tools that the user switches on later.
        ["conversation", "attachment" | "read_only_paths"] | ["conversation", "tools", "*"] => {
            Effect::Configure
        }
        ["assistant" | "conversation", ..] => Effect::ShapeConversation,
        _ => Effect::Configure,
    }
}

/// Adds the names that a conversation gives to models, as older versions of jp stored them, except those
/// that configuration files give.
pub(crate) fn add_aliases(
    config: &Map<String, Value>,
    layers: &Layers,
    aliases: &mut Map<String, Value>,
) {
    let providers = config.get("providers");
    // Older versions stored them in `llm`; `extend` lets the newer place win.
    for pointer in ["/llm/aliases", "/aliases"] {
        let table = providers.and_then(|providers| providers.pointer(pointer)?.as_object());
        let allowed = table
            .into_iter()
            .flatten()
            .filter(|(name, _)| may_name(name, layers));
        aliases.extend(allowed.map(|(name, model)| (name.clone(), model.clone())));
    }
}

fn may_name(name: &str, layers: &Layers) -> bool {
    let effect = Effect::NameModel {
        is_taken: layers.has_alias(name),
        has_slash: name.contains('/'),
    };
    decide_unapproved(Origin::History, effect) == Decision::Allowed
}

/// Replaces the name of a model by the model.
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

#[cfg(test)]
mod tests {
    use super::*;
    use jp_config::Layer;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    fn kept(config: Value) -> Value {
        Value::Object(keep_allowed(&object(config), &|name| name == "approved"))
    }

    #[test]
    fn history_chooses_only_the_model() {
        let config = json!({
            "assistant": {"model": {"id": "a/b"}, "system_prompt": "Be brief."},
            "providers": {"llm": {"a": {"base_url": "http://elsewhere.example"}}},
            "later": {"key": 1},
        });
        assert_eq!(
            kept(config),
            json!({"assistant": {"model": {"id": "a/b"}, "system_prompt": "Be brief."}})
        );
    }

    #[test]
    fn history_sets_no_limit_of_attachments() {
        let config = json!({"conversation": {
            "attachments": [{"type": "file", "path": "/a"}],
            "attachment": {"secrets": "off"},
            "read_only_paths": [],
            "deduplication": {"enabled": false},
        }});
        assert_eq!(
            kept(config),
            json!({"conversation": {
                "attachments": [{"type": "file", "path": "/a"}],
                "deduplication": {"enabled": false},
            }})
        );
    }

    #[test]
    fn history_only_sets_which_tools_are_on() {
        let config = json!({"conversation": {"tools": {
            "*": {"run": "unattended"},
            "approved": {"enable": true, "run": "unattended", "command": "x"},
            "other": {"enable": true, "run": "unattended"},
            "off": {"enable": false},
            "odd": "text",
        }}});
        assert_eq!(
            kept(config),
            json!({"conversation": {"tools": {
                "approved": {"enable": true},
                "other": {},
                "off": {"enable": false},
                "odd": {},
            }}})
        );
    }

    #[test]
    fn values_that_are_not_tables_stay() {
        for config in [
            json!({"conversation": 1}),
            json!({"conversation": {"tools": 1}}),
        ] {
            assert_eq!(kept(config.clone()), config);
        }
    }

    #[test]
    fn alias_of_history_replaces_none_of_a_file() {
        let mut layers = Layers::new();
        let user = Layer::User { path: "u".into() };
        let file = "providers.aliases.mine = 'a/b'";
        layers.add_toml(user, file).unwrap();
        let config = json!({"providers": {
            "llm": {"aliases": {"old": "c/old", "both": "c/first"}},
            "aliases": {"mine": "c/d", "a/b": "c/d", "both": "c/second"},
        }});
        let mut aliases = Map::new();
        add_aliases(&object(config), &layers, &mut aliases);
        assert_eq!(
            Value::Object(aliases),
            json!({"old": "c/old", "both": "c/second"})
        );
    }

    #[test]
    fn name_of_a_model_is_replaced_by_the_model() {
        let aliases = object(json!({"fast": "a/b"}));
        for (id, expected) in [("fast", "a/b"), ("other", "other")] {
            let config = object(json!({"assistant": {"model": {"id": id}}}));
            assert_eq!(
                Value::Object(with_alias(config, &aliases)),
                json!({"assistant": {"model": {"id": expected}}})
            );
        }
        let empty = Map::new();
        assert_eq!(with_alias(empty.clone(), &aliases), empty);
    }
}
