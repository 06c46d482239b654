use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::{AttachmentDeclaration, ByteSize, ToolSettings};

/// The whole configuration. Values that no layer set are defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Config {
    /// The model and its system prompt.
    pub assistant: Assistant,
    /// Model providers and MCP servers.
    pub providers: Providers,
    /// Attachments, tools and delivery.
    pub conversation: Conversation,
}

/// `assistant`: the model and its system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Assistant {
    /// The model that answers.
    pub model: Model,
    /// Instructions that precede the conversation in every request.
    pub system_prompt: Option<String>,
}

/// `assistant.model`: the model that answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Model {
    /// `provider/name`, or one of [`Providers::aliases`].
    pub id: Option<String>,
}

/// `providers`: model providers and MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Providers {
    /// Model providers by name: `anthropic`, `openai`, `ollama`, …
    pub llm: BTreeMap<String, LlmProvider>,
    /// Short names of models, each for a `provider/name`.
    ///
    /// Configuration of older versions has them at `providers.llm.aliases`.
    pub aliases: BTreeMap<String, String>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpServer>,
}

/// `providers.mcp.NAME`: an MCP server, a program or an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct McpServer {
    /// The transport; by default `stdio` if `command` is set and `http` if `url` is set.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<McpKind>,
    /// The program of a `stdio` server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSetting>,
    /// Arguments after those in `command`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Environment variables for the program.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Names of jp's environment variables that the program receives although they look like secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// The endpoint of an `http` server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The environment variable that contains the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The MCP revision; negotiated by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The time limit for starting, in seconds; 30 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_timeout_secs: Option<u64>,
    /// The time limit for a request without progress, in seconds; 60 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// Offers its tools to models; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Lets a query continue if the server fails; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// The transport of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpKind {
    /// A program that jp starts; messages use its stdin and stdout.
    Stdio,
    /// A Streamable HTTP endpoint.
    Http,
}

/// `providers.llm.NAME`: a model provider. Unset keys use the provider's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct LlmProvider {
    /// The root URL of the server, such as `http://127.0.0.1:8080`.
    pub base_url: Option<String>,
    /// The environment variable that contains the API key.
    pub api_key_env: Option<String>,
    /// The command that prints the API key.
    pub api_key_command: Option<CommandSetting>,
    /// The longest pause within an answer, in seconds.
    pub idle_timeout_secs: Option<u64>,
    /// The largest answer.
    pub max_response_bytes: Option<ByteSize>,
    /// Capabilities of models, by name. They override those that the provider reports.
    pub models: BTreeMap<String, ModelSettings>,
}

/// `providers.llm.NAME.models.MODEL`: the capabilities of a model. jp detects unset ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct ModelSettings {
    /// Accepts images.
    pub images: Option<bool>,
    /// Accepts PDF documents.
    pub pdf: Option<bool>,
    /// Accepts office documents and other files.
    pub files: Option<bool>,
    /// Accepts audio.
    pub audio: Option<bool>,
    /// Accepts images and documents in results of tools.
    pub binary_results: Option<bool>,
    /// Can match its answers to a JSON Schema.
    pub schema: Option<bool>,
    /// Calls tools.
    pub tools: Option<bool>,
    /// The largest request, in tokens.
    pub context_tokens: Option<u64>,
    /// The longest answer, in tokens.
    pub max_output_tokens: Option<u64>,
}

/// A command, which runs without a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CommandSetting {
    /// A command line: `"pass show anthropic"`.
    Line(String),
    /// A program and its arguments; never empty.
    Words(Vec<String>),
}

/// `conversation`: attachments, tools and delivery.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Conversation {
    /// Attachments of every conversation.
    pub attachments: Vec<AttachmentDeclaration>,
    /// Limits of attachments and checks for secrets.
    pub attachment: AttachmentSettings,
    /// The replacement of repeated content.
    pub deduplication: Deduplication,
    /// The treatment of older versions of a resource.
    pub superseded: Superseded,
    /// Tools by name; `*` has the defaults of all tools.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Paths that tools can't write to, as patterns of a `.gitignore`. Tools can never write to
    /// `.jp/` and `.git/`.
    pub read_only_paths: Vec<String>,
}

/// `conversation.attachment`: limits of attachments and checks for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct AttachmentSettings {
    /// The largest resource.
    pub max_bytes: ByteSize,
    /// The largest total of all resources of one command.
    pub max_total_bytes: ByteSize,
    /// The largest number of files of one command.
    pub max_files: u64,
    /// The time limit for a page or a command, in seconds.
    pub timeout_secs: u64,
    /// The reaction to content that looks like a secret.
    pub secrets: Secrets,
    /// The environment variable, or the file outside the workspace, with the key for the hashes in
    /// `external:` URIs.
    pub external_key: Option<String>,
}

/// The reaction to attached content that looks like a secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secrets {
    /// jp doesn't check.
    #[default]
    Off,
    /// jp warns and sends it.
    Warn,
    /// jp stops and sends nothing.
    Refuse,
}

/// `conversation.deduplication`: the replacement of content that the request already has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Deduplication {
    /// Replaces repeated content.
    pub enabled: bool,
    /// The smallest replaced content, in bytes.
    pub min_bytes: u64,
    /// The largest distance of a reference, in turns.
    pub lookback_turns: u64,
    /// Replaces a range of lines if the request already has them.
    pub ranges: bool,
    /// Sends changed content as a diff if that is smaller.
    pub diffs: bool,
}

/// `conversation.superseded`: the treatment of older versions of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "a table")]
pub struct Superseded {
    /// The time when jp leaves them out of requests.
    pub policy: SupersededPolicy,
    /// The smallest saving for which jp leaves them out, in tokens.
    pub min_tokens: u64,
}

/// The time when jp leaves superseded content out of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupersededPolicy {
    /// When the prompt cache has expired, because the change then costs nothing.
    #[default]
    WhenCold,
    /// Never.
    Keep,
    /// Immediately, at the cost of the prompt cache.
    Always,
}

impl Default for AttachmentSettings {
    fn default() -> Self {
        Self {
            // Far more than any text that a model can read; larger files are usually a mistake.
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
