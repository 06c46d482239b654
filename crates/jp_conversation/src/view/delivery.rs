//! The ways in which a block of a thread is delivered.

use std::fmt;

use jp_resource::Checksum;

use super::{lines::Span, render::one_line};

/// The delivery of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Its content, whole.
    Full(WhyFull),
    /// A reference to the same content.
    Reference {
        /// The place of that content.
        at: Place,
    },
    /// References to lines of other content, with the remaining lines between them.
    Lines {
        /// The referenced lines, in order; never empty.
        known: Vec<KnownLines>,
    },
    /// The changes since another version.
    Diff {
        /// The place of that version, which is whole there.
        base: Place,
    },
    /// One line: it is outdated.
    Tombstone {
        /// The place of the newer version, if there is one.
        newer: Option<Place>,
    },
    /// One line: a compaction left it out.
    Compacted,
}

/// The reason why a block is delivered whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhyFull {
    /// It isn't a resource, so it has no identity.
    #[default]
    NoResource,
    /// References are switched off, for all or for the tool.
    SwitchedOff,
    /// It is too small for a reference.
    Small,
    /// Nothing of it is visible.
    New,
    /// It was visible too many turns ago.
    TooFarBack,
    /// The model repeated a call whose result was a reference.
    AskedAgain,
    /// It changed, and its visible content can't be the base of a diff.
    Changed,
    /// It changed so much that a diff would hardly be shorter.
    ChangedMuch,
    /// Other lines of it are visible, but too few of these.
    FewLines,
    /// A reference would not be shorter.
    NotShorter,
}

/// The place of content in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The index of the message in the thread.
    pub message: usize,
    /// The index of the resource or block in the message.
    pub block: usize,
    /// The turn, from 1.
    pub turn: usize,
    /// The call that returned it; `None` for an attachment.
    pub call: Option<Call>,
    /// Its content's SHA-256.
    pub checksum: Checksum,
}

/// Lines of a resource that are also in other content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLines {
    /// Their line numbers in the resource.
    pub ours: Span,
    /// The place of that content.
    pub at: Place,
    /// Their line numbers in that content.
    pub theirs: Span,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The call's id. Some providers don't receive it, and older conversations use an id several times.
    pub id: String,
    /// The number of the call in its turn, from 1.
    pub number: usize,
    /// The tool.
    pub tool: String,
}

impl Delivery {
    /// Returns its name in reports.
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

    /// Returns the places of the content that this delivery builds on or refers to.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        let (place, known): (_, &[KnownLines]) = match self {
            Self::Reference { at: place } | Self::Diff { base: place } => (Some(place), &[]),
            Self::Tombstone { newer } => (newer.as_ref(), &[]),
            Self::Lines { known } => (None, known),
            Self::Full(_) | Self::Compacted => (None, &[]),
        };
        place.into_iter().chain(known.iter().map(|known| &known.at))
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
            None => write!(f, "in the attachments of turn {}", self.turn),
            Some(Call { id, number, tool }) => {
                let (tool, id) = (one_line(tool), one_line(id));
                write!(
                    f,
                    "in the result of call {number} of turn {} (`{tool}`, {id})",
                    self.turn
                )
            }
        }
    }
}
