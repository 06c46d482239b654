//! What a URI says to the handler of its template.

use std::fmt::Display;
use std::str::FromStr;

use crate::template::{Match, Value};
use crate::{PathError, PathParam};

/// The values of a template's variables in one URI, decoded once.
///
/// A variable that the URI leaves out, as it may with `{?v}` or `{/v}`, has no value; one that is empty has the value
/// `""`. All `?` on the errors turn into -32602 with a message that names the variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    uri: String,
    found: Match,
}

/// A variable without the value that the handler needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The URI has no value, or the template no variable of this name.
    #[error("the parameter {name:?} is missing")]
    Missing {
        /// The variable's name.
        name: String,
    },
    /// The variable is exploded, so it has a list.
    #[error("the parameter {name:?} is a list")]
    List {
        /// The variable's name.
        name: String,
    },
    /// The value is not what the handler takes.
    #[error("the parameter {name:?} can't be {value:?}: {why}")]
    Invalid {
        /// The variable's name.
        name: String,
        /// Its value, decoded.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Parameters {
    pub(crate) fn new(uri: String, found: Match) -> Self {
        Self { uri, found }
    }

    /// Gives the URI as the client wrote it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Gives a text, decoded.
    ///
    /// # Errors
    ///
    /// [`ParameterError::Missing`], [`ParameterError::List`].
    pub fn text(&self, name: &str) -> Result<&str, ParameterError> {
        match self.found.value(name) {
            Some(value) => value.as_text().ok_or_else(|| ParameterError::List {
                name: name.to_owned(),
            }),
            None => Err(ParameterError::Missing {
                name: name.to_owned(),
            }),
        }
    }

    /// Gives a text that may be missing; nothing of an exploded variable either, which has a list.
    pub fn optional(&self, name: &str) -> Option<&str> {
        self.found.text(name)
    }

    /// Gives a text as a type of the handler's.
    ///
    /// # Errors
    ///
    /// [`ParameterError::Invalid`] with the error of the type, and those of [`Parameters::text`].
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, ParameterError> {
        let value = self.text(name)?;
        value
            .parse()
            .map_err(|error: T::Err| ParameterError::Invalid {
                name: name.to_owned(),
                value: value.to_owned(),
                why: error.to_string(),
            })
    }

    /// Gives a text as a path that stays where it is joined to, with [`Root`](crate::Root).
    ///
    /// # Errors
    ///
    /// [`ParameterError::Invalid`] with a [`PathError`], and those of [`Parameters::text`].
    pub fn path(&self, name: &str) -> Result<PathParam, ParameterError> {
        self.parse::<PathParam>(name)
    }

    /// Gives the texts of an exploded variable; none if the URI has none, and none of another variable, which has a text.
    pub fn list(&self, name: &str) -> &[String] {
        self.found.list(name).unwrap_or_default()
    }

    /// Gives a value as the URI has it, still encoded.
    pub fn raw(&self, name: &str) -> Option<&Value> {
        self.found.raw(name)
    }

    /// Gives all values, decoded and encoded.
    pub fn values(&self) -> &Match {
        &self.found
    }
}

impl FromStr for PathParam {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}
