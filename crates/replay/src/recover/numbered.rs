//! Reads lines with line numbers.

/// The form of the number before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `12:line`.
    Colon,
    /// As in `cat -n`: the number, padded to six columns or not, then a tab or an arrow.
    Columns {
        /// True if spaces pad the number to six columns.
        is_padded: bool,
        /// The character after the number.
        separator: char,
    },
}

/// Lines with consecutive numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbered<'t> {
    /// The number of the first line.
    pub(super) first: usize,
    /// The lines without numbers and newlines.
    pub(super) lines: Vec<&'t str>,
    /// The text after the lines.
    pub(super) rest: &'t str,
}

impl Style {
    /// Finds the style of `cat -n` in the first line; also returns the line's number.
    pub(super) fn from_first_line(text: &str) -> Option<(Self, usize)> {
        let digits = text.trim_start_matches(' ');
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        let (number, separator) = (line_number(&digits[..end])?, digits[end..].chars().next()?);
        if !matches!(separator, '\t' | '→') {
            return None;
        }
        let is_padded = digits.len() != text.len();
        Some((
            Self::Columns {
                is_padded,
                separator,
            },
            number,
        ))
    }

    /// Returns the text before the line with this number.
    pub(super) fn prefix(self, number: usize) -> String {
        match self {
            Self::Colon => format!("{number}:"),
            Self::Columns {
                is_padded: true,
                separator,
            } => format!("{number:6}{separator}"),
            Self::Columns {
                is_padded: false,
                separator,
            } => format!("{number}{separator}"),
        }
    }
}

/// Parses a line number or a count of lines. `u32` keeps sums of them from overflowing `usize`.
pub(super) fn line_number(digits: &str) -> Option<usize> {
    digits
        .parse::<u32>()
        .ok()
        .and_then(|number| usize::try_from(number).ok())
}

/// Reads lines from the number `first` on, while each has the next number.
///
/// If the whole output was trimmed, an empty last line has no separator. It counts as an empty line.
pub(super) fn read(text: &str, style: Style, first: usize) -> Numbered<'_> {
    let (mut lines, mut rest) = (Vec::new(), text);
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let prefix = style.prefix(first + lines.len());
        let is_trimmed = !lines.is_empty() && after.trim().is_empty() && line == prefix.trim_end();
        match line.strip_prefix(&*prefix) {
            Some(line) => lines.push(line),
            None if is_trimmed => lines.push(""),
            None => return Numbered { first, lines, rest },
        }
        rest = after;
        if rest.is_empty() {
            return Numbered { first, lines, rest };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(text: &str) -> (usize, Vec<&str>, &str) {
        let (style, first) = Style::from_first_line(text).unwrap();
        let Numbered { first, lines, rest } = read(text, style, first);
        (first, lines, rest)
    }

    #[test]
    fn numbers_of_all_styles_are_removed() {
        assert_eq!(
            columns("     9\ta\n    10\t\tb\n    11\t"),
            (9, vec!["a", "\tb", ""], "")
        );
        assert_eq!(columns("     1→a→\n     2→"), (1, vec!["a→", ""], ""));
        assert_eq!(
            columns("999999→a\n1000000→b"),
            (999_999, vec!["a", "b"], "")
        );
        assert_eq!(columns("1\ta\n2\tb\n"), (1, vec!["a", "b"], ""));
        let colon = read("7:a:b\n8:\n", Style::Colon, 7);
        assert_eq!((colon.lines, colon.rest), (vec!["a:b", ""], ""));
    }

    #[test]
    fn reading_ends_before_a_missing_number() {
        assert_eq!(columns("     1\ta\n     3\tb"), (1, vec!["a"], "     3\tb"));
        assert_eq!(
            columns("     1\ta\n2\tb"),
            (1, vec!["a"], "2\tb"),
            "other columns"
        );
        assert_eq!(
            columns("     1\ta\n     2→b"),
            (1, vec!["a"], "     2→b"),
            "another separator"
        );
        assert_eq!(columns("     1\ta\n\nwords"), (1, vec!["a"], "\nwords"));
    }

    #[test]
    fn trimmed_empty_last_line_counts() {
        assert_eq!(columns("     1\ta\n     2"), (1, vec!["a", ""], ""));
        assert_eq!(columns("     1\ta\n     2\n\n"), (1, vec!["a", ""], "\n"));
        assert_eq!(
            columns("     1\ta\n     2\nmore"),
            (1, vec!["a"], "     2\nmore")
        );
    }

    proptest! {
        #[test]
        fn lines_that_were_numbered_are_read_back(
            lines in prop::collection::vec("[ -~é\t]{0,12}", 1..40),
            first in 1usize..2_000_000,
            is_padded: bool,
            has_arrow: bool,
        ) {
            let separator = if has_arrow { '→' } else { '\t' };
            for style in [Style::Colon, Style::Columns { is_padded, separator }] {
                let number = |(index, line)| format!("{}{line}", style.prefix(first + index));
                let text = lines.iter().enumerate().map(number).collect::<Vec<String>>().join("\n");
                let numbered = read(&text, style, first);
                prop_assert_eq!(&numbered.lines, &lines);
                prop_assert_eq!(numbered.rest, "");
            }
        }
    }

    #[test]
    fn line_without_a_number_has_no_style() {
        for text in [
            "",
            "words",
            "   12",
            "12: a",
            "\t1\ta",
            "18446744073709551615\ta",
        ] {
            assert_eq!(Style::from_first_line(text), None, "{text:?}");
        }
    }
}
