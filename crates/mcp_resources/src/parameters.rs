//! The parameters that a template's handler receives.

use std::fmt::Display;
use std::str::FromStr;

use crate::template::{Match, Value};
use crate::{PathError, PathParam};

/// The values of a template's variables in one URI, decoded once.
///
/// A variable that the URI leaves out, which `{?v}` and `{/v}` allow, has no value. An empty one has the value
/// `""`. If a handler returns these errors with `?`, the client receives -32602 and the name of the variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    uri: String,
    found: Match,
}

/// A parameter that the handler can't use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The URI has no value of this name, or the template has no such variable.
    #[error("the parameter {name:?} is missing")]
    Missing {
        /// The variable's name.
        name: String,
    },
    /// The variable has a `*`, so its value is a list.
    #[error("the parameter {name:?} is a list")]
    List {
        /// The variable's name.
        name: String,
    },
    /// The value can't be parsed.
    #[error("the parameter {name:?} can't be {value:?}: {why}")]
    Invalid {
        /// The variable's name.
        name: String,
        /// Its value, decoded.
        value: String,
        /// The reason.
        why: String,
    },
}

impl Parameters {
    pub(crate) fn new(uri: String, found: Match) -> Self {
        Self { uri, found }
    }

    /// Returns the URI as the client wrote it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns a text, decoded.
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

    /// Returns a text, or `None` if it is missing or a list.
    pub fn optional(&self, name: &str) -> Option<&str> {
        self.found.text(name)
    }

    /// Parses a text.
    ///
    /// # Errors
    ///
    /// [`ParameterError::Invalid`] with the error of the parser, and those of [`Parameters::text`].
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

    /// Parses a text as a path that can't leave a [`Root`](crate::Root).
    ///
    /// # Errors
    ///
    /// [`ParameterError::Invalid`] with a [`PathError`], and those of [`Parameters::text`].
    pub fn path(&self, name: &str) -> Result<PathParam, ParameterError> {
        self.parse::<PathParam>(name)
    }

    /// Returns the texts of a variable with `*`. Without a list in the URI there are none.
    pub fn list(&self, name: &str) -> &[String] {
        self.found.list(name).unwrap_or_default()
    }

    /// Returns a value in encoded form.
    pub fn raw(&self, name: &str) -> Option<&Value> {
        self.found.raw(name)
    }

    /// Returns all values, decoded and encoded.
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
