//! What older versions of jp stored resolves, where such conversations are at hand.

#![expect(clippy::unwrap_used, reason = "a test file throughout")]

use std::fs;
use std::path::{Path, PathBuf};

use jp_config::{Layer, Layers, Resolved};
use serde_json::Value;

fn conversations() -> Vec<PathBuf> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/jp-conversations");
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn json(path: &Path) -> Option<Value> {
    fs::read(path)
        .ok()
        .map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// Resolves a conversation's base configuration and, over it, each of its deltas.
fn resolve(conversation: &Path) -> Resolved {
    let mut layers = Layers::new();
    if let Some(base) = json(&conversation.join("base_config.json")) {
        layers.add_json(Layer::Conversation, &base).unwrap();
    }
    let events = json(&conversation.join("events.json")).unwrap();
    for event in events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "config_delta")
    {
        layers
            .add_json(Layer::Conversation, event.get("delta").unwrap_or(event))
            .unwrap();
        layers.resolve().unwrap();
    }
    layers.resolve().unwrap()
}

#[test]
fn stored_configuration_resolves_after_every_delta() {
    for conversation in conversations() {
        let resolved = resolve(&conversation);
        let known = |(key, layer): &(jp_config::Key, Layer)| {
            *layer == Layer::Conversation && !key.to_string().starts_with("conversation.attachment")
        };
        assert!(resolved.unknown.iter().all(known), "{:?}", resolved.unknown);
        assert!(!resolved.config.providers.llm.contains_key("aliases"));
    }
}
