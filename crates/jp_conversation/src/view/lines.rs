//! Counts and compares lines of texts.

use std::{fmt, ops::Range};

use memchr::{memchr, memchr_iter};

/// Lines of a file, from 1, the last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first one.
    pub first: usize,
    /// The last one.
    pub last: usize,
}

impl Span {
    /// Parses a fragment: `L10-200`, `L10-L200` or `L7`. Numbers beyond 32 bits aren't line numbers.
    pub(super) fn from_fragment(fragment: &str) -> Option<Self> {
        let lines = fragment.strip_prefix('L')?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let first = line_number(first)?;
        let last = line_number(last.strip_prefix('L').unwrap_or(last))?;
        (1 <= first && first <= last).then_some(Self { first, last })
    }

    /// Returns the lines with these indexes, of a text whose first line is `first`.
    pub(super) fn from_indexes(first: usize, indexes: &Range<usize>) -> Self {
        Self {
            first: first + indexes.start,
            // A span includes its last line, a range excludes it.
            last: first + indexes.end - 1,
        }
    }

    /// Returns the lines of a text whose first one is `first`.
    pub(super) fn from_text(text: &str, first: usize) -> Self {
        Self {
            first,
            last: first + count(text).max(1) - 1,
        }
    }
}

fn line_number(text: &str) -> Option<usize> {
    // `parse` alone would accept a sign.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = text.parse().ok().filter(|_| is_number)?;
    number.try_into().ok()
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last {
            write!(f, "line {first}")
        } else {
            write!(f, "lines {first}-{last}")
        }
    }
}

/// Counts lines. The last one may lack a newline.
pub(super) fn count(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
        + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the offset of each line's start, and the length of the text.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::with_capacity(text.len() / 32 + 2);
    starts.push(0);
    starts.extend(memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
    if !text.is_empty() && !text.ends_with('\n') {
        starts.push(text.len());
    }
    starts
}

/// Returns the length of the common whole lines at the start of two texts.
pub(super) fn common_head(left: &str, right: &str) -> usize {
    let same = left
        .bytes()
        .zip(right.bytes())
        .take_while(|(left, right)| left == right)
        .count();
    left.as_bytes()[..same]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1)
}

/// Returns the length of the common whole lines at the end of two texts.
pub(super) fn common_tail(left: &str, right: &str) -> usize {
    let same = left
        .bytes()
        .rev()
        .zip(right.bytes().rev())
        .take_while(|(left, right)| left == right)
        .count();
    if is_line_start(left, left.len() - same) && is_line_start(right, right.len() - same) {
        return same;
    }
    let tail = &left.as_bytes()[left.len() - same..];
    memchr(b'\n', tail).map_or(0, |at| same - at - 1)
}

fn is_line_start(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
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
            assert_eq!(Span::from_fragment(fragment), expected, "{fragment}");
        }
    }

    #[test]
    fn last_line_counts_without_a_newline() {
        assert_eq!(
            (count(""), count("a"), count("a\n"), count("a\nb")),
            (0, 1, 1, 2)
        );
        let starts = |text| super::starts(text);
        assert_eq!(
            (starts(""), starts("a"), starts("a\n"), starts("a\nb")),
            (vec![0], vec![0, 1], vec![0, 2], vec![0, 2, 3])
        );
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
