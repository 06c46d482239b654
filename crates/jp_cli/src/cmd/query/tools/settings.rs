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
        Self { name, config, own: tools.get(name), all: tools.get(ALL) }
    }

    /// Returns what is said of the tool, or else of all.
    pub(super) fn first<T>(&self, setting: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
        self.own.and_then(&setting).or_else(|| self.all.and_then(&setting))
    }

    /// Returns the layer that set a field.
    pub(super) fn layer(&self, field: &[&str]) -> &'a Layer {
        self.config.origins.layer(&key(self.name, field))
    }

    pub(super) fn is_workspaces(&self, field: &[&str]) -> bool {
        matches!(self.layer(field), Layer::Workspace { .. })
    }

    /// Says what is wrong with a field, or with the tool where none is named: `KEY in LAYER FAULT`.
    pub(super) fn fault(&self, field: &[&str], fault: &str) -> Failure {
        let key = key(self.name, field).to_string();
        let layer = self.config.contributors(&key).pop().unwrap_or(&Layer::Default);
        let is_typed = matches!(layer, Layer::Argument { .. } | Layer::Flag { .. });
        let failure = Failure::new(format!("{key} in {layer} {fault}"));
        Failure { code: if is_typed { Code::Usage } else { Code::Failed }, ..failure }
    }
}

/// Returns the key of a tool's field.
pub(super) fn key(name: &str, field: &[&str]) -> Key {
    ["conversation", "tools", name].iter().chain(field).copied().collect()
}
