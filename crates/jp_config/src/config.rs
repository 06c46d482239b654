use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::{AttachmentDeclaration, ByteSize, ToolSettings};

/// The whole configuration, with the defaults where nobody set a value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Config {
    /// Whom the person talks to.
    pub assistant: Assistant,
    /// Where models and tools are reached.
    pub providers: Providers,
    /// How conversations work.
    pub conversation: Conversation,
}

/// `assistant`: whom the person talks to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Assistant {
    /// The model that answers.
    pub model: Model,
    /// What the model is told before the conversation.
    pub system_prompt: Option<String>,
}

/// `assistant.model`: the model that answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Model {
    /// `provider/name`, or one of [`Providers::aliases`].
    pub id: Option<String>,
}

/// `providers`: where models and tools are reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Providers {
    /// Servers of models, by provider: `anthropic`, `openai`, `ollama`, …
    pub llm: BTreeMap<String, LlmProvider>,
    /// Short names of models, each for a `provider/name`.
    ///
    /// Older configuration has them at `providers.llm.aliases`.
    pub aliases: BTreeMap<String, String>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpServer>,
}

/// `providers.mcp.NAME`: an MCP server, a program or an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct McpServer {
    /// How it is reached; where nothing is said, by what is set of `command` and `url`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<McpKind>,
    /// The program of a `stdio` server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSetting>,
    /// What follows the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Variables that the program gets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Names of variables that the program gets though they look like they hold keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// The endpoint of an `http` server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The variable of the environment that holds the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The revision of MCP to speak; found out where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How long it may take until it is ready; 30 s where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_timeout_secs: Option<u64>,
    /// How long a request may go without a sign of life; 60 s where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// Whether models are offered its tools; they are where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether a query goes on without it where it fails; it does where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpKind {
    /// A program, on its stdin and stdout.
    Stdio,
    /// An endpoint of Streamable HTTP.
    Http,
}

/// `providers.llm.NAME`: a server of models; what is not set is the provider's to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct LlmProvider {
    /// The server's root, such as `http://127.0.0.1:8080`.
    pub base_url: Option<String>,
    /// The variable of the environment that holds the key.
    pub api_key_env: Option<String>,
    /// The command that prints the key.
    pub api_key_command: Option<CommandSetting>,
    /// How long the server may be silent within an answer.
    pub idle_timeout_secs: Option<u64>,
    /// How large one answer may be.
    pub max_response_bytes: Option<ByteSize>,
    /// What is known of its models, by name, where the provider doesn't say it or is wrong.
    pub models: BTreeMap<String, ModelSettings>,
}

/// `providers.llm.NAME.models.MODEL`: what a model takes; what is not set is found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct ModelSettings {
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether it takes PDF documents.
    pub pdf: Option<bool>,
    /// Whether it takes office documents and other files.
    pub files: Option<bool>,
    /// Whether it takes audio.
    pub audio: Option<bool>,
    /// Whether it takes images and documents in the results of tools.
    pub binary_results: Option<bool>,
    /// Whether its answers can be made to fit a JSON Schema.
    pub schema: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// How many tokens a request may have.
    pub context_tokens: Option<u64>,
    /// How many tokens an answer may have.
    pub max_output_tokens: Option<u64>,
}

/// A command: a line, or a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CommandSetting {
    /// A command line: `"pass show anthropic"`.
    Line(String),
    /// A program and its arguments; never empty.
    Words(Vec<String>),
}

/// `conversation`: how conversations work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Conversation {
    /// What every conversation has attached.
    pub attachments: Vec<AttachmentDeclaration>,
    /// Limits and safety of what is attached.
    pub attachment: AttachmentSettings,
    /// How content that was already delivered is referred to.
    pub deduplication: Deduplication,
    /// What happens to older versions of a resource.
    pub superseded: Superseded,
    /// Tools by name, with `*` for what holds for all of them.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Paths that tools may not write to, as lines of a `.gitignore`; `.jp/` and `.git/` are closed as it is.
    pub read_only_paths: Vec<String>,
}

/// `conversation.attachment`: limits and safety of what is attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct AttachmentSettings {
    /// How large one resource may be.
    pub max_bytes: ByteSize,
    /// How large all resources of one command may be together.
    pub max_total_bytes: ByteSize,
    /// How many files one command may attach.
    pub max_files: u64,
    /// How long one page or command may take.
    pub timeout_secs: u64,
    /// What happens when content looks like it holds a secret.
    pub secrets: Secrets,
    /// The variable or the file outside the workspace that holds the key for `external:` hashes.
    pub external_key: Option<String>,
}

/// What happens when attached content looks like it holds a secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secrets {
    /// Nobody looks.
    #[default]
    Off,
    /// A warning, and it is sent.
    Warn,
    /// Nothing is sent.
    Refuse,
}

/// `conversation.deduplication`: how content that was already delivered is referred to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Deduplication {
    /// Whether it is referred to at all.
    pub enabled: bool,
    /// Below so many bytes content is sent again.
    pub min_bytes: u64,
    /// How many turns back a reference may point.
    pub lookback_turns: u64,
    /// Whether a range of lines inside delivered content becomes a reference.
    pub ranges: bool,
    /// Whether changed content is sent as a diff where that is smaller.
    pub diffs: bool,
}

/// `conversation.superseded`: what happens to older versions of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Superseded {
    /// When they are dropped from what is sent.
    pub policy: SupersededPolicy,
    /// How many tokens dropping must save.
    pub min_tokens: u64,
}

/// When superseded content is dropped from what is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupersededPolicy {
    /// When the prompt cache has gone cold, so that it costs nothing.
    #[default]
    WhenCold,
    /// Never.
    Keep,
    /// At once, at the cost of the prompt cache.
    Always,
}

impl Default for AttachmentSettings {
    fn default() -> Self {
        Self {
            max_bytes: ByteSize::new(10_000_000),
            max_total_bytes: ByteSize::new(200_000_000),
            max_files: 20_000,
            timeout_secs: 60,
            secrets: Secrets::default(),
            external_key: None,
        }
    }
}

impl Default for Deduplication {
    fn default() -> Self {
        Self {
            enabled: true,
            min_bytes: 300,
            lookback_turns: 30,
            ranges: true,
            diffs: true,
        }
    }
}

impl Default for Superseded {
    fn default() -> Self {
        Self {
            policy: SupersededPolicy::default(),
            min_tokens: 1000,
        }
    }
}

impl<'de> Deserialize<'de> for CommandSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = CommandSetting;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a command line, or a list of a program and its arguments")
    }

    fn visit_str<E: de::Error>(self, line: &str) -> Result<CommandSetting, E> {
        Ok(CommandSetting::Line(line.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CommandSetting, A::Error> {
        let words = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        if words.is_empty() {
            return Err(de::Error::invalid_length(0, &self));
        }
        Ok(CommandSetting::Words(words))
    }
}
