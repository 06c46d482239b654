//! Reads the merged layers into the typed [`Config`].

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::ModelSettings;
use crate::secret::without_secrets;
use crate::tree::{Tree, at, at_mut};
use crate::{
    Cause, Config, Conversation, Error, Key, LlmProvider, McpServer, Providers, QuestionSettings,
    ToolSettings,
};

/// The length of a value in an error, in characters: one line of a terminal.
const SHOWN_CHARACTERS: usize = 60;

/// Reads the merged layers; returns the configuration and the unknown keys.
///
/// If a value was guessed from text and has the wrong type, the text is tried as a string.
pub(crate) fn read(tree: &Tree) -> Result<(Config, Vec<Key>), Error> {
    let (mut root, mut texts) = (tree.root.clone(), tree.texts.clone());
    // Each round removes a text, so the loop ends.
    loop {
        let rejected = match attempt(&root) {
            Ok(read) => return Ok(read),
            Err(rejected) => rejected,
        };
        let text = texts
            .remove(&rejected.key)
            .filter(|_| rejected.is_of_wrong_type());
        let (Some(text), Some(value)) = (text, at_mut(&mut root, &rejected.key)) else {
            return Err(rejected.into_error(tree, &root));
        };
        *value = Value::String(text);
    }
}

fn attempt(root: &Value) -> Result<(Config, Vec<Key>), Rejected> {
    let shape = serde_json::to_value(shape()).expect("a configuration is JSON");
    if let Some(key) = list_for_table(&shape, root, &Key::root()) {
        return Err(Rejected {
            key,
            message: "invalid type: sequence, expected a map".to_owned(),
        });
    }
    let mut unknown = Vec::new();
    let mut record = |path: serde_ignored::Path<'_>| unknown.push(ignored_key(&path));
    let deserializer = serde_ignored::Deserializer::new(root, &mut record);
    match serde_path_to_error::deserialize(deserializer) {
        Ok(config) => Ok((config, unknown)),
        Err(error) => Err(Rejected {
            key: rejected_key(error.path()),
            message: error.inner().to_string(),
        }),
    }
}

/// The name of an entry in [`shape`] if users choose the names.
const ANY_NAME: &str = "*";

/// Returns a configuration with every possible table.
fn shape() -> Config {
    fn any<T>(table: T) -> BTreeMap<String, T> {
        BTreeMap::from([(ANY_NAME.to_owned(), table)])
    }
    let provider = LlmProvider {
        models: any(ModelSettings::default()),
        ..LlmProvider::default()
    };
    let tool = ToolSettings {
        questions: any(QuestionSettings::default()),
        ..ToolSettings::default()
    };
    Config {
        providers: Providers {
            llm: any(provider),
            mcp: any(McpServer::default()),
            ..Providers::default()
        },
        conversation: Conversation {
            tools: any(tool),
            ..Conversation::default()
        },
        ..Config::default()
    }
}

/// Finds a list in the place of a table. serde would use its elements as the table's values, in order.
fn list_for_table(shape: &Value, value: &Value, key: &Key) -> Option<Key> {
    match (shape, value) {
        (Value::Object(_), Value::Array(_)) => Some(key.clone()),
        (Value::Object(shapes), Value::Object(values)) => {
            values.iter().find_map(|(name, value)| {
                let shape = shapes.get(name).or_else(|| shapes.get(ANY_NAME))?;
                list_for_table(shape, value, &key.child(name.as_str()))
            })
        }
        _ => None,
    }
}

/// A value that its key doesn't accept.
struct Rejected {
    key: Key,
    message: String,
}

impl Rejected {
    /// Returns true if the value has the wrong type. A wrong value or a missing key don't count.
    fn is_of_wrong_type(&self) -> bool {
        self.message.starts_with("invalid type: ")
    }

    fn into_error(self, tree: &Tree, root: &Value) -> Error {
        Error::Invalid {
            value: shorten(&without_secrets(
                &self.key,
                at(root, &self.key).unwrap_or(&Value::Null),
            )),
            layer: tree.origins.covering_layer(&self.key).clone(),
            source: Cause(expectation(&self.message)),
            key: self.key,
        }
    }
}

fn rejected_key(path: &serde_path_to_error::Path) -> Key {
    use serde_path_to_error::Segment;
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

fn ignored_key(path: &serde_ignored::Path<'_>) -> Key {
    use serde_ignored::Path;
    match path {
        Path::Root => Key::root(),
        Path::Seq { parent, index } => ignored_key(parent).child(index.to_string()),
        Path::Map { parent, key } => ignored_key(parent).child(key.as_str()),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => ignored_key(parent),
    }
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the expectation in serde's message, in TOML's terms.
///
/// The start of the message repeats the value, which the error already shows.
fn expectation(message: &str) -> String {
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("expected a key {field}");
    }
    let Some((_, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "u64" => "a whole number, 0 or more",
        "a boolean" => "true or false",
        "a map" => "a table",
        "a sequence" => "a list",
        other => other,
    };
    format!("expected {expected}")
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use crate::{Assignment, Error, Layer, Layers};

    fn chain(error: &Error) -> String {
        format!("failed to {error}: {}", error.source().unwrap())
    }

    fn file_error(toml: &str) -> String {
        let mut layers = Layers::new();
        layers
            .add_toml(
                Layer::Workspace {
                    path: ".jp/config.toml".into(),
                },
                toml,
            )
            .unwrap();
        chain(&layers.resolve().unwrap_err())
    }

    fn argument_error(text: &str) -> String {
        let mut layers = Layers::new();
        let layer = Layer::Argument { text: text.into() };
        layers
            .add_assignment(layer, &Assignment::parse(text).unwrap())
            .unwrap();
        chain(&layers.resolve().unwrap_err())
    }

    #[test]
    fn error_names_the_key_with_its_value() {
        let errors = [
            "conversation.attachment.max_bytes = '10 parsecs'",
            "conversation.deduplication.min_bytes = -1",
            "conversation.deduplication.enabled = 'perhaps'",
            "conversation.superseded.policy = 'never'",
            "conversation.attachments = ['a', { type = 'cmd' }]",
            "conversation.attachments = 'a'",
            "assistant = 'claude'",
            "assistant = [[], 'claude']",
            "assistant.model = ['claude']",
            "assistant.model.id.name = 'x'",
            "providers.llm.anthropic.api_key_command = []",
            "providers.mcp = 1",
        ]
        .map(file_error);
        insta::assert_debug_snapshot!(errors, @r#"
        [
            "failed to read configuration: conversation.attachment.max_bytes = \"10 parsecs\" in .jp/config.toml: expected a size such as \"10MB\"",
            "failed to read configuration: conversation.deduplication.min_bytes = -1 in .jp/config.toml: expected a whole number, 0 or more",
            "failed to read configuration: conversation.deduplication.enabled = \"perhaps\" in .jp/config.toml: expected true or false",
            "failed to read configuration: conversation.superseded.policy = \"never\" in .jp/config.toml: expected one of `when-cold`, `keep`, `always`",
            "failed to read configuration: conversation.attachments.1 = {\"type\":\"cmd\"} in .jp/config.toml: expected a key `path`",
            "failed to read configuration: conversation.attachments = \"a\" in .jp/config.toml: expected a list",
            "failed to read configuration: assistant = \"claude\" in .jp/config.toml: expected a table",
            "failed to read configuration: assistant = [[],\"claude\"] in .jp/config.toml: expected a table",
            "failed to read configuration: assistant.model = [\"claude\"] in .jp/config.toml: expected a table",
            "failed to read configuration: assistant.model.id = {\"name\":\"x\"} in .jp/config.toml: expected a string",
            "failed to read configuration: providers.llm.anthropic.api_key_command = [] in .jp/config.toml: expected a command line, or a list of a program and its arguments",
            "failed to read configuration: providers.mcp = 1 in .jp/config.toml: expected a table",
        ]
        "#);
    }

    #[test]
    fn list_in_the_place_of_a_table_is_refused() {
        for key in [
            "providers.llm.y",
            "providers.llm.y.models.m",
            "providers.mcp.x",
            "conversation.tools.z",
            "conversation.tools.'*'",
            "conversation.tools.z.questions.q",
        ] {
            let message = file_error(&format!("{key} = []"));
            assert!(
                message.ends_with(" = [] in .jp/config.toml: expected a table"),
                "{message}"
            );
        }
        let declared = file_error("conversation.attachments = [['file', 'a']]");
        assert!(
            declared.ends_with("a table with `type` and `path`"),
            "{declared}"
        );
        let mut layers = Layers::new();
        let toml = "
            conversation.attachments = ['a', { type = 'file', path = 'b' }]
            conversation.tools.z.command = ['a', 'b']
            conversation.tools.z.actions = []
            conversation.tools.z.parameters.x = { enum = ['a'] }
            conversation.tools.z.questions.q.answer = ['a']
            conversation.tools.z.options.o = [{}]
            providers.mcp.x = { command = ['a'], arguments = ['b'], variables = ['C'] }
        ";
        layers
            .add_toml(
                Layer::Workspace {
                    path: ".jp/config.toml".into(),
                },
                toml,
            )
            .unwrap();
        assert_eq!(layers.resolve().unwrap().unknown, []);
    }

    #[test]
    fn error_names_the_mistake_in_an_mcp_server() {
        let errors = [
            "providers.mcp.docs = 'my-server'",
            "providers.mcp.docs.type = 'sse'",
            "providers.mcp.docs.command = 1",
            "providers.mcp.docs.arguments = '--flag'",
            "providers.mcp.docs.environment = { A = 1 }",
            "providers.mcp.docs.variables = ['A', 1]",
            "providers.mcp.docs.url = []",
            "providers.mcp.docs.headers.authorization = ['a']",
            "providers.mcp.docs.token_env = 1",
            "providers.mcp.docs.startup_timeout_secs = '5 s'",
            "providers.mcp.docs.timeout_secs = -1",
            "providers.mcp.docs.optional = 'no'",
        ]
        .map(file_error);
        insta::assert_snapshot!(errors.join("\n"), @r#"
        failed to read configuration: providers.mcp.docs = "my-server" in .jp/config.toml: expected a table
        failed to read configuration: providers.mcp.docs.type = "sse" in .jp/config.toml: expected `stdio` or `http`
        failed to read configuration: providers.mcp.docs.command = 1 in .jp/config.toml: expected a command line, or a list of a program and its arguments
        failed to read configuration: providers.mcp.docs.arguments = "--flag" in .jp/config.toml: expected a list
        failed to read configuration: providers.mcp.docs.environment.A = "…" in .jp/config.toml: expected a string
        failed to read configuration: providers.mcp.docs.variables.1 = 1 in .jp/config.toml: expected a string
        failed to read configuration: providers.mcp.docs.url = [] in .jp/config.toml: expected a string
        failed to read configuration: providers.mcp.docs.headers.authorization = ["…"] in .jp/config.toml: expected a string
        failed to read configuration: providers.mcp.docs.token_env = 1 in .jp/config.toml: expected a string
        failed to read configuration: providers.mcp.docs.startup_timeout_secs = "5 s" in .jp/config.toml: expected a whole number, 0 or more
        failed to read configuration: providers.mcp.docs.timeout_secs = -1 in .jp/config.toml: expected a whole number, 0 or more
        failed to read configuration: providers.mcp.docs.optional = "no" in .jp/config.toml: expected true or false
        "#);
        let argument = argument_error("providers.mcp.docs.timeout_secs=soon");
        insta::assert_snapshot!(argument, @r#"failed to read configuration: providers.mcp.docs.timeout_secs = "soon" in `-c providers.mcp.docs.timeout_secs=soon`: expected a whole number, 0 or more"#);
    }

    #[test]
    fn error_names_the_argument_or_variable() {
        let mut layers = Layers::new();
        let variable = (
            "JP_CFG_CONVERSATION__ATTACHMENT__SECRETS".to_owned(),
            "true".to_owned(),
        );
        layers.add_env([variable]).unwrap();
        let errors = [
            argument_error("conversation.attachment.max_files=many"),
            argument_error("providers.llm.ollama={ base_url = 3 }"),
            argument_error("conversation.attachments+={ path = 'a' }"),
            argument_error("conversation.attachment.max_files=[1]"),
            chain(&layers.resolve().unwrap_err()),
        ];
        insta::assert_debug_snapshot!(errors, @r#"
        [
            "failed to read configuration: conversation.attachment.max_files = \"many\" in `-c conversation.attachment.max_files=many`: expected a whole number, 0 or more",
            "failed to read configuration: providers.llm.ollama.base_url = 3 in `-c providers.llm.ollama={ base_url = 3 }`: expected a string",
            "failed to read configuration: conversation.attachments.0 = {\"path\":\"a\"} in `-c conversation.attachments+={ path = 'a' }`: expected a key `type`",
            "failed to read configuration: conversation.attachment.max_files = \"[1]\" in `-c conversation.attachment.max_files=[1]`: expected a whole number, 0 or more",
            "failed to read configuration: conversation.attachment.secrets = \"true\" in JP_CFG_CONVERSATION__ATTACHMENT__SECRETS: expected one of `off`, `warn`, `refuse`",
        ]
        "#);
    }

    #[test]
    fn error_names_the_layer_of_a_list_element() {
        let mut layers = Layers::new();
        layers
            .add_toml(
                Layer::User {
                    path: "u.toml".into(),
                },
                "conversation.attachments = [[]]",
            )
            .unwrap();
        let text = "conversation.attachments+=a";
        let layer = Layer::Argument { text: text.into() };
        layers
            .add_assignment(layer, &Assignment::parse(text).unwrap())
            .unwrap();
        insta::assert_snapshot!(chain(&layers.resolve().unwrap_err()), @r#"failed to read configuration: conversation.attachments.0 = [] in u.toml: expected a path, a URL, or a table with `type` and `path`"#);
    }

    #[test]
    fn long_value_is_shortened() {
        let message = file_error(&format!(
            "conversation.attachment.secrets = '{}'",
            "é".repeat(100)
        ));
        insta::assert_snapshot!(message, @r#"failed to read configuration: conversation.attachment.secrets = "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé… in .jp/config.toml: expected one of `off`, `warn`, `refuse`"#);
    }

    #[test]
    fn replaced_value_is_not_checked() {
        let mut layers = Layers::new();
        let layer = Layer::User {
            path: "u.toml".into(),
        };
        layers
            .add_toml(layer.clone(), "conversation.attachment.secrets = 5")
            .unwrap();
        layers
            .add_toml(layer, "conversation.attachment.secrets = 'warn'")
            .unwrap();
        assert!(layers.resolve().is_ok());
    }
}
