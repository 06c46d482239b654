//! A template in the form in which it is matched: a body, a query and a fragment. Body and fragment are fields
//! between literals.

use std::sync::Arc;

use super::bytes::ByteSet;
use super::steps::count;
use crate::template::Modifier;
use crate::template::encoding::{is_reserved, is_scheme_byte};

/// A whole template.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    pub(super) names: Vec<Arc<str>>,
    /// The length of the scheme that the template starts with, its colon included; 0 if it has none.
    pub(super) scheme: usize,
    pub(super) body: Region,
    pub(super) query: Option<Query>,
    pub(super) fragment: Option<Fragment>,
    /// The bytes of all literals together.
    pub(super) literal_length: usize,
}

/// A literal, and fields that each end in a literal. Only the last field may lack it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Region {
    pub(super) start: String,
    pub(super) fields: Vec<Field>,
    /// The field that takes what the others, found from both ends, leave: the last one that may hold anything,
    /// else the last one with optional values, else the last.
    pub(super) pivot: usize,
}

/// Variables with no literal between them, and the literal after them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Field {
    pub(super) atoms: Vec<Atom>,
    /// For each atom, the bytes that the atoms after it start with.
    pub(super) openings: Vec<ByteSet>,
    /// The atom that may hold these bytes, and takes what the others leave. There is one at most.
    pub(super) wide: Option<usize>,
    pub(super) end: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// `{v}`, `{v*}`, `{+v}`, `{#v}`: the first of its field.
    Text(Capture),
    /// `{/a,b}`, `{.a,b}`: the byte and a value for each. The last ones may be missing.
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
    /// True if it is the only variable of a `{v}` or `{+v}`. There, an empty list leaves no text.
    pub(super) is_alone: bool,
}

/// The characters that a value may contain. In encoded form, it may contain any.
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
    /// Sorted by name, and for one name by the length of their prefixes.
    captures: Vec<(String, Capture)>,
    /// The length of the longest name.
    longest: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) pairs: Pairs,
    /// The byte that it starts with: `?`, or `&` for a `{&…}` without a `{?…}`.
    pub(super) byte: u8,
    /// The number of these bytes in the template's literal text before it.
    pub(super) before: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Fragment {
    pub(super) region: Region,
    /// The number of `#` in the template's literal text before it.
    pub(super) number_signs: usize,
    /// True if a URI without a fragment matches, because the fragment is only a `{#…}`.
    pub(super) optional: bool,
}

impl Plan {
    /// Returns the text that every URI of the template starts with. It is empty if it might be a part of the
    /// scheme only, whose case is ignored.
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

    /// Adds an atom. Neighbours of the same kind become one.
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
        let fields = self.fields.iter();
        let pivot = fields
            .clone()
            .rposition(|field| field.wide.is_some())
            .or_else(|| {
                fields
                    .clone()
                    .rposition(|field| field.lone_text().is_none())
            });
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

    /// Returns the variable of a field that has just one.
    pub(super) fn lone_text(&self) -> Option<&Capture> {
        match self.atoms.as_slice() {
            [Atom::Text(capture)] => Some(capture),
            _ => None,
        }
    }
}

impl Atom {
    /// Returns whether it may hold the characters at which other atoms end.
    pub(super) fn is_wide(&self) -> bool {
        match self {
            Self::List { .. } => true,
            Self::Text(capture) => capture.class == Class::Any,
            Self::Segments { .. } | Self::Parameters(_) => false,
        }
    }

    /// Returns the byte that its values start with, if it may have no value at all.
    fn opening(&self) -> Option<u8> {
        match self {
            Self::Segments { byte, .. } | Self::List { byte, .. } => Some(*byte),
            Self::Parameters(_) => Some(b';'),
            Self::Text(_) => None,
        }
    }
}

impl Capture {
    /// Returns the most characters that it holds. A list, which holds the most, sorts last.
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

    /// Returns the length of the longest name.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.captures.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.capture(name, 0).is_some()
    }

    /// Returns the mention of a name that fits a value of so many characters. Of several, as in `{?v:1,v}`, it is
    /// the one with the shortest prefix.
    pub(super) fn capture(&self, name: &str, characters: usize) -> Option<&Capture> {
        let place = self.captures.partition_point(|(known, capture)| {
            known
                .as_str()
                .cmp(name)
                .then_with(|| capture.limit().cmp(&characters))
                .is_lt()
        });
        let (known, capture) = self.captures.get(place)?;
        (known == name).then_some(capture)
    }
}
