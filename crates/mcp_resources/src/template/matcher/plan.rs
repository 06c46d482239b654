//! A template as matching sees it: a body, a query and a fragment, the first and the last of fields between literals.

use std::sync::Arc;

use super::bytes::ByteSet;
use super::steps::count;
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

/// A literal, and fields with a literal after each, which only the last may lack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Region {
    pub(super) start: String,
    pub(super) fields: Vec<Field>,
    /// The field that takes what the others, found from both ends, leave over: the last one that may hold anything,
    /// else the last one with optional values, else the last.
    pub(super) pivot: usize,
}

/// Variables with no literal between them, and the literal after them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Field {
    pub(super) atoms: Vec<Atom>,
    /// For each atom the bytes that those after it start with.
    pub(super) openings: Vec<ByteSet>,
    /// The atom that may hold these bytes and takes what the others leave over; there is one at most.
    pub(super) wide: Option<usize>,
    pub(super) end: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// `{v}`, `{v*}`, `{+v}`, `{#v}`: the first of its field.
    Text(Capture),
    /// `{/a,b}`, `{.a,b}`: for each the byte and a value; last ones may be missing.
    Segments { byte: u8, captures: Vec<Capture> },
    /// `{/v*}`, `{.v*}`: any number of them.
    List { byte: u8, capture: Capture },
    /// `{;a,b*}`.
    Parameters(Pairs),
}

/// One mention of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Capture {
    /// The index of the variable's name.
    pub(super) variable: usize,
    pub(super) modifier: Modifier,
    pub(super) class: Class,
    /// Whether it is all of a `{v}` or `{+v}`, of which a list without items leaves nothing.
    pub(super) is_alone: bool,
}

/// What a value may hold; encoded, it may hold everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// No reserved character.
    Simple,
    /// None but `/` and `#`.
    Lenient,
    /// Everything.
    Any,
    /// Everything but what ends a query's value.
    Query,
}

/// Named values, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Pairs {
    /// By name, and for one name by how much they hold.
    captures: Vec<(String, Capture)>,
    /// The length of the longest name.
    longest: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) pairs: Pairs,
    /// What it starts with: `?`, or `&` if it is a `{&…}` alone.
    pub(super) byte: u8,
    /// How many of these bytes the template's own text before has.
    pub(super) before: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
        let start = self.body.start.as_str();
        if self.scheme > 0 || !start.bytes().all(is_scheme_byte) {
            start
        } else {
            ""
        }
    }
}

impl Region {
    pub(super) fn push_literal(&mut self, text: &str) {
        match self.fields.last_mut() {
            Some(field) => field.end.push_str(text),
            None => self.start.push_str(text),
        }
    }

    /// Adds an atom; neighbours that take turns are one.
    pub(super) fn push(&mut self, atom: Atom) {
        if self.fields.last().is_none_or(|field| !field.end.is_empty()) {
            self.fields.push(Field::default());
        }
        let atoms = &mut self.fields.last_mut().expect("there is one now").atoms;
        match (atoms.last_mut(), atom) {
            (Some(Atom::Parameters(before)), Atom::Parameters(pairs)) => before.extend(pairs),
            (
                Some(Atom::Segments { byte, captures }),
                Atom::Segments {
                    byte: same,
                    captures: more,
                },
            ) if *byte == same => {
                captures.extend(more);
            }
            (_, atom) => atoms.push(atom),
        }
    }

    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.start)
            .chain(self.fields.iter().map(|field| &field.end))
            .map(String::as_str)
    }

    pub(super) fn finish(&mut self) {
        self.fields.iter_mut().for_each(Field::finish);
        let last = |fits: fn(&Field) -> bool| self.fields.iter().rposition(fits);
        let pivot = last(|field| field.wide.is_some())
            .or_else(|| last(|field| field.lone_text().is_none()));
        self.pivot = pivot.unwrap_or(self.fields.len().saturating_sub(1));
    }
}

impl Field {
    fn finish(&mut self) {
        self.wide = self.atoms.iter().position(Atom::is_wide);
        self.openings = vec![ByteSet::default(); self.atoms.len()];
        for index in (1..self.atoms.len()).rev() {
            let opening = self.atoms[index].opening();
            self.openings[index - 1] = opening
                .into_iter()
                .fold(self.openings[index], ByteSet::with);
        }
    }

    /// The only variable, if there is one.
    pub(super) fn lone_text(&self) -> Option<&Capture> {
        match self.atoms.as_slice() {
            [Atom::Text(capture)] => Some(capture),
            _ => None,
        }
    }
}

impl Atom {
    /// Whether it may hold the characters that other atoms end at.
    pub(super) fn is_wide(&self) -> bool {
        match self {
            Self::List { .. } => true,
            Self::Text(capture) => capture.class == Class::Any,
            Self::Segments { .. } | Self::Parameters(_) => false,
        }
    }

    /// The byte that a value of it starts with, where there may be no value at all.
    fn opening(&self) -> Option<u8> {
        match self {
            Self::Segments { byte, .. } | Self::List { byte, .. } => Some(*byte),
            Self::Parameters(_) => Some(b';'),
            Self::Text(_) => None,
        }
    }
}

impl Capture {
    /// The most characters that it holds.
    fn limit(&self) -> usize {
        match self.modifier {
            Modifier::Prefix(length) => length,
            Modifier::None => usize::MAX - 1,
            Modifier::Explode => usize::MAX,
        }
    }
}

impl Class {
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Query => !matches!(byte, b'&' | b'#'),
            Self::Lenient => !is_reserved(byte) || matches!(byte, b'/' | b'#'),
            Self::Simple => !is_reserved(byte),
        }
    }

    pub(super) fn holds_all(self, text: &str) -> bool {
        count(text.len());
        self == Self::Any || text.bytes().all(|byte| self.holds(byte))
    }
}

impl Pairs {
    pub(super) fn new(captures: Vec<(String, Capture)>) -> Self {
        let mut pairs = Self::default();
        pairs.extend(Self {
            captures,
            longest: 0,
        });
        pairs
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.captures.extend(others.captures);
        self.captures.sort_by(|(one, first), (other, second)| {
            one.cmp(other)
                .then_with(|| first.limit().cmp(&second.limit()))
        });
        self.longest = self
            .captures
            .iter()
            .map(|(name, _)| name.len())
            .max()
            .unwrap_or(0);
    }

    /// The length of the longest name.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.captures.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.capture(name, 0).is_some()
    }

    /// The mention of a name that a value of so many characters is of: where there are several, as in `{?v:1,v}`,
    /// that with the shortest prefix.
    pub(super) fn capture(&self, name: &str, characters: usize) -> Option<&Capture> {
        let is_before = |(known, capture): &(String, Capture)| {
            known
                .as_str()
                .cmp(name)
                .then_with(|| capture.limit().cmp(&characters))
                .is_lt()
        };
        let (known, capture) = self
            .captures
            .get(self.captures.partition_point(is_before))?;
        (known == name).then_some(capture)
    }
}
