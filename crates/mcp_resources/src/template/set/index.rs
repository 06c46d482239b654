//! Templates by their landmarks.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use super::clues::{Clues, Features};
use super::grams::Grams;
use crate::template::encoding::is_reserved;
use crate::template::matcher::steps::count;
use crate::template::matcher::{Landmark, Place};

/// A tree: whoever goes down it by a literal has found that in the URI and goes on with what is left.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// The templates without further landmarks.
    templates: Clues,
    branches: Vec<Branch>,
}

/// The literals that may stand at one place.
#[derive(Debug, Clone)]
struct Branch {
    place: Place,
    /// By literal, in order, each once.
    edges: Vec<Edge>,
}

#[derive(Debug, Clone)]
struct Edge {
    /// The literal, where it is found from its end, the last byte first.
    literal: Vec<u8>,
    /// The edge with the longest literal that this one's starts with.
    parent: Option<usize>,
    index: Index,
}

/// A URI, and what it has.
pub(super) struct Text<'u> {
    uri: &'u str,
    /// Where its reserved characters are.
    reserved: Vec<usize>,
    /// The pieces of it, once they were asked for.
    grams: OnceCell<Grams>,
}

impl Index {
    /// Makes a tree of templates, each given by a number, which is also that of its features.
    pub(super) fn new(landmarks: &[Vec<Landmark<'_>>], features: &[Features<'_>]) -> Self {
        Self::of(landmarks.iter().map(Vec::as_slice).enumerate(), features)
    }

    fn of<'l>(
        templates: impl Iterator<Item = (usize, &'l [Landmark<'l>])>,
        features: &[Features<'_>],
    ) -> Self {
        let mut index = Self::default();
        let mut here = Vec::new();
        let mut below: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (template, landmarks) in templates {
            match landmarks.split_first() {
                Some(((place, literal), rest)) => {
                    below
                        .entry((*place, place.key(literal)))
                        .or_default()
                        .push((template, rest));
                }
                None => here.push(template),
            }
        }
        index.templates = Clues::new(here, features);
        for ((place, literal), templates) in below {
            index
                .branch(place)
                .push(literal, Self::of(templates.into_iter(), features));
        }
        index
    }

    fn branch(&mut self, place: Place) -> &mut Branch {
        if self
            .branches
            .last()
            .is_none_or(|branch| branch.place != place)
        {
            self.branches.push(Branch {
                place,
                edges: Vec::new(),
            });
        }
        self.branches.last_mut().expect("there is one now")
    }

    /// Finds the templates that may have made a URI, as lists in order.
    pub(super) fn find<'i>(&'i self, text: &'i Text<'_>) -> Vec<&'i [usize]> {
        let mut found = Vec::new();
        self.find_in(text, 0..text.uri.len(), &mut found);
        found
    }

    fn find_in<'i>(&'i self, text: &'i Text<'_>, rest: Range<usize>, found: &mut Vec<&'i [usize]>) {
        self.templates.find(text, found);
        for branch in &self.branches {
            let Some(rest) = text.rest_at(branch.place, rest.clone()) else {
                continue;
            };
            for edge in branch.edges_of(&text.uri.as_bytes()[rest.clone()]) {
                edge.index.find_in(
                    text,
                    branch.place.after(edge.literal.len(), rest.clone()),
                    found,
                );
            }
        }
    }
}

impl Branch {
    /// Adds a literal that sorts after those that are there.
    fn push(&mut self, literal: Vec<u8>, index: Index) {
        let parent = self.nearest(self.edges.len().checked_sub(1), |known| {
            literal.starts_with(known)
        });
        self.edges.push(Edge {
            literal,
            parent,
            index,
        });
    }

    /// The edges whose literals a text has. All of them are among the parents of the last one that does not sort
    /// after the text, or that one.
    fn edges_of<'b>(&'b self, text: &[u8]) -> impl Iterator<Item = &'b Edge> {
        let after = self
            .edges
            .partition_point(|edge| self.place.compare(&edge.literal, text).is_le());
        let first = self.nearest(after.checked_sub(1), |literal| {
            self.place.has(text, literal)
        });
        self.upwards(first).map(|edge| &self.edges[edge])
    }

    /// The first from this edge up through its parents that fits.
    fn nearest(&self, from: Option<usize>, fits: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.upwards(from)
            .find(|edge| fits(&self.edges[*edge].literal))
    }

    /// An edge, its parent, and so on.
    fn upwards(&self, edge: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(edge, |edge| self.edges[*edge].parent)
    }
}

impl Place {
    fn is_left(self) -> bool {
        matches!(self, Self::Start | Self::FirstReserved)
    }

    /// The form in which literals are sorted.
    fn key(self, literal: &str) -> Vec<u8> {
        if self.is_left() {
            literal.bytes().collect()
        } else {
            literal.bytes().rev().collect()
        }
    }

    fn compare(self, literal: &[u8], text: &[u8]) -> Ordering {
        count(literal.len().min(text.len()));
        if self.is_left() {
            literal.cmp(text)
        } else {
            literal.iter().cmp(text.iter().rev())
        }
    }

    fn has(self, text: &[u8], literal: &[u8]) -> bool {
        count(literal.len());
        if self.is_left() {
            text.starts_with(literal)
        } else {
            literal.iter().eq(text.iter().rev().take(literal.len()))
        }
    }

    /// What is left after a literal of this length.
    fn after(self, length: usize, rest: Range<usize>) -> Range<usize> {
        if self.is_left() {
            rest.start + length..rest.end
        } else {
            rest.start..rest.end - length
        }
    }
}

impl<'u> Text<'u> {
    pub(super) fn new(uri: &'u str) -> Self {
        count(uri.len());
        let reserved = uri
            .bytes()
            .enumerate()
            .filter(|(_, byte)| is_reserved(*byte));
        Self {
            uri,
            reserved: reserved.map(|(at, _)| at).collect(),
            grams: OnceCell::new(),
        }
    }

    pub(super) fn uri(&self) -> &'u str {
        self.uri
    }

    pub(super) fn grams(&self) -> &Grams {
        self.grams.get_or_init(|| Grams::of(self.uri))
    }

    /// What is left of the text from where a literal stands at a place, or up to it.
    fn rest_at(&self, place: Place, rest: Range<usize>) -> Option<Range<usize>> {
        let reserved_before = |at: usize| self.reserved.partition_point(|reserved| *reserved < at);
        match place {
            Place::Start | Place::End => Some(rest),
            Place::FirstReserved => {
                let first = *self.reserved.get(reserved_before(rest.start))?;
                (first < rest.end).then_some(first..rest.end)
            }
            Place::LastReserved => {
                let last = self.reserved[..reserved_before(rest.end)].last()?;
                (*last >= rest.start).then_some(rest.start..last + 1)
            }
        }
    }
}
