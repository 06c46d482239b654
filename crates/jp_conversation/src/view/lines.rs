//! Lines of texts, and of files that texts are parts of.

use std::{fmt, ops::Range};

use memchr::{memchr, memchr_iter, memmem};

/// Lines of a file, from 1, the last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first one.
    pub first: usize,
    /// The last one.
    pub last: usize,
}

impl Span {
    /// Reads a fragment: `L10-200`, `L10-L200` or `L7`; numbers beyond 32 bits are none of a file's lines.
    pub(super) fn of_fragment(fragment: &str) -> Option<Self> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u32>().ok()).flatten()?.try_into().ok()
        };
        let lines = fragment.strip_prefix('L')?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first, last) = (number(first)?, number(last.strip_prefix('L').unwrap_or(last))?);
        (1 <= first && first <= last).then_some(Self { first, last })
    }

    /// Returns the lines of a text whose first one is `first`.
    pub(super) fn of_text(text: &str, first: usize) -> Self {
        Self { first, last: first + count(text).max(1) - 1 }
    }

    /// Returns where its lines are in a text whose first line is `first`, as indexes from 0.
    pub(super) fn indexes(self, first: usize) -> Option<Range<usize>> {
        Some(self.first.checked_sub(first)?..self.last.checked_sub(first)? + 1)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "line {first}") } else { write!(f, "lines {first}-{last}") }
    }
}

/// Counts lines; the last one need not be ended.
pub(super) fn count(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count() + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns where a line starts, by its index from 0; `None` where the text has fewer.
fn start(text: &str, index: usize) -> Option<usize> {
    match index.checked_sub(1) {
        None => Some(0),
        Some(before) => memchr_iter(b'\n', text.as_bytes()).nth(before).map(|at| at + 1),
    }
}

/// Returns lines of a text by their indexes from 0, line breaks included; fewer where it ends before.
pub(super) fn slice(text: &str, lines: Range<usize>) -> Option<&str> {
    let rest = &text[start(text, lines.start)?..];
    Some(start(rest, lines.len()).map_or(rest, |end| &rest[..end]))
}

/// Finds whole lines in a text; returns the index of the first of them. The break of the last one does not count.
///
/// They are looked for at line `expected` first.
pub(super) fn find(text: &str, lines: &str, expected: Option<usize>) -> Option<usize> {
    let lines = lines.strip_suffix('\n').unwrap_or(lines);
    let is_whole = |at: usize| {
        let starts = at == 0 || text.as_bytes()[at - 1] == b'\n';
        let end = at + lines.len();
        starts && (end == text.len() || text.as_bytes()[end] == b'\n')
    };
    let stands_at = |at: &usize| text[*at..].starts_with(lines) && is_whole(*at);
    if let Some(index) = expected.filter(|index| start(text, *index).is_some_and(|at| stands_at(&at))) {
        return Some(index);
    }
    // Every find that is not whole is behind the last one by its length: what overlaps is not looked at.
    let at = memmem::find_iter(text.as_bytes(), lines.as_bytes()).find(|at| is_whole(*at))?;
    Some(memchr_iter(b'\n', &text.as_bytes()[..at]).count())
}

/// Returns how long the whole lines are with which both texts begin.
pub(super) fn common_head(left: &str, right: &str) -> usize {
    let same = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    left.as_bytes()[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Returns how long the whole lines are with which both texts end.
pub(super) fn common_tail(left: &str, right: &str) -> usize {
    let same = left.bytes().rev().zip(right.bytes().rev()).take_while(|(left, right)| left == right).count();
    let is_start = |text: &str| same == text.len() || text.as_bytes()[text.len() - same - 1] == b'\n';
    if is_start(left) && is_start(right) {
        return same;
    }
    let tail = &left.as_bytes()[left.len() - same..];
    memchr(b'\n', tail).map_or(0, |at| same - at - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_name_lines() {
        let span = |first, last| Some(Span { first, last });
        for (fragment, expected) in [
            ("L10-200", span(10, 200)),
            ("L10-L200", span(10, 200)),
            ("L7", span(7, 7)),
            ("L0-3", None),
            ("L9-3", None),
            ("L", None),
            ("L1-", None),
            ("L+1-3", None),
            ("section", None),
            ("L99999999999999999999999", None),
            ("L1-4294967296", None),
        ] {
            assert_eq!(Span::of_fragment(fragment), expected, "{fragment}");
        }
    }

    #[test]
    fn lines_are_found_whole() {
        let text = "a\nab\nb\nab\n";
        assert_eq!(find(text, "ab\n", None), Some(1));
        assert_eq!(find(text, "ab", Some(3)), Some(3));
        assert_eq!(find(text, "b\nab", Some(1)), Some(2));
        assert_eq!(find(text, "b\na", None), None);
        assert_eq!(find("xb\nb", "b", None), Some(1));
        assert_eq!(find("a", "b", Some(7)), None);
    }

    #[test]
    fn slices_are_of_whole_lines() {
        assert_eq!(slice("a\nb\nc", 1..3), Some("b\nc"));
        assert_eq!(slice("a\nb\nc", 1..2), Some("b\n"));
        assert_eq!(slice("a\nb\nc", 2..9), Some("c"));
        assert_eq!(slice("a\nb\nc", 3..4), None);
        assert_eq!((count(""), count("a"), count("a\n"), count("a\nb")), (0, 1, 1, 2));
    }

    #[test]
    fn common_lines_are_whole() {
        assert_eq!(common_head("a\nbc\nd", "a\nbc\ne"), 5);
        assert_eq!(common_head("a\nbc", "a\nbd"), 2);
        assert_eq!(common_tail("x\na\nb\n", "y\na\nb\n"), 4);
        assert_eq!(common_tail("xa\nb\n", "ya\nb\n"), 2);
        assert_eq!(common_tail("a\nb", "a\nb"), 3);
        assert_eq!(common_tail("a\n", "b\n"), 0);
    }
}
