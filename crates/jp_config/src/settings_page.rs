//! Compares `docs/settings.md`, which `jp help settings` prints, with the keys that exist.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::config::ModelSettings;
use crate::{
    Action, Assistant, AttachmentDeclaration, AttachmentSettings, AttachmentTable, CommandSetting,
    Config, Conversation, Deduplication, Layer, Layers, LlmProvider, McpKind, McpServer, Model,
    Providers, QuestionSettings, QuestionTarget, Refresh, RunMode, Secrets, Superseded,
    SupersededPolicy, ToolSettings,
};

const PAGE: &str = include_str!("../../../docs/settings.md");

fn one<T>(name: &str, value: T) -> BTreeMap<String, T> {
    BTreeMap::from([(name.to_owned(), value)])
}

fn word() -> String {
    "word".to_owned()
}

/// Returns a configuration in which every key has a value.
///
/// It names every field of every struct, without `..`: a new field doesn't compile until it is here.
fn full() -> Config {
    Config {
        assistant: Assistant {
            model: Model { id: Some(word()) },
            system_prompt: Some(word()),
        },
        providers: Providers {
            llm: one("NAME", full_provider()),
            aliases: one("NAME", word()),
            mcp: one("NAME", full_server()),
        },
        conversation: full_conversation(),
    }
}

fn full_provider() -> LlmProvider {
    let model = ModelSettings {
        images: Some(true),
        pdf: Some(true),
        files: Some(true),
        audio: Some(true),
        binary_results: Some(true),
        schema: Some(true),
        tools: Some(true),
        context_tokens: Some(1),
        max_output_tokens: Some(1),
    };
    LlmProvider {
        base_url: Some(word()),
        api_key_env: Some(word()),
        api_key_command: Some(CommandSetting::Line(word())),
        idle_timeout_secs: Some(1),
        max_response_bytes: Some(crate::ByteSize::new(1)),
        models: one("MODEL", model),
    }
}

fn full_server() -> McpServer {
    McpServer {
        kind: Some(McpKind::Stdio),
        command: Some(CommandSetting::Line(word())),
        arguments: vec![word()],
        environment: one("VARIABLE", word()),
        variables: vec![word()],
        url: Some(word()),
        headers: one("HEADER", word()),
        token_env: Some(word()),
        revision: Some(word()),
        startup_timeout_secs: Some(1),
        timeout_secs: Some(1),
        tools: Some(true),
        optional: Some(true),
    }
}

fn full_conversation() -> Conversation {
    let attachment = AttachmentTable {
        kind: word(),
        path: word(),
        params: one("NAME", vec![word()]),
        refresh: Some(Refresh::Notify),
        description: Some(word()),
    };
    Conversation {
        attachments: vec![AttachmentDeclaration::Table(attachment)],
        attachment: AttachmentSettings {
            max_bytes: crate::ByteSize::new(1),
            max_total_bytes: crate::ByteSize::new(1),
            max_files: 1,
            timeout_secs: 1,
            secrets: Secrets::Off,
            external_key: Some(word()),
        },
        deduplication: Deduplication {
            enabled: true,
            min_bytes: 1,
            lookback_turns: 1,
            ranges: true,
            diffs: true,
        },
        superseded: Superseded {
            policy: SupersededPolicy::Keep,
            min_tokens: 1,
        },
        tools: one("NAME", full_tool()),
        read_only_paths: vec![word()],
    }
}

fn full_tool() -> ToolSettings {
    let question = QuestionSettings {
        target: QuestionTarget::User,
        answer: Some(json!("word")),
    };
    let table = |name: &str| Map::from_iter([(name.to_owned(), json!("word"))]);
    ToolSettings {
        enable: Some(true),
        run: Some(RunMode::Ask),
        source: Some(word()),
        command: Some(CommandSetting::Line(word())),
        summary: Some(word()),
        description: Some(word()),
        parameters: table("PARAMETER"),
        questions: one("ID", question),
        options: table("OPTION"),
        timeout_secs: Some(1),
        max_output_bytes: Some(crate::ByteSize::new(1)),
        deduplicate: Some(true),
        stateful: Some(true),
        actions: Some(vec![Action::Spawn]),
        keep: Some(true),
    }
}

/// Collects the keys of all values; an element of a list that is a table is `key[]`.
fn collect_keys(key: &str, value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let dot = if key.is_empty() { "" } else { "." };
                collect_keys(&format!("{key}{dot}{name}"), value, keys);
            }
        }
        Value::Array(list) => {
            keys.insert(key.to_owned());
            let tables = list.iter().filter(|element| element.is_object());
            tables.for_each(|table| collect_keys(&format!("{key}[]"), table, keys));
        }
        _ => _ = keys.insert(key.to_owned()),
    }
}

/// Returns each entry of the page, with its key: `` - `KEY` (TYPE, default `VALUE`): … ``.
fn entries() -> Vec<(String, String)> {
    let unwrapped = PAGE.replace("\n  ", " ");
    let entries = unwrapped
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("` ("));
    entries
        .map(|(key, rest)| (key.to_owned(), rest.to_owned()))
        .filter(|(key, _)| key.contains('.'))
        .collect()
}

#[test]
fn page_lists_exactly_the_keys_that_exist() {
    let mut keys = BTreeSet::new();
    let full = serde_json::to_value(full()).unwrap();
    collect_keys("", &full, &mut keys);
    assert!(keys.len() > 60, "{keys:?}");
    let page: BTreeSet<_> = entries().into_iter().map(|(key, _)| key).collect();
    let missing: Vec<_> = keys.difference(&page).collect();
    let unknown: Vec<_> = page.difference(&keys).collect();
    assert_eq!((missing, unknown), (Vec::new(), Vec::new()));
}

#[test]
fn examples_of_the_page_have_no_unknown_key() {
    let blocks = PAGE.split("```toml\n").skip(1);
    let examples: Vec<_> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() > 5);
    for example in examples {
        let mut layers = Layers::new();
        let layer = Layer::User {
            path: "settings.md".into(),
        };
        layers.add_toml(layer, example).unwrap();
        assert_eq!(layers.resolve().unwrap().unknown, [], "{example}");
    }
}

#[test]
fn defaults_of_the_page_are_those_of_the_code() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let mut compared = 0;
    for (key, rest) in entries() {
        let pointer = format!("/{}", key.replace('.', "/"));
        let value = defaults.pointer(&pointer).filter(|value| !value.is_null());
        if let Some(value) = value {
            let default = rest.split_once("default ").unwrap().1;
            let default = default.split("):").next().unwrap().trim_matches('`');
            assert_eq!(default, value.to_string(), "{key}");
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}
