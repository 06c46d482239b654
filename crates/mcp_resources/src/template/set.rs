//! Finds the template of a URI among many.
//!
//! The text of a template says where each of its URIs has certain literals, its landmarks. A tree of
//! landmarks leads a URI from one literal that it has to the next. Where it arrives, clues narrow the
//! choice: pieces of text that the URI has somewhere, and the names in its query. The templates that are
//! left are candidates. They are matched, the most specific first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::matcher::Uri;
use super::{Match, Matcher};
use clues::{FEW, Features};
use grams::Piece;
use index::LandmarkTree;
use text::Text;

mod clues;
mod grams;
mod index;
#[cfg(test)]
mod tests;
mod text;

/// Many templates, of which it finds the one that a URI belongs to.
///
/// If several match, the most specific wins: the one with the most text of its own. Among equally
/// specific ones the first wins.
///
/// # Cost
///
/// A URI is found among a thousand templates about as fast as among ten, if the templates differ in
/// - two or more bytes of text at any place: `x:{a}/k1`, `x:{+a}/k1/{+b}`, `x:{a}-k1-{b}`;
/// - the names of their queries: `x:{?k1}`.
///
/// Other differences, such as the names in `{;k1}`, don't help. The candidates that are left are matched
/// one after the other, the most specific first.
///
/// A hostile URI costs no more than [`Matcher`] promises for one template, if the templates differ in
/// text whose place is known:
/// - at the start, and after simple variables there if the text starts with a reserved character:
///   `x:{a}/1/{+b}`;
/// - in templates without a query or a fragment also at the end, and before simple variables there if the
///   text ends with a reserved character: `x:{+a}/1`, `x:{+a}/1/{b}`.
///
/// If they differ otherwise, a URI that has the text of many templates is compared with one after the
/// other. With more than four candidates it matches nothing after [`MAX_COMPARED`] bytes.
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
    /// Places in `matchers`, the most specific first. Elsewhere a template's number is its index here.
    ranked: Vec<usize>,
    tree: LandmarkTree,
    /// For each template, by that number, the pieces that all its URIs have.
    pieces: Vec<Vec<Piece>>,
}

/// The most bytes that a set compares with templates for one URI. The URI's length counts once for each
/// template.
///
/// Beyond that, no further template is tried, and the URI matches nothing. Up to four candidates are always
/// tried. A URI of usual length needs thousands of candidates to reach this bound, one of 64 KiB needs
/// four.
pub const MAX_COMPARED: usize = 256 * 1024;

impl TemplateSet {
    /// Makes a set. The order counts among templates that are equally specific.
    pub fn new(matchers: Vec<Matcher>) -> Self {
        let mut ranked: Vec<usize> = (0..matchers.len()).collect();
        ranked.sort_by_key(|place| Reverse(matchers[*place].literal_length()));
        let in_order: Vec<&Matcher> = ranked.iter().map(|place| &matchers[*place]).collect();
        let landmarks: Vec<_> = in_order.iter().map(|matcher| matcher.landmarks()).collect();
        let features = Features::list(&in_order);
        let tree = LandmarkTree::new(&landmarks, &features);
        let pieces = features
            .into_iter()
            .map(|features| features.pieces)
            .collect();
        Self {
            ranked,
            tree,
            pieces,
            matchers,
        }
    }

    /// Finds the template of a URI. Returns its index in the list that the set was made of, and the values.
    pub fn find(&self, uri: &str) -> Option<(usize, Match)> {
        let uri = Uri::new(uri)?;
        let text = Text::new(uri.with_lower_scheme());
        let lists = self.tree.find(&text);
        let is_few = lists.iter().map(|list| list.len()).sum::<usize>() <= FEW;
        let mut lists: BinaryHeap<_> = lists.into_iter().map(Reverse).collect();
        let (mut compared, mut last) = (0, None);
        // The list on top starts with the most specific candidate that is left.
        while let Some(Reverse(list)) = lists.pop() {
            let Some((rank, rest)) = list.split_first() else {
                continue;
            };
            // A template may be in two lists, and then comes twice in a row.
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

    /// Returns the templates in the order in which they came.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }
}
