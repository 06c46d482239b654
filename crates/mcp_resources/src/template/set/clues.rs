//! Finds templates by what their URIs have somewhere: a piece of text, or a name in the query.

use std::collections::{HashMap, HashSet};

use super::grams::{Groups, Piece};
use super::text::Text;
use crate::template::matcher::QueryNames;
use crate::template::matcher::steps::count;
use crate::template::{MAX_ITEMS, Matcher};

/// So few candidates are all matched, however long the URI is, and without a look for their pieces.
pub(super) const FEW: usize = 4;

/// The number of pieces that are kept of a template, the rarest ones. A URI that has them is worth matching.
const PIECES: usize = 16;

/// The parts that all URIs of a template have, at any place.
#[derive(Debug, Clone)]
pub(super) struct Features<'t> {
    /// Pieces of text that all of them have, the rarest first.
    pub(super) pieces: Vec<Piece>,
    pub(super) query: Option<QueryNames<'t>>,
}

/// Templates by their clues. All lists are sorted.
#[derive(Debug, Clone, Default)]
pub(super) struct Clues {
    /// Templates without a clue, or too few to need one.
    others: Vec<usize>,
    /// Each under the group of its piece that the fewest other templates have.
    by_piece: HashMap<u32, Vec<usize>>,
    /// The keys of `by_piece`.
    groups: Option<Groups>,
    by_query: Vec<ByQuery>,
}

/// Templates whose queries start at the same place.
#[derive(Debug, Clone)]
struct ByQuery {
    byte: u8,
    before: usize,
    /// The templates that a URI without a query may match. Of templates that differ only in the query,
    /// the first is enough.
    without: Vec<usize>,
    /// By each name in their queries.
    by_name: HashMap<String, Vec<usize>>,
}

impl Clues {
    /// Files sorted templates. A template's number is the index of its features.
    pub(super) fn new(templates: Vec<usize>, features: &[Features<'_>]) -> Self {
        let mut clues = Self::default();
        if templates.len() <= FEW {
            clues.others = templates;
            return clues;
        }
        let mut pieces: HashMap<Piece, usize> = HashMap::new();
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut without = HashSet::new();
        for features in templates.iter().map(|template| &features[*template]) {
            features
                .pieces
                .iter()
                .for_each(|piece| *pieces.entry(*piece).or_default() += 1);
            features
                .names()
                .for_each(|name| *names.entry(name).or_default() += 1);
        }
        for template in templates {
            let features = &features[template];
            let piece = features.pieces.iter().min_by_key(|piece| pieces[piece]);
            let rarest = features.names().map(|name| names[name]).min();
            match (piece, &features.query) {
                (Some(piece), _) if rarest.is_none_or(|name| pieces[piece] <= name) => {
                    clues
                        .by_piece
                        .entry(piece.group())
                        .or_default()
                        .push(template);
                }
                (_, Some(query)) if rarest.is_some() => {
                    let is_first = without.insert(query.without);
                    clues.by_query(query).push(template, query, is_first);
                }
                _ => clues.others.push(template),
            }
        }
        clues.groups =
            (!clues.by_piece.is_empty()).then(|| clues.by_piece.keys().copied().collect());
        clues
    }

    fn by_query(&mut self, query: &QueryNames<'_>) -> &mut ByQuery {
        let (byte, before) = (query.byte, query.before);
        let known = self
            .by_query
            .iter()
            .position(|known| (known.byte, known.before) == (byte, before));
        let index = known.unwrap_or_else(|| {
            self.by_query.push(ByQuery {
                byte,
                before,
                without: Vec::new(),
                by_name: HashMap::new(),
            });
            self.by_query.len() - 1
        });
        &mut self.by_query[index]
    }

    /// Finds the templates that may match a URI, as sorted lists.
    pub(super) fn find<'c>(&'c self, text: &'c Text<'_>, found: &mut Vec<&'c [usize]>) {
        found.push(&self.others);
        if let Some(groups) = &self.groups {
            found.extend(
                groups
                    .shared_with(text.grams().groups())
                    .map(|group| &*self.by_piece[&group]),
            );
        }
        self.by_query
            .iter()
            .for_each(|query| query.find(text.uri(), found));
    }
}

impl ByQuery {
    fn push(&mut self, template: usize, query: &QueryNames<'_>, is_first: bool) {
        self.without.extend(is_first.then_some(template));
        for name in &query.names {
            let named = self.by_name.entry((*name).to_owned()).or_default();
            // A template may mention a name twice.
            if named.last() != Some(&template) {
                named.push(template);
            }
        }
    }

    fn find<'c>(&'c self, uri: &str, found: &mut Vec<&'c [usize]>) {
        count(uri.len());
        let mut starts = uri
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == self.byte);
        let start = starts.nth(self.before).map(|(at, _)| at);
        // For templates with a fragment, what follows a `#` is no query.
        if start.is_none_or(|start| uri[..start].contains('#')) {
            found.push(&self.without);
        }
        if let Some(start) = start {
            let (query, _) = uri[start + 1..]
                .split_once('#')
                .unwrap_or((&uri[start + 1..], ""));
            let names = query
                .split('&')
                .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
            // A template that matches has all of the names, so the rarest is enough.
            let named = names
                .take(MAX_ITEMS)
                .map(|name| self.by_name.get(name).map_or(&[][..], Vec::as_slice));
            found.extend(named.min_by_key(|list| list.len()));
        }
    }
}

impl<'t> Features<'t> {
    /// Returns the features of each matcher.
    pub(super) fn list(matchers: &[&'t Matcher]) -> Vec<Self> {
        let all_pieces: Vec<HashSet<Piece>> = matchers
            .iter()
            .map(|matcher| matcher.literals().flat_map(Piece::from_literal).collect())
            .collect();
        // How many matchers have a piece.
        let mut common: HashMap<Piece, usize> = HashMap::new();
        for piece in all_pieces.iter().flatten() {
            *common.entry(*piece).or_default() += 1;
        }
        let mut features = Vec::new();
        for (matcher, pieces) in matchers.iter().zip(all_pieces) {
            let mut pieces: Vec<_> = pieces.into_iter().collect();
            pieces.sort_by_key(|piece| (common[piece], *piece));
            pieces.truncate(PIECES);
            features.push(Self {
                pieces,
                query: matcher.query_names(),
            });
        }
        features
    }

    /// Iterates over the names in the query.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.query
            .iter()
            .flat_map(|query| query.names.iter().copied())
    }
}
