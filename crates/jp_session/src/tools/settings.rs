//! What is configured of one tool, and what is wrong with it.

use crate::{
    error::{ErrorKind, SessionError},
    trust::{Decision, Effect, Origin, decide_unapproved},
};
use jp_config::{Key, Layer, Resolved, ToolSettings};

/// What `-T` without a name means, as in the configuration.
pub(crate) const ALL: &str = "*";

/// What is configured of one tool, with what holds for all of them.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub(crate) name: &'a str,
    pub(crate) config: &'a Resolved,
    /// Nothing, where nothing is said of it.
    pub(crate) own: Option<&'a ToolSettings>,
    pub(crate) all: Option<&'a ToolSettings>,
}

impl<'a> Settings<'a> {
    pub(crate) fn of(name: &'a str, config: &'a Resolved) -> Self {
        let tools = &config.config.conversation.tools;
        Self {
            name,
            config,
            own: tools.get(name),
            all: tools.get(ALL),
        }
    }

    /// Returns what is said of the tool, or else of all.
    pub(crate) fn first<T>(&self, setting: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
        self.own
            .and_then(&setting)
            .or_else(|| self.all.and_then(&setting))
    }

    /// Returns the layer that set a field.
    pub(crate) fn layer(&self, field: &[&str]) -> &'a Layer {
        self.config.origins.layer(&key(self.name, field))
    }

    pub(crate) fn is_workspaces(&self, field: &[&str]) -> bool {
        matches!(self.layer(field), Layer::Workspace { .. })
    }

    /// Returns whether the workspace set any of these fields, or a part of one.
    pub(crate) fn has_of_workspace(&self, fields: &[&str]) -> bool {
        let is_of_workspace = |field: &&str| {
            let key = key(self.name, &[field]).to_string();
            self.config
                .contributors(&key)
                .iter()
                .any(|layer| matches!(layer, Layer::Workspace { .. }))
        };
        fields.iter().any(is_of_workspace)
    }

    /// Returns whether models are offered the tool, if anybody says so. What the person says of all tools counts more
    /// than what the workspace says of one.
    pub(crate) fn enable(&self) -> Option<bool> {
        let (own, all) = (
            self.own.and_then(|own| own.enable),
            self.all.and_then(|all| all.enable),
        );
        let is_off = all == Some(false) && !Self::of(ALL, self.config).is_workspaces(&["enable"]);
        match own {
            Some(_) if is_off && !self.may_override_user("enable") => Some(false),
            own => own.or(all),
        }
    }

    /// Returns whether the setting of a tool may allow what the user refuses to all tools.
    pub(crate) fn may_override_user(&self, field: &str) -> bool {
        let origin = Origin::from(self.layer(&[field]));
        decide_unapproved(origin, Effect::OverrideUsersRefusal) == Decision::Allowed
    }

    /// Returns the key of a field, or of the tool, and the last layer that sets a part of it.
    pub(crate) fn find_origin(&self, field: &[&str]) -> (String, &'a Layer) {
        let key = key(self.name, field).to_string();
        let layer = self.config.contributors(&key).pop();
        (key, layer.unwrap_or(&Layer::Default))
    }

    /// Says what is wrong with a field, or with the tool where none is named: `KEY in LAYER FAULT`.
    pub(crate) fn fault(&self, field: &[&str], fault: &str) -> SessionError {
        let (key, layer) = self.find_origin(field);
        let is_typed = matches!(layer, Layer::Argument { .. } | Layer::Flag { .. });
        let failure = SessionError::new(format!("{key} in {layer} {fault}"));
        SessionError {
            kind: if is_typed {
                ErrorKind::Usage
            } else {
                ErrorKind::Failed
            },
            ..failure
        }
    }
}

/// Returns the key of a tool's field.
pub(crate) fn key(name: &str, field: &[&str]) -> Key {
    ["conversation", "tools", name]
        .iter()
        .chain(field)
        .copied()
        .collect()
}
