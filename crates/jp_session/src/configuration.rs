//! Resolves the configuration of a command from its layers.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    error::{ErrorKind, SessionError},
    session::{Session, tool_approval},
    trust::history::{add_aliases, keep_allowed, with_alias},
};
use jp_config::{Assignment, Layer, Layers, Resolved};
use jp_conversation::EventKind;
use jp_storage::Conversation;
use serde_json::{Map, Value};

impl Session {
    /// Resolves the configuration, for a conversation or for a new one.
    ///
    /// `flags` are flags that set a key: their name, the key and the value. They are the last layer and
    /// override all others.
    pub fn config(
        &self,
        conversation: Option<&Conversation>,
        flags: &[(&str, &str, &str)],
    ) -> Result<Resolved, SessionError> {
        // A later layer overrides an earlier one.
        let mut layers = Layers::new();
        self.add_files(&mut layers)?;
        conversation.map_or(Ok(()), |conversation| {
            self.add_conversation(&mut layers, conversation)
        })?;
        layers.add_env(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))?;
        for argument in &self.options.cfg {
            self.add_argument(&mut layers, argument)?;
        }
        for (name, key, value) in flags {
            let assignment = Assignment::Set {
                key: key.parse()?,
                text: (*value).to_owned(),
            };
            layers.add_assignment(
                Layer::Flag {
                    name: (*name).to_owned(),
                },
                &assignment,
            )?;
        }
        layers.resolve().map_err(resolve_failure)
    }

    /// Adds the files of the workspace and of the user, which overrides the workspace.
    fn add_files(&self, layers: &mut Layers) -> Result<(), SessionError> {
        let workspace = self.workspace.config();
        let bytes = self
            .workspace
            .read_config()
            .map_err(|error| read_failure(&workspace, error))?;
        if let Some(bytes) = bytes {
            let text = String::from_utf8(bytes)
                .map_err(|error| read_failure(&workspace, io::Error::other(error)))?;
            let path = self.surroundings.display(&workspace).into();
            layers.add_toml(Layer::Workspace { path }, &text)?;
        }
        if let Some(user) = self.surroundings.user_config()
            && let Some(text) = read_optional(&user)?
        {
            let path = self.surroundings.display(&user).into();
            layers.add_toml(Layer::User { path }, &text)?;
        }
        Ok(())
    }

    /// Adds the settings of a conversation's history that it may make. It may enable a tool only if the
    /// user enabled it in this conversation.
    fn add_conversation(
        &self,
        layers: &mut Layers,
        conversation: &Conversation,
    ) -> Result<(), SessionError> {
        let trust = self.workspace.trust();
        let was_switched_on = |tool: &str| trust.contains(&tool_approval(tool, conversation.id));
        let mut aliases = Map::new();
        if let Some(Value::Object(base)) = &conversation.base_config {
            add_aliases(base, layers, &mut aliases);
            let own = with_alias(keep_allowed(base, &was_switched_on), &aliases);
            layers.add_json(Layer::Conversation, &Value::Object(own))?;
        }
        for event in conversation.stream.events() {
            if let EventKind::ConfigDelta(delta) = &event.kind {
                add_aliases(&delta.delta, layers, &mut aliases);
                let mut delta = with_alias(keep_allowed(&delta.delta, &was_switched_on), &aliases);
                if let Some(Value::Object(conversation)) = delta.get_mut("conversation") {
                    // `jp_conversation::resolution` follows the attachments in the events.
                    conversation.shift_remove("attachments");
                }
                layers.add_json(Layer::Conversation, &Value::Object(delta))?;
            }
        }
        Ok(())
    }

    /// Adds an argument of `--cfg`: the file of that name, or else `KEY=VALUE`.
    fn add_argument(&self, layers: &mut Layers, argument: &str) -> Result<(), SessionError> {
        let path = self.surroundings.current_dir.join(argument);
        // A file comes first, even if its name contains a `=`.
        if path.is_file() {
            let text = fs::read_to_string(&path).map_err(|error| {
                SessionError::new(format!("failed to read {argument}: {error}"))
            })?;
            return Ok(layers.add_toml(
                Layer::File {
                    path: PathBuf::from(argument),
                },
                &text,
            )?);
        }
        match Assignment::parse(argument).map_err(usage_error)? {
            Assignment::File(path) => Err(SessionError::usage(format!(
                "failed to load {}: there is no such file",
                path.display()
            ))
            .with_hint("`-c KEY=VALUE` sets a value, `-c FILE` loads a TOML file.")),
            assignment => layers
                .add_assignment(
                    Layer::Argument {
                        text: argument.to_owned(),
                    },
                    &assignment,
                )
                .map_err(usage_error),
        }
    }
}

fn usage_error(error: jp_config::Error) -> SessionError {
    SessionError {
        kind: ErrorKind::Usage,
        ..SessionError::from(error)
    }
}

/// Words a failure to resolve the layers: a usage error if the user typed the faulty value.
fn resolve_failure(error: jp_config::Error) -> SessionError {
    let layer = match &error {
        jp_config::Error::Invalid { layer, .. } | jp_config::Error::UnknownKey { layer, .. } => {
            Some(layer)
        }
        _ => None,
    };
    match layer {
        Some(Layer::Argument { .. } | Layer::Flag { .. }) => usage_error(error),
        _ => error.into(),
    }
}

/// Reads a file, if it exists.
fn read_optional(path: &Path) -> Result<Option<String>, SessionError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(read_failure(path, error)),
    }
}

/// Makes the error for a configuration file that can't be read.
fn read_failure(path: &Path, error: io::Error) -> SessionError {
    SessionError::from_system(&format!("read {}", path.display()), error)
}
