//! What a session tells: values, which a front end words.

use crate::person::Person;

/// What a session tells the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something the user should know.
    Warning(String),
    /// What the user can do about the notice before.
    Hint(String),
    /// How things stand.
    Status(String),
    /// What interests with `--verbose` only.
    Detail(String),
}

impl dyn Person + '_ {
    /// Warns of something.
    pub fn warn(&self, line: &str) {
        self.tell(Notice::Warning(line.to_owned()));
    }

    /// Says what the user can do about the last warning.
    pub fn hint(&self, line: &str) {
        self.tell(Notice::Hint(line.to_owned()));
    }

    /// Says how things stand.
    pub fn status(&self, line: &str) {
        self.tell(Notice::Status(line.to_owned()));
    }

    /// Says what interests with `--verbose` only.
    pub fn detail(&self, line: &str) {
        self.tell(Notice::Detail(line.to_owned()));
    }
}
