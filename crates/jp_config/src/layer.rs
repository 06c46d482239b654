use std::fmt;
use std::path::PathBuf;

use crate::secret::{argument_without_secrets, argument_without_value};

/// The origin of a value.
///
/// It is displayed in the form that the user would look for: the path of a file, the argument, the
/// variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// jp's default; no layer set the value.
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
    /// The conversation's history.
    Conversation,
    /// An environment variable.
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
    /// A flag that stands for a key, such as `--model`.
    Flag {
        /// The flag with its dashes.
        name: String,
    },
}

impl Layer {
    /// Returns the layer for a message about an unknown key: without the value of an argument.
    #[must_use]
    pub fn without_value(&self) -> String {
        match self {
            Self::Argument { text } => format!("`-c {}`", argument_without_value(text)),
            layer => layer.to_string(),
        }
    }

    /// Returns true if an unknown key in this layer is an error.
    ///
    /// In files and conversations it isn't, because another version of jp may have written them.
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
