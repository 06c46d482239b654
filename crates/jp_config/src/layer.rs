use std::fmt;
use std::path::PathBuf;

use crate::secret::{argument_without_secrets, argument_without_value};

/// Where a value came from.
///
/// Shown as a person would look for it: the path of a file, the argument, the variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Nobody set it.
    Default,
    /// The workspace's `.jp/config.toml`.
    Workspace {
        /// The path as messages show it.
        path: PathBuf,
    },
    /// The user's `$XDG_CONFIG_HOME/jp/config.toml`.
    User {
        /// The path as messages show it.
        path: PathBuf,
    },
    /// What the conversation stored.
    Conversation,
    /// A variable of the environment.
    Environment {
        /// Its name, `JP_CFG_…`.
        variable: String,
    },
    /// A file that a `-c PATH` argument names.
    File {
        /// The path as messages show it.
        path: PathBuf,
    },
    /// A `-c` argument.
    Argument {
        /// The argument without the `-c`.
        text: String,
    },
    /// A flag of its own, such as `--model`.
    Flag {
        /// The flag with its dashes.
        name: String,
    },
}

impl Layer {
    /// Returns the layer as people are shown it where its key is unknown: without the value of an argument.
    #[must_use]
    pub fn without_value(&self) -> String {
        match self {
            Self::Argument { text } => format!("`-c {}`", argument_without_value(text)),
            layer => layer.to_string(),
        }
    }

    /// Returns whether an unknown key in this layer is a mistake made just now, so an error.
    ///
    /// Files and conversations may have been written by another version of jp.
    pub(crate) fn refuses_unknown_keys(&self) -> bool {
        match self {
            Self::Environment { .. } | Self::Argument { .. } | Self::Flag { .. } => true,
            Self::Default
            | Self::Workspace { .. }
            | Self::User { .. }
            | Self::Conversation
            | Self::File { .. } => false,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Workspace { path } | Self::User { path } | Self::File { path } => {
                path.display().fmt(formatter)
            }
            Self::Conversation => formatter.write_str("conversation"),
            Self::Environment { variable } => formatter.write_str(variable),
            Self::Argument { text } => write!(formatter, "`-c {}`", argument_without_secrets(text)),
            Self::Flag { name } => formatter.write_str(name),
        }
    }
}
