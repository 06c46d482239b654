//! The command line of a local tool.

mod inline_code;
pub(crate) mod template;

/// The command line of a local tool; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments. In each, `{{context}}` is the whole JSON document that the
    /// tool is given, and `{{tool.arguments.NAME}}`, `{{context.root}}` and the like are parts of
    /// it.
    pub words: Vec<String>,
}

impl Command {
    /// Returns the first word that an interpreter reads as code and that words of a model go into,
    /// as in `sh -c 'grep {{tool.arguments.word}} notes'`: there the model could run anything.
    #[must_use]
    pub fn unsafe_code(&self) -> Option<&str> {
        inline_code::find(&self.words)
    }
}
