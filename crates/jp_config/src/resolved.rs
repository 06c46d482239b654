use serde_json::Value;

use crate::tree::at;
use crate::{Config, Error, Key, Layer, Origins};

/// Configuration with the origin of each value.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The typed values.
    pub config: Config,
    /// The layer that set each key.
    pub origins: Origins,
    /// Unknown keys of files and the conversation, with the layer.
    pub unknown: Vec<(Key, Layer)>,
    /// `config` as JSON, for looking values up by key.
    values: Value,
}

/// One effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    /// Its key.
    pub key: Key,
    /// The value in effect; a list is one value.
    pub value: &'a Value,
    /// The layer that set it.
    pub layer: &'a Layer,
}

impl Resolved {
    pub(crate) fn new(config: Config, unknown: &[Key], origins: Origins) -> Result<Self, Error> {
        let unknown = unknown_in_layers(unknown, &origins)?;
        let values = serde_json::to_value(&config)
            .expect("configuration has text keys and no custom failures");
        Ok(Self {
            config,
            origins,
            unknown,
            values,
        })
    }

    /// Returns the effective value at `key`, which may be a table; `None` if nothing is set.
    ///
    /// The value is in today's form: a size as `"10MB"`, a model as `"provider/name"`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        at(&self.values, &key.parse().ok()?).filter(|value| !value.is_null())
    }

    /// Returns the layer that last wrote `key`, [`Layer::Default`] if none did.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Layer {
        key.parse()
            .map_or(&Layer::Default, |key| self.origins.layer(&key))
    }

    /// Returns every layer that wrote `key` or a key below it, in the order of the layers. There are
    /// none if only defaults apply.
    #[must_use]
    pub fn contributors(&self, key: &str) -> Vec<&Layer> {
        key.parse()
            .map_or_else(|_| Vec::new(), |key| self.origins.writers(&key))
    }

    /// Returns every effective value, defaults included, in the order of the types' fields.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        self.collect_entries(&Key::root(), &self.values, &mut entries);
        entries
    }

    fn collect_entries<'a>(&'a self, key: &Key, value: &'a Value, entries: &mut Vec<Entry<'a>>) {
        match value {
            Value::Null => {}
            Value::Object(table) => {
                for (name, value) in table {
                    self.collect_entries(&key.child(name.as_str()), value, entries);
                }
            }
            value => entries.push(Entry {
                key: key.clone(),
                value,
                layer: self.origins.layer(key),
            }),
        }
    }
}

/// Pairs each unknown key with the layers that set it. Returns an error if a layer refuses it.
fn unknown_in_layers(unknown: &[Key], origins: &Origins) -> Result<Vec<(Key, Layer)>, Error> {
    let mut reported = Vec::new();
    for key in unknown {
        for layer in origins.contributors(key) {
            if layer.refuses_unknown_keys() {
                return Err(Error::UnknownKey {
                    key: key.clone(),
                    layer: layer.clone(),
                });
            }
            reported.push((key.clone(), layer.clone()));
        }
    }
    Ok(reported)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Assignment, Layers};

    fn workspace() -> Layer {
        Layer::Workspace {
            path: ".jp/config.toml".into(),
        }
    }

    fn resolve(toml: &str) -> Resolved {
        let mut layers = Layers::new();
        layers.add_toml(workspace(), toml).unwrap();
        layers.resolve().unwrap()
    }

    fn shown(resolved: &Resolved) -> String {
        let line =
            |entry: Entry<'_>| format!("{} = {} ({})\n", entry.key, entry.value, entry.layer);
        resolved.entries().into_iter().map(line).collect()
    }

    #[test]
    fn defaults_are_entries_too() {
        insta::assert_snapshot!(shown(&resolve("")), @r#"
        conversation.attachments = [] (default)
        conversation.attachment.max_bytes = "10MB" (default)
        conversation.attachment.max_total_bytes = "200MB" (default)
        conversation.attachment.max_files = 20000 (default)
        conversation.attachment.timeout_secs = 60 (default)
        conversation.attachment.secrets = "off" (default)
        conversation.deduplication.enabled = true (default)
        conversation.deduplication.min_bytes = 300 (default)
        conversation.deduplication.lookback_turns = 30 (default)
        conversation.deduplication.ranges = true (default)
        conversation.deduplication.diffs = true (default)
        conversation.superseded.policy = "when-cold" (default)
        conversation.superseded.min_tokens = 1000 (default)
        conversation.read_only_paths = [] (default)
        "#);
    }

    #[test]
    fn entries_have_todays_form() {
        let resolved = resolve(
            "conversation.attachment.max_bytes = 5_000_000
            conversation.tools.'*'.run = 'ask'
            assistant.model.id = { provider = 'google', name = 'x' }
            providers.llm.openai.api_key_command = ['pass', 'openai']",
        );
        let lines = shown(&resolved);
        let set: Vec<&str> = lines
            .lines()
            .filter(|line| !line.ends_with("(default)"))
            .collect();
        insta::assert_debug_snapshot!(set, @r#"
        [
            "assistant.model.id = \"google/x\" (.jp/config.toml)",
            "providers.llm.openai.api_key_command = [\"pass\",\"openai\"] (.jp/config.toml)",
            "conversation.attachment.max_bytes = \"5MB\" (.jp/config.toml)",
            "conversation.tools.'*'.run = \"ask\" (.jp/config.toml)",
        ]
        "#);
    }

    #[test]
    fn value_is_found_by_key() {
        let resolved = resolve("assistant.model.id = 'a/b'\nconversation.tools.'*'.run = 'ask'");
        assert_eq!(
            resolved.get("assistant.model"),
            Some(&json!({ "id": "a/b" }))
        );
        assert_eq!(
            resolved.get("conversation.tools.'*'.run"),
            Some(&json!("ask"))
        );
        assert_eq!(
            resolved.get("conversation.attachment.max_bytes"),
            Some(&json!("10MB"))
        );
        let absent =
            ["assistant.system_prompt", "no.such", "not a..key"].map(|key| resolved.get(key));
        assert_eq!(absent, [None; 3]);
    }

    #[test]
    fn unknown_keys_of_stored_layers_are_reported() {
        let mut layers = Layers::new();
        layers
            .add_toml(
                workspace(),
                "style.code.color = true\nproviders.mcp.x.new = 1",
            )
            .unwrap();
        let delta = json!({
            "style": { "code": { "width": 3 } },
            "assistant": { "model": { "parameters": {} } },
            "conversation": { "attachments": [{ "type": "file", "path": "a", "colour": "red" }] },
        });
        layers.add_json(Layer::Conversation, &delta).unwrap();
        layers.add_json(Layer::Conversation, &delta).unwrap();

        let unknown = layers.resolve().unwrap().unknown;
        let unknown: Vec<_> = unknown
            .iter()
            .map(|(key, layer)| format!("{key} ({layer})"))
            .collect();
        insta::assert_debug_snapshot!(unknown, @r#"
        [
            "style (.jp/config.toml)",
            "style (conversation)",
            "providers.mcp.x.new (.jp/config.toml)",
            "assistant.model.parameters (conversation)",
            "conversation.attachments.0.colour (conversation)",
        ]
        "#);
    }

    #[test]
    fn unknown_keys_of_an_mcp_server_are_reported() {
        let resolved =
            resolve("[providers.mcp.docs]\ncommand = 'my-server'\ncomand = 'x'\nenv = { A = 'b' }");
        let unknown: Vec<_> = resolved
            .unknown
            .iter()
            .map(|(key, layer)| format!("{key} ({layer})"))
            .collect();
        assert_eq!(
            unknown,
            [
                "providers.mcp.docs.comand (.jp/config.toml)",
                "providers.mcp.docs.env (.jp/config.toml)"
            ]
        );

        let text = "providers.mcp.docs.comand=hush";
        let mut layers = Layers::new();
        layers
            .add_assignment(
                Layer::Argument { text: text.into() },
                &Assignment::parse(text).unwrap(),
            )
            .unwrap();
        let error = layers.resolve().unwrap_err().to_string();
        assert_eq!(
            error,
            "read configuration: unknown key providers.mcp.docs.comand in `-c providers.mcp.docs.comand=…`"
        );
    }

    #[test]
    fn entries_of_an_mcp_server_show_only_set_keys() {
        let mut layers = Layers::new();
        layers
            .add_toml(
                workspace(),
                "[providers.mcp.docs]\ncommand = 'a --b'\narguments = ['c']",
            )
            .unwrap();
        layers
            .add_toml(
                Layer::User {
                    path: "u.toml".into(),
                },
                "providers.mcp.docs.timeout_secs = 5",
            )
            .unwrap();
        let variable = (
            "JP_CFG_PROVIDERS__MCP__DOCS__OPTIONAL".to_owned(),
            "false".to_owned(),
        );
        layers.add_env([variable]).unwrap();
        let lines = shown(&layers.resolve().unwrap());
        let set: Vec<&str> = lines
            .lines()
            .filter(|line| line.starts_with("providers.mcp"))
            .collect();
        insta::assert_snapshot!(set.join("\n"), @r#"
        providers.mcp.docs.command = "a --b" (.jp/config.toml)
        providers.mcp.docs.arguments = ["c"] (.jp/config.toml)
        providers.mcp.docs.timeout_secs = 5 (u.toml)
        providers.mcp.docs.optional = false (JP_CFG_PROVIDERS__MCP__DOCS__OPTIONAL)
        "#);
    }

    #[test]
    fn unknown_keys_of_this_command_are_errors() {
        let text = "conversation.atachment.max_bytes=5";
        let mut layers = Layers::new();
        layers
            .add_toml(workspace(), "style.code.color = true")
            .unwrap();
        let mut arguments = layers.clone();
        arguments
            .add_assignment(
                Layer::Argument { text: text.into() },
                &Assignment::parse(text).unwrap(),
            )
            .unwrap();
        layers
            .add_env([("JP_CFG_STYLE__CODE__COLOR".to_owned(), "false".to_owned())])
            .unwrap();

        let errors = [arguments, layers].map(|layers| layers.resolve().unwrap_err().to_string());
        insta::assert_debug_snapshot!(errors, @r#"
        [
            "read configuration: unknown key conversation.atachment in `-c conversation.atachment.max_bytes=…`",
            "read configuration: unknown key style in JP_CFG_STYLE__CODE__COLOR",
        ]
        "#);
    }
}
