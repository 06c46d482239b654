//! Tools: their definitions for models, their sources and their permissions.

use std::{collections::BTreeMap, time::Duration};

use jp_mcp::ToolAnnotations;
use serde_json::{Map, Value};

use crate::{builtin::Builtin, command::Command};

/// A tool that a model may call in a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name by which models call it.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: Map<String, Value>,
    /// The source, which decides how jp runs it.
    pub source: Source,
    /// The permission to run it.
    pub permission: Permission,
    /// The answerers of its questions by question id. The user answers questions that are not
    /// listed.
    pub questions: BTreeMap<String, Answerer>,
    /// The options from the configuration, which jp passes to the tool unchanged.
    pub options: Map<String, Value>,
    /// The time limit of one run.
    pub timeout: Duration,
    /// The maximum text of a result in a request, in bytes.
    pub max_output_bytes: usize,
    /// The maximum images and other binaries of a result in a request, in bytes.
    pub max_binary_bytes: usize,
    /// The settings of a stateful tool, which runs between calls; `None` for any other tool.
    pub stateful: Option<Stateful>,
}

/// The source of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A program that the user configured.
    Local(Command),
    /// A tool that is part of jp.
    Builtin(Builtin),
    /// A tool of an MCP server.
    Server(ServerTool),
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name on the server.
    pub tool: String,
    /// The server's hints about the tool's behaviour. They are not verified.
    pub annotations: ToolAnnotations,
    /// The JSON Schema for checking arguments, if jp can't use the one in the definition for
    /// models.
    pub checked: Option<Map<String, Value>>,
    /// The JSON Schema of its structured content.
    pub output: Option<Map<String, Value>>,
    /// The maximum time without a message from the server; `None` for the server's own limit.
    pub timeout: Option<Duration>,
}

/// The permission of a tool to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// It runs if the user allows the call.
    Ask,
    /// It runs without a prompt.
    Unattended,
    /// It never runs.
    Deny,
}

/// The answerer of a tool's question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answerer {
    /// The user, at a prompt.
    User,
    /// The model, in a separate request.
    Assistant,
    /// The configuration, with this answer.
    Fixed(Value),
}

/// The settings of a tool that runs between calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stateful {
    /// The actions that models may use; never empty.
    pub actions: Vec<Action>,
    /// True if it outlives the turn.
    pub keep: bool,
}

/// An action on a stateful tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Starts a process.
    Spawn,
    /// Asks for its progress.
    Fetch,
    /// Sends it input, or answers to its questions.
    Apply,
    /// Ends it.
    Abort,
}

impl Tool {
    /// The default time limit of a run: long enough for most test suites, short enough that a call
    /// that hangs is noticed.
    pub const TIMEOUT: Duration = Duration::from_secs(120);
    /// The default maximum text of a result in a request, in bytes: about 64,000 tokens, so a few
    /// large results fit into a context window of 200,000.
    pub const MAX_OUTPUT_BYTES: usize = 256_000;
    /// The default maximum binaries of a result in a request, in bytes: 5 MB in base64, the lowest
    /// limit for an image among the providers.
    ///
    /// Claude takes 5 MB of base64 for each image on Amazon Bedrock and Google Cloud
    /// (<https://platform.claude.com/docs/en/build-with-claude/vision>).
    ///
    /// An image costs tokens by its dimensions, not by its bytes. The limit for text would be the
    /// wrong measure, and it would leave out screenshots.
    pub const MAX_BINARY_BYTES: usize = 3_750_000;

    /// Creates a tool with the defaults.
    pub fn new(name: impl Into<String>, parameters: Map<String, Value>, source: Source) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            parameters,
            source,
            permission: Permission::Ask,
            questions: BTreeMap::new(),
            options: Map::new(),
            timeout: Self::TIMEOUT,
            max_output_bytes: Self::MAX_OUTPUT_BYTES,
            max_binary_bytes: Self::MAX_BINARY_BYTES,
            stateful: None,
        }
    }

    /// Returns whether it may run at all.
    #[must_use]
    pub fn may_run(&self) -> bool {
        self.permission != Permission::Deny
    }

    /// Returns whether it is a builtin tool that changes files.
    pub(crate) fn writes_files(&self) -> bool {
        matches!(self.source, Source::Builtin(builtin) if builtin.writes_files())
    }

    /// Returns whether it is a builtin tool that works on files. Its result depends on earlier
    /// calls that changed files.
    pub(crate) fn sees_files(&self) -> bool {
        matches!(self.source, Source::Builtin(builtin) if builtin.sees_files())
    }

    /// Returns the tool's definition for a request.
    #[must_use]
    pub fn definition(&self) -> jp_llm::Tool {
        jp_llm::Tool {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.offered_parameters(),
        }
    }

    /// Returns the JSON Schema of the arguments in a model's call.
    pub(crate) fn offered_parameters(&self) -> Map<String, Value> {
        match &self.stateful {
            Some(stateful) => stateful.offered_parameters(self),
            None => self.parameters.clone(),
        }
    }
}
