//! What the user asks for.

/// A query as a value: what to ask, of which conversation and model, with what.
#[derive(Debug, Clone, Default)]
pub struct QueryRequest {
    /// The words, joined by spaces.
    pub words: String,
    /// Text that stands before the words, such as piped input.
    pub input: Option<String>,
    /// What to attach, as the user writes it.
    pub attach: Vec<String>,
    /// The model, if not the configured one.
    pub model: Option<String>,
    /// A JSON Schema for the answer: JSON, or `@` and a file.
    pub schema: Option<String>,
    /// Tools to switch on.
    pub tool: Vec<String>,
    /// Tools to switch off; `*` is all of them.
    pub no_tool: Vec<String>,
    /// Which conversation it goes to.
    pub to: Recipient,
    /// About how many tokens a request may have.
    pub budget: Option<u64>,
    /// Leave out attachments that can't be read.
    pub skip_unavailable: bool,
}

/// The conversation that a query goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Recipient {
    /// The current one, or a new one if there is none.
    #[default]
    Current,
    /// The one of this id.
    Existing(String),
    /// A new one.
    New {
        /// Keep it out of the workspace, for this user alone.
        is_local: bool,
        /// Its title, if not its first words.
        title: Option<String>,
    },
}

impl QueryRequest {
    /// Returns the id of the conversation that the user named.
    pub(crate) fn named(&self) -> Option<&str> {
        match &self.to {
            Recipient::Existing(id) => Some(id),
            Recipient::Current | Recipient::New { .. } => None,
        }
    }
}
