//! The settings of one tool in the configuration, with those that apply to all tools.

use crate::{
    error::SessionError,
    trust::{Decision, Effect, Origin, decide_unapproved},
};
use jp_config::{Key, Layer, Resolved, ToolSettings};

/// The name for all tools, in the configuration and of `-T` without a name.
pub(crate) const ALL: &str = "*";

/// The settings of one tool, and those of all tools.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub(crate) name: &'a str,
    pub(crate) config: &'a Resolved,
    /// The entry of the tool, if there is one.
    pub(crate) own: Option<&'a ToolSettings>,
    /// The entry of all tools, if there is one.
    pub(crate) all: Option<&'a ToolSettings>,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(name: &'a str, config: &'a Resolved) -> Self {
        let tools = &config.config.conversation.tools;
        Self {
            name,
            config,
            own: tools.get(name),
            all: tools.get(ALL),
        }
    }

    /// Returns a setting of the tool, or else of all tools.
    pub(crate) fn first<T>(&self, setting: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
        self.own
            .and_then(&setting)
            .or_else(|| self.all.and_then(&setting))
    }

    /// Returns the layer that set a field.
    pub(crate) fn layer(&self, field: &[&str]) -> &'a Layer {
        self.config.origins.layer(&key(self.name, field))
    }

    /// Returns whether the workspace set a field.
    pub(crate) fn is_of_workspace(&self, field: &[&str]) -> bool {
        matches!(self.layer(field), Layer::Workspace { .. })
    }

    /// Returns whether the workspace set any of these fields, or a part of one.
    pub(crate) fn has_of_workspace(&self, fields: &[&str]) -> bool {
        fields.iter().any(|field| {
            let key = key(self.name, &[field]).to_string();
            // A table may have parts of several layers, so all contributors count and not only the last.
            let layers = self.config.contributors(&key);
            layers
                .iter()
                .any(|layer| matches!(layer, Layer::Workspace { .. }))
        })
    }

    /// Returns whether the configuration switches the tool on or off, if it does either.
    ///
    /// If the user switches all tools off, the workspace can't switch one on.
    pub(crate) fn enable(&self) -> Option<bool> {
        // An entry of the tool counts more than the entry of all tools, except against the user's own refusal.
        let own = self.own.and_then(|own| own.enable);
        let all = self.all.and_then(|all| all.enable);
        let is_off_for_user =
            all == Some(false) && !Self::new(ALL, self.config).is_of_workspace(&["enable"]);
        match own {
            Some(_) if is_off_for_user && !self.may_override_user("enable") => Some(false),
            own => own.or(all),
        }
    }

    /// Returns whether the setting of a tool may allow what the user refuses to all tools.
    pub(crate) fn may_override_user(&self, field: &str) -> bool {
        let origin = Origin::from(self.layer(&[field]));
        decide_unapproved(origin, Effect::OverrideUsersRefusal) == Decision::Allowed
    }

    /// Makes the error about a field, or about the whole tool if the path is empty: `KEY in LAYER FAULT`.
    pub(crate) fn fault(&self, field: &[&str], fault: &str) -> SessionError {
        let key = key(self.name, field).to_string();
        SessionError::about_key(self.config, &key, fault)
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
