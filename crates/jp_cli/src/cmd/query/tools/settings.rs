//! What is configured of one tool, and what is wrong with it.

use jp_config::{Key, Layer, Resolved, ToolSettings};

use super::ALL;
use crate::error::{Code, Failure};

/// What is configured of one tool, with what holds for all of them.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) name: &'a str,
    pub(super) config: &'a Resolved,
    /// Nothing, where nothing is said of it.
    pub(super) own: Option<&'a ToolSettings>,
    pub(super) all: Option<&'a ToolSettings>,
}

impl<'a> Settings<'a> {
    pub(super) fn of(name: &'a str, config: &'a Resolved) -> Self {
        let tools = &config.config.conversation.tools;
        Self {
            name,
            config,
            own: tools.get(name),
            all: tools.get(ALL),
        }
    }

    /// Returns what is said of the tool, or else of all.
    pub(super) fn first<T>(&self, setting: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
        self.own
            .and_then(&setting)
            .or_else(|| self.all.and_then(&setting))
    }

    /// Returns the layer that set a field.
    pub(super) fn layer(&self, field: &[&str]) -> &'a Layer {
        self.config.origins.layer(&key(self.name, field))
    }

    pub(super) fn is_workspaces(&self, field: &[&str]) -> bool {
        matches!(self.layer(field), Layer::Workspace { .. })
    }

    /// Returns whether the workspace set any of these fields, or a part of one.
    pub(super) fn has_of_workspace(&self, fields: &[&str]) -> bool {
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
    pub(super) fn enable(&self) -> Option<bool> {
        let (own, all) = (
            self.own.and_then(|own| own.enable),
            self.all.and_then(|all| all.enable),
        );
        let is_off = all == Some(false) && !Self::of(ALL, self.config).is_workspaces(&["enable"]);
        match own {
            Some(_) if is_off && self.is_workspaces(&["enable"]) => Some(false),
            own => own.or(all),
        }
    }

    /// Says what is wrong with a field, or with the tool where none is named: `KEY in LAYER FAULT`.
    pub(super) fn fault(&self, field: &[&str], fault: &str) -> Failure {
        let key = key(self.name, field).to_string();
        let layer = self
            .config
            .contributors(&key)
            .pop()
            .unwrap_or(&Layer::Default);
        let is_typed = matches!(layer, Layer::Argument { .. } | Layer::Flag { .. });
        let failure = Failure::new(format!("{key} in {layer} {fault}"));
        Failure {
            code: if is_typed { Code::Usage } else { Code::Failed },
            ..failure
        }
    }
}

/// Returns the key of a tool's field.
pub(super) fn key(name: &str, field: &[&str]) -> Key {
    ["conversation", "tools", name]
        .iter()
        .chain(field)
        .copied()
        .collect()
}
