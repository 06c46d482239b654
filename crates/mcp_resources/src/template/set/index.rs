//! Finds templates by their landmarks.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use super::clues::{Clues, Features};
use super::text::Text;
use crate::template::matcher::steps::count;
use crate::template::matcher::{Landmark, Place};

/// A tree of literals. A URI that has the literal of an edge follows it, and continues with the rest of
/// its text.
#[derive(Debug, Clone, Default)]
pub(super) struct LandmarkTree {
    /// The templates without further landmarks.
    templates: Clues,
    branches: Vec<Branch>,
}

/// The literals that may stand at one place of a URI.
#[derive(Debug, Clone)]
struct Branch {
    place: Place,
    /// Sorted by literal, each once.
    edges: Vec<Edge>,
}

#[derive(Debug, Clone)]
struct Edge {
    /// The literal. At a place that is found from the end, its last byte comes first.
    literal: Vec<u8>,
    /// The edge with the longest literal that this literal starts with.
    parent: Option<usize>,
    tree: LandmarkTree,
}

impl LandmarkTree {
    /// Makes a tree of templates. A template's number is its index in both lists.
    pub(super) fn new(landmarks: &[Vec<Landmark<'_>>], features: &[Features<'_>]) -> Self {
        Self::build(landmarks.iter().map(Vec::as_slice).enumerate(), features)
    }

    fn build<'l>(
        templates: impl Iterator<Item = (usize, &'l [Landmark<'l>])>,
        features: &[Features<'_>],
    ) -> Self {
        let mut tree = Self::default();
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
        tree.templates = Clues::new(here, features);
        for ((place, literal), templates) in below {
            tree.branch(place)
                .push(literal, Self::build(templates.into_iter(), features));
        }
        tree
    }

    /// Returns the branch of a place. Places come in order, so it is the last one or new.
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

    /// Finds the templates that may match a URI, as sorted lists.
    pub(super) fn find<'i>(&'i self, text: &'i Text<'_>) -> Vec<&'i [usize]> {
        let mut found = Vec::new();
        self.find_in(text, 0..text.uri().len(), &mut found);
        found
    }

    fn find_in<'i>(&'i self, text: &'i Text<'_>, rest: Range<usize>, found: &mut Vec<&'i [usize]>) {
        self.templates.find(text, found);
        for branch in &self.branches {
            let Some(rest) = text.rest_at(branch.place, rest.clone()) else {
                continue;
            };
            for edge in branch.matching_edges(&text.uri().as_bytes()[rest.clone()]) {
                edge.tree.find_in(
                    text,
                    branch.place.after(edge.literal.len(), rest.clone()),
                    found,
                );
            }
        }
    }
}

impl Branch {
    /// Adds a literal that sorts after the others.
    fn push(&mut self, literal: Vec<u8>, tree: LandmarkTree) {
        let parent = self.nearest(self.edges.len().checked_sub(1), |known| {
            literal.starts_with(known)
        });
        self.edges.push(Edge {
            literal,
            parent,
            tree,
        });
    }

    /// Returns the edges whose literals a text has. The last edge that does not sort after the text is one
    /// of them, or some of its parents are; no other edge can be.
    fn matching_edges<'b>(&'b self, text: &[u8]) -> impl Iterator<Item = &'b Edge> {
        let after = self
            .edges
            .partition_point(|edge| self.place.compare(&edge.literal, text).is_le());
        let first = self.nearest(after.checked_sub(1), |literal| {
            self.place.has(text, literal)
        });
        self.upwards(first).map(|edge| &self.edges[edge])
    }

    /// Returns the first that fits among an edge, its parent, and so on.
    fn nearest(&self, from: Option<usize>, fits: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.upwards(from)
            .find(|edge| fits(&self.edges[*edge].literal))
    }

    /// Iterates over an edge, its parent, and so on.
    fn upwards(&self, edge: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(edge, |edge| self.edges[*edge].parent)
    }
}

impl Place {
    /// Returns whether literals here are found from the start of the text.
    fn is_left(self) -> bool {
        matches!(self, Self::Start | Self::FirstReserved)
    }

    /// Returns a literal in the form in which literals are sorted.
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

    /// Returns what is left of `rest` without a literal of this length.
    fn after(self, length: usize, rest: Range<usize>) -> Range<usize> {
        if self.is_left() {
            rest.start + length..rest.end
        } else {
            rest.start..rest.end - length
        }
    }
}
