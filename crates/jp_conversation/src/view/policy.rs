use std::{collections::BTreeMap, sync::Arc};

use jp_resource::BlobRef;

/// The rules of delivering content that a model already has: the part of the configuration that the view depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// True if there are any references.
    pub is_enabled: bool,
    /// Below so many bytes content is sent again.
    pub min_bytes: u64,
    /// Most turns back that a reference may point.
    pub lookback_turns: usize,
    /// True if lines inside visible content become a reference.
    pub ranges: bool,
    /// True if changed content is sent as a diff if that is smaller.
    pub diffs: bool,
    /// True for tools whose results may be references, by name; `*` stands for the others.
    pub results: BTreeMap<String, bool>,
    /// The treatment of snapshots that newer ones replaced.
    pub superseded: SupersededPolicy,
    /// Fewest tokens that leaving a snapshot out must save.
    pub superseded_min_tokens: u64,
}

/// The condition under which snapshots that newer ones replaced are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SupersededPolicy {
    /// If a recorded event says so; such events are made when the prompt cache has gone cold.
    #[default]
    WhenCold,
    /// Never, whatever was recorded.
    Keep,
    /// As soon as they are replaced.
    Always,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            is_enabled: true,
            min_bytes: 300,
            lookback_turns: 30,
            ranges: true,
            diffs: true,
            results: BTreeMap::new(),
            superseded: SupersededPolicy::default(),
            superseded_min_tokens: 1000,
        }
    }
}

impl Policy {
    /// Returns the policy with everything switched off: all content is sent whole, every time.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            is_enabled: false,
            superseded: SupersededPolicy::Keep,
            ..Self::default()
        }
    }

    /// Returns whether results of a tool may be references.
    pub(super) fn covers(&self, tool: &str) -> bool {
        self.is_enabled
            && *self
                .results
                .get(tool)
                .or_else(|| self.results.get("*"))
                .unwrap_or(&true)
    }
}

/// The source of stored text that the view compares.
///
/// Content is found by its checksum, so the view stays a function of the events.
pub trait Texts {
    /// Returns a stored text; `None` if it can't be read, which makes the view send what it can't compare whole.
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>>;
}

/// Knows no stored text: only content that is inline in the events is compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTexts;

impl Texts for NoTexts {
    fn text(&mut self, _: &BlobRef) -> Option<Arc<str>> {
        None
    }
}
