use std::{collections::BTreeMap, sync::Arc};

use jp_resource::BlobRef;

/// The rules for content that a model already has: the part of the configuration that the view depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// True if there are any references.
    pub is_enabled: bool,
    /// The length in bytes below which content is sent again.
    pub min_bytes: u64,
    /// The largest distance of a reference, in turns.
    pub lookback_turns: usize,
    /// True if lines inside visible content become a reference.
    pub ranges: bool,
    /// True if changed content is sent as a diff if that is smaller.
    pub diffs: bool,
    /// True for tools whose results may be references, by name; `*` applies to all others.
    pub results: BTreeMap<String, bool>,
    /// The treatment of snapshots that newer ones replaced.
    pub superseded: SupersededPolicy,
    /// The fewest tokens that leaving a snapshot out must save.
    pub superseded_min_tokens: u64,
}

/// The condition under which snapshots that newer ones replaced are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SupersededPolicy {
    /// If an event records it. jp records such events when the prompt cache has expired.
    #[default]
    WhenCold,
    /// Never, even if an event records it.
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

    /// Returns true if results of a tool may be references.
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
    /// Returns a stored text; `None` if it can't be read. Content that can't be compared is sent whole.
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>>;
}

/// A source without stored texts. The view then only compares inline content of the events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTexts;

impl Texts for NoTexts {
    fn text(&mut self, _: &BlobRef) -> Option<Arc<str>> {
        None
    }
}
