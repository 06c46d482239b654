//! Many templates, and the one among them that a URI belongs to.
//!
//! From each template follows where every URI of it has certain literals, its landmarks; the index is a tree of these,
//! which a URI goes down from one literal that it has to the next. The templates at the places that it comes to are
//! candidates; where there are many, those go of which it lacks a piece of text anywhere. The others are matched, the
//! most specific first.

use super::matcher::Uri;
use super::{Match, Matcher};
use grams::Grams;
use index::Index;

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
/// Among a thousand templates a URI is found about as fast as among ten, and hostile URIs cost what [`Matcher`]
/// promises for one template, if the templates differ in text whose place is sure:
/// - at the start, and behind simple variables there if it starts with a reserved character: `x:{a}/1/{+b}`;
/// - in templates without a query or a fragment also at the end, and before simple variables there if it ends with
///   a reserved character: `x:{+a}/1`, `x:{+a}/1/{b}`.
///
/// Where they differ in other text alone, as `x:{+a}/1/{+b}` and `x:{a}-1-{b}` do, or in the names of queries, as
/// `x:{?a1}` does, each costs some nanoseconds to see whether the URI has that text at all, whatever its length. Those
/// of which it seems to have all are matched one after the other, the most specific first: that costs so many times
/// what one does, at worst.
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
    index: Index,
    /// For each template the pieces that a URI of it holds somewhere.
    pieces: Vec<Vec<usize>>,
}

/// So many templates are matched without a further look at the URI.
const FEW: usize = 4;

impl TemplateSet {
    /// Makes a set; the order counts where templates are equally specific.
    pub fn new(matchers: Vec<Matcher>) -> Self {
        let index = Index::new(matchers.iter().map(Matcher::landmarks).enumerate());
        let pieces_of = |matcher: &Matcher| matcher.literals().flat_map(grams::pieces).collect();
        let pieces = matchers.iter().map(pieces_of).collect();
        Self { matchers, index, pieces }
    }

    /// Finds the template of a URI: its place in the list that the set was made of, and the values.
    pub fn find(&self, uri: &str) -> Option<(usize, Match)> {
        let uri = Uri::new(uri)?;
        let mut candidates = self.index.templates_of(uri.folded());
        if candidates.len() > FEW {
            let grams = Grams::new(uri.folded());
            candidates.retain(|index| grams.have(&self.pieces[*index]));
        }
        candidates.sort_unstable_by_key(|index| self.rank(*index));
        candidates.into_iter().find_map(|index| Some((index, self.matchers[index].matches_normal(&uri)?)))
    }

    /// Gives the templates in the order in which they came.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }

    fn rank(&self, index: usize) -> (std::cmp::Reverse<usize>, usize) {
        (std::cmp::Reverse(self.matchers[index].literal_length()), index)
    }
}
