//! How each block of a thread is delivered, given what stands before it in the same request.

use std::fmt;

use jp_resource::Checksum;

use super::{
    Thread,
    policy::{Policy, Texts},
};

/// How a block is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Its content, whole.
    Full(WhyFull),
    /// A reference to the same content.
    Reference {
        /// Where that stands.
        at: Place,
    },
    /// A reference to the lines, wholly or but for some that follow it.
    Lines {
        /// Where they stand.
        at: Place,
    },
    /// What changed since another version.
    Diff {
        /// Where that stands, whole.
        base: Place,
    },
    /// One line: a newer version stands elsewhere.
    Tombstone {
        /// Where.
        newer: Place,
    },
    /// One line: a compaction left it out.
    Compacted,
}

/// Why a block is delivered whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhyFull {
    /// It is no resource, so it has no identity.
    #[default]
    NoResource,
    /// References are switched off, for all or for the tool.
    SwitchedOff,
    /// It is smaller than what is referred to.
    Small,
    /// Nothing of it is visible.
    New,
    /// It was visible too many turns ago.
    TooFarBack,
    /// It was answered with a reference before, and asked for again.
    AskedAgain,
    /// It changed, and what is visible of it can't be the base of a diff.
    Changed,
    /// It changed so much that a diff would be hardly shorter.
    ChangedMuch,
    /// A reference would not be shorter.
    NotShorter,
}

/// Where content stands in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index of the message in the thread.
    pub message: usize,
    /// Index of the resource or block in the message.
    pub block: usize,
    /// The turn, from 1.
    pub turn: usize,
    /// The call that returned it; `None` for an attachment.
    pub call: Option<Call>,
    /// Its content's SHA-256.
    pub checksum: Checksum,
}

/// Names a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub tool: String,
}

impl Delivery {
    /// Returns the word for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Full(_) => "full",
            Self::Reference { .. } => "reference",
            Self::Lines { .. } => "lines",
            Self::Diff { .. } => "diff",
            Self::Tombstone { .. } => "tombstone",
            Self::Compacted => "compacted",
        }
    }

    /// Returns where the content stands that this one builds on.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Reference { at: place }
            | Self::Lines { at: place }
            | Self::Diff { base: place }
            | Self::Tombstone { newer: place } => Some(place),
            Self::Full(_) | Self::Compacted => None,
        }
    }
}

impl Default for Delivery {
    fn default() -> Self {
        Self::Full(WhyFull::default())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            None => write!(f, "attached to the message of turn {}", self.turn),
            Some(Call { id, tool }) => {
                write!(f, "in the result of the call {id} of `{tool}` in turn {}", self.turn)
            }
        }
    }
}

/// Delivers each block of a thread by the policy.
pub(super) fn deliver(_thread: &mut Thread<'_>, _policy: &Policy, _texts: &mut dyn Texts) {}
