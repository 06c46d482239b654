//! A template as matching sees it: a body, a query and a fragment, each of atoms.

use std::sync::Arc;

use crate::template::Modifier;
use crate::template::encoding::{is_reserved, is_scheme_byte};

/// Everything before the query and the fragment, then those, where the template has them.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) names: Vec<Arc<str>>,
    /// The length of the scheme that the template starts with, its colon included; 0 without one.
    pub(super) scheme: usize,
    pub(super) body: Region,
    pub(super) query: Option<Query>,
    pub(super) fragment: Option<Fragment>,
    /// The bytes of all literals together.
    pub(super) literal_length: usize,
}

/// Atoms that fit one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Region {
    pub(super) atoms: Vec<Atom>,
    /// The atom that takes what the others, scanned from both ends, leave over: the last one that may hold
    /// separators, else the last variable.
    pub(super) pivot: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) enum Atom {
    Literal(String),
    /// `{v}`, `{v*}`, `{+v}`, `{#v}`.
    Text(Capture),
    /// `{/v}`, `{.v}`: nothing, or the byte and a value.
    Segment {
        byte: u8,
        capture: Capture,
    },
    /// `{/v*}`, `{.v*}`: any number of them.
    Segments {
        byte: u8,
        capture: Capture,
    },
    /// `{;a,b*}`.
    Parameters(Pairs),
}

/// One mention of a variable.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    /// The index of the variable's name.
    pub(super) variable: usize,
    pub(super) modifier: Modifier,
    pub(super) class: Class,
}

/// What a value may hold; encoded, it may hold everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// No reserved character.
    Simple,
    /// None but `/` and `#`.
    Lenient,
    /// Everything.
    Any,
    /// What stands in a parameter of a path: a name, `=` and a value.
    Parameter,
    /// Everything but what ends a query's value.
    Query,
}

/// Named values, in any order.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    /// By name, in order.
    pub(super) captures: Vec<(String, Capture)>,
}

#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) pairs: Pairs,
    /// What it starts with: `?`, or `&` if it is a `{&…}` alone.
    pub(super) byte: u8,
    /// How many of these bytes the template's own text before has.
    pub(super) before: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Fragment {
    pub(super) region: Region,
    /// How many `#` of the template's own stand before.
    pub(super) number_signs: usize,
    /// Whether a URI without one fits: the fragment is a `{#…}` and nothing else.
    pub(super) optional: bool,
}

impl Plan {
    /// The text that every URI of the template starts with; empty if that is not sure to be its whole scheme.
    pub(super) fn prefix(&self) -> &str {
        match self.body.atoms.first() {
            Some(Atom::Literal(text)) if self.scheme > 0 || !text.bytes().all(is_scheme_byte) => text,
            _ => "",
        }
    }
}

impl Region {
    pub(super) fn set_pivot(&mut self) {
        let last = |fits: fn(&Atom) -> bool| self.atoms.iter().rposition(fits);
        self.pivot = last(Atom::is_wide).or_else(|| last(|atom| atom.as_literal().is_none()));
    }
}

impl Atom {
    pub(super) fn as_literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it may hold the characters that other atoms end at.
    pub(super) fn is_wide(&self) -> bool {
        match self {
            Self::Segments { .. } => true,
            Self::Text(capture) => capture.class == Class::Any,
            Self::Literal(_) | Self::Segment { .. } | Self::Parameters(_) => false,
        }
    }

    /// The byte that a value of it starts with, where there may be no value at all.
    pub(super) fn opening(&self) -> Option<u8> {
        match self {
            Self::Segment { byte, .. } | Self::Segments { byte, .. } => Some(*byte),
            Self::Parameters(_) => Some(b';'),
            Self::Literal(_) | Self::Text(_) => None,
        }
    }
}

impl Class {
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Query => !matches!(byte, b'&' | b'#'),
            Self::Lenient => !is_reserved(byte) || matches!(byte, b'/' | b'#'),
            Self::Parameter => !is_reserved(byte) || byte == b'=',
            Self::Simple => !is_reserved(byte),
        }
    }

    pub(super) fn holds_all(self, text: &str) -> bool {
        self == Self::Any || text.bytes().all(|byte| self.holds(byte))
    }
}

impl Pairs {
    pub(super) fn extend(&mut self, others: Self) {
        self.captures.extend(others.captures);
        self.captures.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    pub(super) fn capture(&self, name: &str) -> Option<&Capture> {
        let index = self.captures.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&self.captures[index].1)
    }
}
