//! Many templates, and the one among them that a URI belongs to.
//!
//! From each template follows where every URI of it has certain literals, its landmarks; the index is a tree of these,
//! which a URI goes down from one literal that it has to the next. At the places that it comes to, its clues lead on:
//! pieces of text that it has somewhere, and the first name in its query. The templates found so are candidates, which
//! are matched, the most specific first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::matcher::Uri;
use super::{Match, Matcher};
use clues::Features;
use grams::Piece;
use index::{Index, Text};

mod clues;
mod grams;
mod index;
#[cfg(test)]
mod tests;

/// Templates, found by the text that they hold.
///
/// Where several match, the most specific wins, which is the one with the most text of its own, and among equals the
/// one that came first.
///
/// # Cost
///
/// Among a thousand templates a URI is found about as fast as among ten, if they differ in
/// - two bytes of text or more, wherever that stands: `x:{a}/k1`, `x:{+a}/k1/{+b}`, `x:{a}-k1-{b}`;
/// - the names of their queries: `x:{?k1}`.
///
/// What they differ in otherwise, as in the names of `{;k1}`, is no help: those that are left are matched one after
/// the other, the most specific first.
///
/// Hostile URIs cost what [`Matcher`] promises for one template, if the templates differ in text whose place is sure:
/// - at the start, and behind simple variables there if it starts with a reserved character: `x:{a}/1/{+b}`;
/// - in templates without a query or a fragment also at the end, and before simple variables there if it ends with
///   a reserved character: `x:{+a}/1`, `x:{+a}/1/{b}`.
///
/// Where they differ otherwise, a URI that has the text of many is compared with one after the other, and given up on
/// after [`MAX_COMPARED`] bytes, if they are more than 4.
///
/// ```
/// use mcp_resources::template::{Matcher, TemplateSet, UriTemplate};
///
/// let matcher = |template| Matcher::new(&UriTemplate::parse(template)?);
/// let set = TemplateSet::new(vec![matcher("org://{+path}")?, matcher("org://id/{id}")?]);
/// let (index, found) = set.find("org://id/7").expect("both match");
/// assert_eq!((index, found.text("id")), (1, Some("7")));
/// # Ok::<(), mcp_resources::template::TemplateError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TemplateSet {
    matchers: Vec<Matcher>,
    /// Their places, the most specific first. The index knows them by where they stand here.
    ranked: Vec<usize>,
    index: Index,
    /// For each, in that order, pieces that a URI of it holds somewhere.
    pieces: Vec<Vec<Piece>>,
}

/// After so many bytes that a set compared a URI with templates for, its length counted for each, no further template is
/// tried, and the URI matches nothing; but where no more than 4 may match, all are tried. It takes thousands of candidates
/// for a URI of usual length to get there, and 4 for one of 64 KiB.
pub const MAX_COMPARED: usize = 256 * 1024;

/// So many templates are matched without a further look at the URI, however long that is.
const FEW: usize = 4;

impl TemplateSet {
    /// Makes a set; the order counts where templates are equally specific.
    pub fn new(matchers: Vec<Matcher>) -> Self {
        let mut ranked: Vec<usize> = (0..matchers.len()).collect();
        ranked.sort_by_key(|place| Reverse(matchers[*place].literal_length()));
        let in_order: Vec<&Matcher> = ranked.iter().map(|place| &matchers[*place]).collect();
        let landmarks: Vec<_> = in_order.iter().map(|matcher| matcher.landmarks()).collect();
        let features = Features::of_all(&in_order);
        let index = Index::new(&landmarks, &features);
        let pieces = features
            .into_iter()
            .map(|features| features.pieces)
            .collect();
        Self {
            ranked,
            index,
            pieces,
            matchers,
        }
    }

    /// Finds the template of a URI: its place in the list that the set was made of, and the values.
    pub fn find(&self, uri: &str) -> Option<(usize, Match)> {
        let uri = Uri::new(uri)?;
        let text = Text::new(uri.folded());
        let lists = self.index.find(&text);
        let is_few = lists.iter().map(|list| list.len()).sum::<usize>() <= FEW;
        let mut lists: BinaryHeap<_> = lists.into_iter().map(Reverse).collect();
        let (mut compared, mut last) = (0, None);
        // The list on top starts with the most specific one that is left.
        while let Some(Reverse(list)) = lists.pop() {
            let Some((rank, rest)) = list.split_first() else {
                continue;
            };
            // One may be in two lists.
            let is_new = last.replace(*rank) != Some(*rank);
            let place = self.ranked[*rank];
            if is_new && (is_few || text.grams().have(&self.pieces[*rank])) {
                if compared >= MAX_COMPARED && !is_few {
                    return None;
                }
                compared += text.uri().len();
                if let Some(found) = self.matchers[place].matches_normal(&uri) {
                    return Some((place, found));
                }
            }
            lists.push(Reverse(rest));
        }
        None
    }

    /// Gives the templates in the order in which they came.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }
}
