use serde_json::Value;

use crate::tree::{Addition, Tree, nest};
use crate::{Assignment, Error, Key, Layer, Resolved, older, read, text};

/// The prefix of environment variables for configuration.
const VARIABLE_PREFIX: &str = "JP_CFG_";

/// The layers of configuration. Later layers override earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    tree: Tree,
}

impl Layers {
    /// Makes layers that have only the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a TOML file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Syntax`] if the text isn't TOML.
    pub fn add_toml(&mut self, layer: Layer, text: &str) -> Result<(), Error> {
        let value = text::parse_toml(&layer, text)?;
        self.merge(layer, value);
        Ok(())
    }

    /// Adds a JSON object, such as a delta of a conversation.
    ///
    /// In [`Layer::Conversation`], changes of the attachments (`{"add": […], "remove": […]}`) are
    /// ignored, because the conversation itself applies them.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotATable`] if the value isn't an object.
    pub fn add_json(&mut self, layer: Layer, value: &Value) -> Result<(), Error> {
        if !value.is_object() {
            return Err(Error::NotATable { layer });
        }
        let mut value = value.clone();
        if layer == Layer::Conversation {
            older::drop_attachment_changes(&mut value);
        }
        self.merge(layer, value);
        Ok(())
    }

    /// Adds the environment variables that start with `JP_CFG_`, in order of their names.
    ///
    /// `JP_CFG_ASSISTANT__MODEL__ID` is `assistant.model.id`; the values are read as those of
    /// [`Assignment::Set`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Key`] for a name with an empty part.
    pub fn add_env(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), Error> {
        let mut variables: Vec<_> = variables
            .into_iter()
            .filter(|(name, _)| name.starts_with(VARIABLE_PREFIX))
            .collect();
        // The order of an environment is arbitrary, but the result must not be.
        variables.sort_unstable();
        for (variable, text) in variables {
            let key = variable_key(&variable)?;
            self.set(Layer::Environment { variable }, &key, &text);
        }
        Ok(())
    }

    /// Adds one assignment, of a `-c` argument or a flag.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAList`] for appending to something else, [`Error::FileNotLoaded`] for
    /// [`Assignment::File`]: the caller reads the file and calls [`Layers::add_toml`].
    pub fn add_assignment(&mut self, layer: Layer, assignment: &Assignment) -> Result<(), Error> {
        match assignment {
            Assignment::Set { key, text } => self.set(layer, key, text),
            Assignment::SetJson { key, value } => self.merge(layer, nest(key, value.clone())),
            Assignment::Append { key, text } => self.append(layer, key, text)?,
            Assignment::File(_) => return Err(Error::FileNotLoaded { layer }),
        }
        Ok(())
    }

    /// Returns true if an earlier layer has this alias of a model.
    #[must_use]
    pub fn has_alias(&self, name: &str) -> bool {
        self.tree
            .root
            .pointer("/providers/aliases")
            .is_some_and(|aliases| aliases.get(name).is_some())
    }

    /// Merges the layers into typed configuration.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] for a value that its key does not take, [`Error::UnknownKey`] for an
    /// unknown key of the environment or the command line.
    pub fn resolve(&self) -> Result<Resolved, Error> {
        let (config, unknown) = read::read(&self.tree)?;
        Resolved::new(config, &unknown, self.tree.origins.clone())
    }

    fn set(&mut self, layer: Layer, key: &Key, text: &str) {
        let value = text::guess(text);
        let is_guessed = !value.is_string();
        self.merge(layer, nest(key, value));
        // The key may take a string after all, such as the model `123`.
        if is_guessed {
            self.tree.texts.insert(key.clone(), text.to_owned());
        }
    }

    fn append(&mut self, layer: Layer, key: &Key, text: &str) -> Result<(), Error> {
        let addition = match text::guess(text) {
            Value::Array(values) => Addition { values, text: None },
            value => Addition {
                text: (!value.is_string()).then(|| text.to_owned()),
                values: vec![value],
            },
        };
        let index = self.tree.origins.add(layer.clone());
        self.tree
            .append(index, key, addition)
            .ok_or_else(|| Error::NotAList {
                key: key.clone(),
                layer,
            })
    }

    fn merge(&mut self, layer: Layer, mut value: Value) {
        let moved = older::modernise(&mut value, &self.tree.root);
        let index = self.tree.origins.add(layer);
        self.tree.merge(index, value);
        // After the merge, which marks all keys as written in today's form.
        for moved in moved {
            self.tree.origins.mark_older(moved.key, moved.older);
        }
    }
}

fn variable_key(variable: &str) -> Result<Key, Error> {
    let name = variable
        .strip_prefix(VARIABLE_PREFIX)
        .unwrap_or(variable)
        .to_lowercase();
    if name.split("__").any(str::is_empty) {
        return Err(Error::Key {
            text: variable.to_owned(),
        });
    }
    Ok(name.split("__").collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{AttachmentDeclaration, Config};

    fn workspace() -> Layer {
        Layer::Workspace {
            path: ".jp/config.toml".into(),
        }
    }

    fn user() -> Layer {
        Layer::User {
            path: "/home/me/.config/jp/config.toml".into(),
        }
    }

    fn argument(text: &str) -> Layer {
        Layer::Argument {
            text: text.to_owned(),
        }
    }

    fn with_arguments(toml: &str, arguments: &[&str]) -> Result<Resolved, Error> {
        let mut layers = Layers::new();
        layers.add_toml(workspace(), toml)?;
        for text in arguments {
            layers.add_assignment(argument(text), &Assignment::parse(text)?)?;
        }
        layers.resolve()
    }

    fn texts(resolved: &Resolved) -> Vec<&str> {
        let attachments = resolved.config.conversation.attachments.iter();
        attachments
            .map(|declaration| match declaration {
                AttachmentDeclaration::Text(text) => text.as_str(),
                AttachmentDeclaration::Table(table) => table.path.as_str(),
            })
            .collect()
    }

    #[test]
    fn refresh_survives_appended_attachments() {
        let notifying =
            "conversation.attachments = [{ type = 'file', path = 'a', refresh = 'notify' }]";
        let append = r#"conversation.attachments+=["file:b"]"#;
        for appended in [append, "conversation.attachments+=file:b"] {
            let resolved = with_arguments(notifying, &[appended]).unwrap();
            let attachments = &resolved.config.conversation.attachments;
            assert_eq!(
                attachments[0].refresh(),
                crate::Refresh::Notify,
                "{attachments:?}"
            );
            assert_eq!(attachments.len(), 2);
        }
    }

    #[test]
    fn each_later_layer_wins() {
        let key: Key = "assistant.model.id".parse().unwrap();
        let variable = "JP_CFG_ASSISTANT__MODEL__ID";
        let mut layers = Layers::new();
        let mut seen = Vec::new();
        let mut look = |layers: &Layers| {
            let resolved = layers.resolve().unwrap();
            let id = resolved.config.assistant.model.id.clone();
            seen.push((
                id.unwrap_or_default(),
                resolved.origins.layer(&key).to_string(),
            ));
        };

        look(&layers);
        layers
            .add_toml(workspace(), "assistant.model.id = 'a/1'")
            .unwrap();
        look(&layers);
        layers
            .add_toml(user(), "assistant.model.id = 'a/2'")
            .unwrap();
        look(&layers);
        let delta = json!({ "assistant": { "model": { "id": "a/3" } } });
        layers.add_json(Layer::Conversation, &delta).unwrap();
        look(&layers);
        layers
            .add_env([(variable.to_owned(), "a/4".to_owned())])
            .unwrap();
        look(&layers);
        let text = "assistant.model.id=a/5";
        layers
            .add_assignment(argument(text), &Assignment::parse(text).unwrap())
            .unwrap();
        look(&layers);
        let flag = Layer::Flag {
            name: "--model".into(),
        };
        layers
            .add_assignment(
                flag,
                &Assignment::Set {
                    key: key.clone(),
                    text: "a/6".into(),
                },
            )
            .unwrap();
        look(&layers);

        insta::assert_debug_snapshot!(seen, @r#"
        [
            (
                "",
                "default",
            ),
            (
                "a/1",
                ".jp/config.toml",
            ),
            (
                "a/2",
                "/home/me/.config/jp/config.toml",
            ),
            (
                "a/3",
                "conversation",
            ),
            (
                "a/4",
                "JP_CFG_ASSISTANT__MODEL__ID",
            ),
            (
                "a/5",
                "`-c assistant.model.id=a/5`",
            ),
            (
                "a/6",
                "--model",
            ),
        ]
        "#);
    }

    #[test]
    fn tables_merge_while_lists_replace() {
        let mut layers = Layers::new();
        let toml = "[conversation]\nattachments = ['a', 'b']\n[conversation.deduplication]\nmin_bytes = 1\ndiffs = false";
        layers.add_toml(workspace(), toml).unwrap();
        let toml =
            "[conversation]\nattachments = ['c']\n[conversation.deduplication]\nmin_bytes = 2";
        layers.add_toml(user(), toml).unwrap();

        let resolved = layers.resolve().unwrap();
        assert_eq!(texts(&resolved), ["c"]);
        assert_eq!(resolved.config.conversation.deduplication.min_bytes, 2);
        assert_eq!(
            resolved.origin("conversation.deduplication.min_bytes"),
            &user()
        );
        assert_eq!(
            resolved.origin("conversation.deduplication.diffs"),
            &workspace()
        );
        assert_eq!(
            resolved.origin("conversation.deduplication.ranges"),
            &Layer::Default
        );
    }

    #[test]
    fn null_restores_the_default() {
        let toml = "conversation.deduplication.enabled = false\nassistant.model.id = 'a/b'";
        let arguments = [
            "conversation.deduplication:=null",
            "assistant.model.id:=null",
        ];
        let resolved = with_arguments(toml, &arguments).unwrap();
        assert_eq!(resolved.config, Config::default());
        assert_eq!(
            resolved.origin("conversation.deduplication.enabled"),
            &Layer::Default
        );
    }

    #[test]
    fn appending_keeps_earlier_elements() {
        let arguments = [
            "conversation.attachments+=b c",
            "conversation.attachments+=2024",
            "conversation.attachments+=['d', { type = 'file', path = 'e' }]",
            "conversation.attachments+=true",
        ];
        let resolved = with_arguments("conversation.attachments = ['a']", &arguments).unwrap();
        assert_eq!(texts(&resolved), ["a", "b c", "2024", "d", "e", "true"]);
        assert_eq!(
            resolved.origin("conversation.attachments"),
            &argument(arguments[3])
        );
        assert_eq!(resolved.origin("conversation.attachments.0"), &workspace());
    }

    #[test]
    fn appending_needs_a_list_or_nothing() {
        let resolved = with_arguments("", &["conversation.attachments+=a"]).unwrap();
        assert_eq!(texts(&resolved), ["a"]);

        let error =
            with_arguments("assistant.model.id = 'a/b'", &["assistant.model.id+=c"]).unwrap_err();
        let message = "read configuration: assistant.model.id in `-c assistant.model.id+=c` is not a list to append to";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn text_is_read_as_the_type_of_its_key() {
        let arguments = [
            "conversation.deduplication.enabled=false",
            "conversation.attachment.max_files=7",
            "conversation.attachment.max_bytes=1000",
            "assistant.model.id=123",
            "assistant.system_prompt=[true]",
            "providers.aliases.x=0x10",
            "conversation.tools.*={ run = 'ask' }",
        ];
        let config = with_arguments("", &arguments).unwrap().config;
        assert!(!config.conversation.deduplication.enabled);
        assert_eq!(config.conversation.attachment.max_files, 7);
        assert_eq!(config.conversation.attachment.max_bytes.bytes(), 1000);
        assert_eq!(config.assistant.model.id.as_deref(), Some("123"));
        assert_eq!(config.assistant.system_prompt.as_deref(), Some("[true]"));
        assert_eq!(config.providers.aliases["x"], "0x10");
        assert_eq!(
            config.conversation.tools["*"].run,
            Some(crate::RunMode::Ask)
        );
    }

    #[test]
    fn only_prefixed_variables_are_read() {
        let variables = [
            (
                "JP_CFG_PROVIDERS__LLM__OLLAMA__BASE_URL",
                "http://localhost:1",
            ),
            ("JP_CFG_CONVERSATION__DEDUPLICATION__ENABLED", "false"),
            ("JP_CFG_ASSISTANT__SYSTEM_PROMPT", "42"),
            ("HOME", "/home/me"),
        ];
        let mut layers = Layers::new();
        layers
            .add_env(variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
            .unwrap();
        let config = layers.resolve().unwrap().config;
        assert_eq!(
            config.providers.llm["ollama"].base_url.as_deref(),
            Some("http://localhost:1")
        );
        assert!(!config.conversation.deduplication.enabled);
        assert_eq!(config.assistant.system_prompt.as_deref(), Some("42"));
    }

    #[test]
    fn variable_with_an_empty_part_is_refused() {
        let error = Layers::new()
            .add_env([("JP_CFG_A____B".to_owned(), String::new())])
            .unwrap_err();
        assert_eq!(
            error,
            Error::Key {
                text: "JP_CFG_A____B".into()
            }
        );
    }

    #[test]
    fn older_forms_are_read() {
        let delta = json!({
            "assistant": {
                "model": { "id": { "provider": "google", "name": "x" } },
                "system_prompt": { "value": "Be brief.", "strategy": "replace" },
            },
            "conversation": { "attachments": { "value": ["a"], "strategy": "replace" } },
        });
        let mut layers = Layers::new();
        layers.add_json(Layer::Conversation, &delta).unwrap();
        let resolved = layers.resolve().unwrap();
        assert_eq!(
            resolved.config.assistant.model.id.as_deref(),
            Some("google/x")
        );
        assert_eq!(
            resolved.config.assistant.system_prompt.as_deref(),
            Some("Be brief.")
        );
        assert_eq!(texts(&resolved), ["a"]);
        assert_eq!(resolved.origin("assistant.model.id"), &Layer::Conversation);
    }

    #[test]
    fn attachment_changes_of_a_conversation_are_ignored() {
        let mut layers = Layers::new();
        layers
            .add_toml(workspace(), "conversation.attachments = ['a']")
            .unwrap();
        let delta = json!({ "conversation": { "attachments": { "add": ["b"], "remove": ["a"] } } });
        layers.add_json(Layer::Conversation, &delta).unwrap();
        assert_eq!(texts(&layers.resolve().unwrap()), ["a"]);
    }

    #[test]
    fn layers_without_a_table_are_refused() {
        let mut layers = Layers::new();
        let error = layers
            .add_json(Layer::Conversation, &json!([]))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "read configuration: conversation is not a table"
        );

        let error = layers
            .add_assignment(argument("x.toml"), &Assignment::File("x.toml".into()))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "read configuration: `-c x.toml` names a file that was not loaded"
        );
    }
}
