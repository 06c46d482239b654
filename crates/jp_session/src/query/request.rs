//! A query as a value.

/// A query as a value: the message, its conversation, the model, the attachments and the tools.
#[derive(Debug, Clone, Default)]
pub struct QueryRequest {
    /// The words, joined by spaces.
    pub words: String,
    /// Text that stands before the words, such as piped input.
    pub input: Option<String>,
    /// The attachments, as the user types them.
    pub attach: Vec<String>,
    /// The model, if not the configured one.
    pub model: Option<String>,
    /// A JSON Schema for the answer: JSON, or `@` and a file.
    pub schema: Option<String>,
    /// Tools to enable.
    pub tool: Vec<String>,
    /// Tools to disable; `*` stands for all of them.
    pub no_tool: Vec<String>,
    /// The conversation that the query goes to.
    pub to: Recipient,
    /// The largest request to send, in estimated tokens.
    pub budget: Option<u64>,
    /// Leave out attachments that can't be read.
    pub skip_unavailable: bool,
}

/// The conversation that a query goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Recipient {
    /// The current conversation, or a new one if there is none.
    #[default]
    Current,
    /// The conversation with this id.
    Existing(String),
    /// A new conversation.
    New {
        /// Store it in the user's data directory instead of the workspace.
        is_local: bool,
        /// Its title. The default is its first words.
        title: Option<String>,
    },
}

impl QueryRequest {
    /// Returns the id of the conversation that the user named.
    pub(crate) fn conversation_id(&self) -> Option<&str> {
        match &self.to {
            Recipient::Existing(id) => Some(id),
            Recipient::Current | Recipient::New { .. } => None,
        }
    }
}
