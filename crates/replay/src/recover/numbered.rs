//! Lines with their numbers in front.

/// How a number stands before its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `12:line`.
    Colon,
    /// As `cat -n`: in six columns or in as few as it needs, then a tab or an arrow.
    Columns {
        /// Whether there are spaces before it.
        is_padded: bool,
        /// What stands after it.
        separator: char,
    },
}

/// Lines whose numbers follow each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbered<'t> {
    /// The number of the first.
    pub(super) first: usize,
    /// The lines without numbers and ends.
    pub(super) lines: Vec<&'t str>,
    /// What stands after them.
    pub(super) rest: &'t str,
}

impl Style {
    /// Finds out how `cat -n`'s numbers look from the first line; also returns its number.
    pub(super) fn of_columns(text: &str) -> Option<(Self, usize)> {
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

    /// Returns what stands before the line of a number.
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

/// Reads the number or the count of lines; files of more than four thousand million have none.
pub(super) fn line_number(digits: &str) -> Option<usize> {
    digits
        .parse::<u32>()
        .ok()
        .and_then(|number| usize::try_from(number).ok())
}

/// Reads lines from the number `first` on, as far as each has the next number.
///
/// Where all of the output was trimmed, the separator of an empty last line is missing; that is an empty line too.
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
        let (style, first) = Style::of_columns(text).unwrap();
        let Numbered { first, lines, rest } = read(text, style, first);
        (first, lines, rest)
    }

    #[test]
    fn numbers_of_all_styles_are_taken_off() {
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
    fn reading_ends_where_the_next_number_is_missing() {
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
    fn empty_last_line_may_have_lost_its_separator_to_trimming() {
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
    fn what_has_no_number_in_front_has_no_style() {
        for text in [
            "",
            "words",
            "   12",
            "12: a",
            "\t1\ta",
            "18446744073709551615\ta",
        ] {
            assert_eq!(Style::of_columns(text), None, "{text:?}");
        }
    }
}
