//! Many templates, and the one among them that a URI belongs to.

use super::matcher::Uri;
use super::{Match, Matcher};

#[cfg(test)]
mod tests;

/// Templates, found by the text that they start with.
///
/// Where several match, the most specific wins, which is the one with the most text of its own, and among equals the
/// one that came first. Templates whose own text at the start differs from the URI's cost nothing: among a thousand
/// of them a URI is found about as fast as among ten.
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
    /// By prefix, in order, each once.
    groups: Vec<Group>,
}

/// The templates that a URI with a certain start may match.
#[derive(Debug, Clone)]
struct Group {
    prefix: String,
    /// The group with the longest prefix that this one's starts with.
    parent: Option<usize>,
    /// The templates of this group, the most specific first.
    members: Vec<usize>,
}

impl TemplateSet {
    /// Makes a set; the order counts where templates are equally specific.
    pub fn new(matchers: Vec<Matcher>) -> Self {
        let mut set = Self { matchers, groups: Vec::new() };
        let mut order: Vec<usize> = (0..set.matchers.len()).collect();
        order.sort_by(|one, other| set.sort_key(*one).cmp(&set.sort_key(*other)));
        for index in order {
            set.add(index);
        }
        set
    }

    /// Finds the template of a URI: its place in the list that the set was made of, and the values.
    pub fn find(&self, uri: &str) -> Option<(usize, Match)> {
        let uri = Uri::new(uri)?;
        let mut candidates: Vec<usize> =
            self.groups_of(uri.folded()).flat_map(|group| group.members.iter().copied()).collect();
        candidates.sort_unstable_by_key(|index| self.rank(*index));
        candidates.into_iter().find_map(|index| Some((index, self.matchers[index].matches_normal(&uri)?)))
    }

    /// Gives the templates in the order in which they came.
    pub fn matchers(&self) -> &[Matcher] {
        &self.matchers
    }

    /// Adds a template that sorts after those that are there.
    fn add(&mut self, index: usize) {
        let prefix = self.matchers[index].prefix();
        let parent = self.nearest(prefix, self.groups.len().checked_sub(1));
        match parent {
            Some(group) if self.groups[group].prefix == prefix => self.groups[group].members.push(index),
            _ => self.groups.push(Group { prefix: prefix.to_owned(), parent, members: vec![index] }),
        }
    }

    /// The groups whose prefixes a URI starts with, the longest first. All of them are among the parents of the
    /// last group that does not sort after the URI, or that one.
    fn groups_of(&self, uri: &str) -> impl Iterator<Item = &Group> {
        let after = self.groups.partition_point(|group| group.prefix.as_str() <= uri);
        let first = self.nearest(uri, after.checked_sub(1));
        std::iter::successors(first, |group| self.groups[*group].parent).map(|group| &self.groups[group])
    }

    /// The first from this group up through its parents that the text starts with.
    fn nearest(&self, text: &str, from: Option<usize>) -> Option<usize> {
        std::iter::successors(from, |group| self.groups[*group].parent)
            .find(|group| text.starts_with(&self.groups[*group].prefix))
    }

    fn sort_key(&self, index: usize) -> (&str, impl Ord + use<>) {
        (self.matchers[index].prefix(), self.rank(index))
    }

    fn rank(&self, index: usize) -> (std::cmp::Reverse<usize>, usize) {
        (std::cmp::Reverse(self.matchers[index].literal_length()), index)
    }
}
