//! No input makes resolving panic.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use jp_config::{Assignment, Key, Layer, Layers, Resolved};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Words that matter somewhere, so that arbitrary documents reach the typed parts.
const WORDS: [&str; 22] = [
    "assistant",
    "model",
    "id",
    "provider",
    "name",
    "system_prompt",
    "value",
    "strategy",
    "providers",
    "llm",
    "aliases",
    "mcp",
    "base_url",
    "api_key_command",
    "conversation",
    "attachments",
    "attachment",
    "max_bytes",
    "tools",
    "type",
    "path",
    "params",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => any::<String>()]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|entries| Value::Object(Map::from_iter(entries))),
        ]
    })
}

fn argument() -> impl Strategy<Value = String> {
    let key =
        prop::collection::vec(name(), 1..4).prop_map(|parts| Key::from_iter(parts).to_string());
    let operator = prop::sample::select(&["=", ":=", "+="][..]);
    let value = prop_oneof![json().prop_map(|value| value.to_string()), any::<String>()];
    (key, operator, value).prop_map(|(key, operator, value)| format!("{key}{operator}{value}"))
}

fn add_argument(layers: &mut Layers, text: &str) {
    if let Ok(assignment) = Assignment::parse(text) {
        let _ = layers.add_assignment(
            Layer::Argument {
                text: text.to_owned(),
            },
            &assignment,
        );
    }
}

fn look_at_everything(layers: &Layers) {
    match layers.resolve() {
        Ok(resolved) => {
            for entry in resolved.entries() {
                let _ = (entry.key.to_string(), entry.layer.to_string());
            }
        }
        Err(error) => drop(error.to_string()),
    }
}

proptest! {
    #[test]
    fn arbitrary_text_as_toml_never_panics(text: String, toml in "[a-z\\[\\]{}='\". \n0-9é-]{0,80}") {
        for text in [text, toml] {
            let mut layers = Layers::new();
            if let Err(error) = layers.add_toml(Layer::Default, &text) {
                prop_assert!(!error.to_string().is_empty());
            }
            look_at_everything(&layers);
        }
    }

    #[test]
    fn arbitrary_layers_never_panic(
        documents in prop::collection::vec(json(), 0..4),
        arguments in prop::collection::vec(argument(), 0..4),
        more in json(),
    ) {
        let mut layers = Layers::new();
        for document in &documents {
            let _ = layers.add_json(Layer::Conversation, document);
        }
        for text in &arguments {
            add_argument(&mut layers, text);
        }
        let _ = layers.add_json(Layer::Conversation, &more);
        look_at_everything(&layers);
    }

    #[test]
    fn effective_values_resolve_to_themselves(document in json()) {
        let mut layers = Layers::new();
        let _ = layers.add_json(Layer::Conversation, &document);
        if let Ok(resolved) = layers.resolve() {
            let mut again = Layers::new();
            again.add_json(Layer::Default, &serde_json::to_value(&resolved.config).unwrap()).unwrap();
            prop_assert_eq!(again.resolve().unwrap().config, resolved.config);
        }
    }

    #[test]
    fn what_differs_from_the_defaults_has_a_layer(document in json()) {
        let mut layers = Layers::new();
        let _ = layers.add_json(Layer::Conversation, &document);
        let defaults = Layers::new().resolve().unwrap();
        for entry in layers.resolve().iter().flat_map(Resolved::entries) {
            if *entry.layer == Layer::Default {
                prop_assert_eq!(defaults.get(&entry.key.to_string()), Some(entry.value));
            }
        }
    }
}
