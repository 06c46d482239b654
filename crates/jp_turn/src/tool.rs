//! What a tool is: how it is offered to a model, where it is from and what it may do.

use std::{collections::BTreeMap, time::Duration};

use jp_mcp::ToolAnnotations;
use serde_json::{Map, Value};

use crate::{builtin::Builtin, command::Command};

/// A tool that may be called in a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: Map<String, Value>,
    /// Where it is from.
    pub source: Source,
    /// Whether it runs unasked.
    pub permission: Permission,
    /// Who answers its questions, by their ids; the person where nothing is said.
    pub questions: BTreeMap<String, Answerer>,
    /// What it is handed as it is.
    pub options: Map<String, Value>,
    /// How long one run may take.
    pub timeout: Duration,
    /// How much of a result's text the model is shown, in bytes.
    pub max_output_bytes: usize,
    /// How much of a result's images and other binaries the model is shown, in bytes.
    pub max_binary_bytes: usize,
    /// How it lives on between calls, if it does.
    pub stateful: Option<Stateful>,
}

/// Where a tool is from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A program of the person's.
    Local(Command),
    /// jp's own.
    Builtin(Builtin),
    /// An MCP server's.
    Server(ServerTool),
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// What the configuration calls the server.
    pub server: String,
    /// What the server calls the tool.
    pub tool: String,
    /// What the server says of its behaviour; nobody vouches for it.
    pub annotations: ToolAnnotations,
    /// JSON Schema that its arguments are checked against, where jp can't use the one that models are told.
    pub checked: Option<Map<String, Value>>,
    /// JSON Schema of its structured content.
    pub output: Option<Map<String, Value>>,
    /// How long it may go without a sign of life, where that is said of the tool; else it is its server's.
    pub timeout: Option<Duration>,
}

/// Whether a tool runs unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The person is asked each time.
    Ask,
    /// It runs.
    Unattended,
    /// It never runs.
    Deny,
}

/// Who answers a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answerer {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Nobody: this is the answer.
    Fixed(Value),
}

/// How a tool lives on between calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stateful {
    /// What the model may do with it; never empty.
    pub actions: Vec<Action>,
    /// Whether it outlives the turn.
    pub keep: bool,
}

/// What is done with a stateful tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Starting it.
    Spawn,
    /// Asking how far it is.
    Fetch,
    /// Giving it more.
    Apply,
    /// Ending it.
    Abort,
}

impl Tool {
    /// How long a run may take where nothing is said.
    pub const TIMEOUT: Duration = Duration::from_secs(120);
    /// How much of a result's text the model is shown where nothing is said.
    pub const MAX_OUTPUT_BYTES: usize = 256_000;
    /// How much of a result's binaries the model is shown by default, in bytes: 5 MB in base64, the lowest limit for an
    /// image among the providers.
    ///
    /// Claude takes 5 MB of base64 for each image on Amazon Bedrock and Google Cloud
    /// (<https://platform.claude.com/docs/en/build-with-claude/vision>).
    ///
    /// An image costs by its dimensions, not by its bytes, so the limit for text would be the wrong measure, and it would
    /// leave out screenshots.
    pub const MAX_BINARY_BYTES: usize = 3_750_000;

    /// Makes a tool that has the defaults.
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

    /// Returns whether it is jp's own and changes files.
    pub(crate) fn writes_files(&self) -> bool {
        matches!(self.source, Source::Builtin(builtin) if builtin.writes_files())
    }

    /// Returns whether it is jp's own and works on files: what it does depends on what others did before.
    pub(crate) fn sees_files(&self) -> bool {
        matches!(self.source, Source::Builtin(builtin) if builtin.sees_files())
    }

    /// Returns what a model is told of the tool.
    #[must_use]
    pub fn offered(&self) -> jp_llm::Tool {
        jp_llm::Tool {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.offered_parameters(),
        }
    }

    /// Returns the schema of what a model gives a call of it.
    pub(crate) fn offered_parameters(&self) -> Map<String, Value> {
        match &self.stateful {
            Some(stateful) => stateful.offered_parameters(self),
            None => self.parameters.clone(),
        }
    }
}
