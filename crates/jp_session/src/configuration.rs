//! The effective configuration of a command.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    error::{ErrorKind, SessionError},
    session::{Session, switched_on},
    trust::history::{add_aliases, keep_allowed, with_alias},
};
use jp_config::{Assignment, Layer, Layers, Resolved};
use jp_conversation::EventKind;
use jp_storage::Conversation;
use serde_json::{Map, Value};

impl Session {
    /// Resolves the configuration, for a conversation or for a new one.
    ///
    /// `flags` are flags that set a key: their name, the key and the value.
    pub fn config(
        &self,
        conversation: Option<&Conversation>,
        flags: &[(&str, &str, &str)],
    ) -> Result<Resolved, SessionError> {
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
        layers.resolve().map_err(config_failure)
    }

    fn add_files(&self, layers: &mut Layers) -> Result<(), SessionError> {
        let shown = |path: &PathBuf| PathBuf::from(self.surroundings.display(path));
        let workspace = self.workspace.config();
        let bytes = self
            .workspace
            .read_config()
            .map_err(|error| unread(&workspace, error))?;
        if let Some(bytes) = bytes {
            let text = String::from_utf8(bytes)
                .map_err(|error| unread(&workspace, io::Error::other(error)))?;
            layers.add_toml(
                Layer::Workspace {
                    path: shown(&workspace),
                },
                &text,
            )?;
        }
        if let Some(user) = self.surroundings.user_config()
            && let Some(text) = read_optional(&user)?
        {
            layers.add_toml(Layer::User { path: shown(&user) }, &text)?;
        }
        Ok(())
    }

    /// Adds what a conversation says: that a tool is on only where the person switched it on themself, here.
    fn add_conversation(
        &self,
        layers: &mut Layers,
        conversation: &Conversation,
    ) -> Result<(), SessionError> {
        let trust = self.workspace.trust();
        let was_switched_on = |tool: &str| trust.contains(&switched_on(tool, conversation.id));
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
                    // The stream has its own account of what is attached.
                    conversation.shift_remove("attachments");
                }
                layers.add_json(Layer::Conversation, &Value::Object(delta))?;
            }
        }
        Ok(())
    }

    fn add_argument(&self, layers: &mut Layers, argument: &str) -> Result<(), SessionError> {
        let path = self.surroundings.current_dir.join(argument);
        let is_file = path.is_file();
        let usage = |error: jp_config::Error| SessionError {
            kind: ErrorKind::Usage,
            ..SessionError::from(error)
        };
        if is_file {
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
        match Assignment::parse(argument).map_err(usage)? {
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
                .map_err(usage),
        }
    }
}

/// A mistake on the command line is one of usage.
fn config_failure(error: jp_config::Error) -> SessionError {
    let layer = match &error {
        jp_config::Error::Invalid { layer, .. } | jp_config::Error::UnknownKey { layer, .. } => {
            Some(layer)
        }
        _ => None,
    };
    let is_typed = matches!(layer, Some(Layer::Argument { .. } | Layer::Flag { .. }));
    let kind = if is_typed {
        ErrorKind::Usage
    } else {
        ErrorKind::Failed
    };
    SessionError {
        kind,
        ..SessionError::from(error)
    }
}

fn read_optional(path: &Path) -> Result<Option<String>, SessionError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unread(path, error)),
    }
}

/// Makes the error for a configuration file that can't be read.
fn unread(path: &Path, error: io::Error) -> SessionError {
    SessionError::from_system(&format!("read {}", path.display()), error)
}
