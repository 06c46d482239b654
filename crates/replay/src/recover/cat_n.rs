//! `view` of the editor tool that SWE-agent has from Anthropic: a heading, then lines numbered as by `cat -n`.
//!
//! It numbers what stands after the file's last newline too. A long file is cut in the middle of a line, which stays
//! text with the note on it; those before it are whole. What `str_replace` and `insert` print of the edited file stays
//! text: some versions number it one too low.

use std::borrow::Cow;

use super::{
    Excerpt, Piece, numbered,
    numbered::{Numbered, Style},
    range, with_ends,
};

/// What a history, in which observations stand as the model was told them, may have before the output.
const TEMPLATE: &str = "OBSERVATION:\n";
const HEADING: &str = "Here's the result of running `cat -n` on ";
/// Stands where a long file was cut.
const CLIPPED: &str = "<response clipped>";

/// Returns what the output of the editor tool shows, if it is a file; `command` is how it was called.
#[must_use]
pub fn pieces(command: &str, output: &str) -> Option<Vec<Piece>> {
    let (template, output) = output.split_at(if output.starts_with(TEMPLATE) {
        TEMPLATE.len()
    } else {
        0
    });
    let (heading, numbered) = output.strip_prefix(HEADING)?.split_once('\n')?;
    let unended = without_returns(heading, numbered)?;
    let path = heading.trim_end_matches('\r').strip_suffix(':')?;
    let (style, first) = Style::of_columns(&unended)?;
    let read = numbered::read(&unended, style, first);
    if !read.rest.trim().is_empty() || first == 0 {
        return None;
    }
    let shown = match unended.contains(CLIPPED) {
        true => clipped(path, style, &read)?,
        false => vec![Piece::Excerpt(unclipped(path, command, &read)?)],
    };
    Some(Piece::text(template).into_iter().chain(shown).collect())
}

fn unclipped(path: &str, command: &str, read: &Numbered<'_>) -> Option<Excerpt> {
    let is_view =
        command.split_whitespace().any(|word| word == "view") && !command.contains("view_range");
    if read.first == 1 && is_view {
        return Some(Excerpt {
            path: path.to_owned(),
            lines: None,
            text: read.lines.join("\n"),
        });
    }
    range(path, read.first, &read.lines)
}

/// Takes the lines before the one that was cut.
fn clipped(path: &str, style: Style, read: &Numbered<'_>) -> Option<Vec<Piece>> {
    let (cut, whole) = read.lines.split_last()?;
    let is_cut_there = cut.contains(CLIPPED) && !whole.iter().any(|line| line.contains(CLIPPED));
    let next = read.first + whole.len();
    let lines = (is_cut_there && !whole.is_empty()).then(|| read.first..=next - 1)?;
    let excerpt = Excerpt {
        path: path.to_owned(),
        lines: Some(lines),
        text: with_ends(whole),
    };
    Some(vec![
        Piece::Excerpt(excerpt),
        Piece::Text(format!("{}{cut}\n", style.prefix(next))),
    ])
}

/// Takes off the carriage return that a terminal puts before each newline, where the heading has one.
///
/// What stands after the first newline without one was added to the terminal's output, and has none at all.
pub(super) fn without_returns<'t>(heading: &str, text: &'t str) -> Option<Cow<'t, str>> {
    if !heading.ends_with('\r') {
        return Some(text.into());
    }
    let is_bare = |at: &usize| !text[..*at].ends_with('\r');
    let end = text
        .match_indices('\n')
        .map(|(at, _)| at)
        .find(is_bare)
        .unwrap_or(text.len());
    let (output, added) = text.split_at(end);
    (!added.contains('\r')).then(|| (output.replace("\r\n", "\n") + added).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: &str = "str_replace_editor view /testbed/a.py";
    const PART: &str = "str_replace_editor view /testbed/a.py --view_range 4 5";

    fn excerpt(
        command: &str,
        numbered: &str,
    ) -> Option<(Option<std::ops::RangeInclusive<usize>>, String)> {
        let output = format!("{HEADING}/testbed/a.py:\n{numbered}");
        match pieces(command, &output)?.as_slice() {
            [Piece::Excerpt(Excerpt { path, lines, text })] => {
                assert_eq!(path, "/testbed/a.py");
                Some((lines.clone(), text.clone()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn whole_file_ends_as_its_numbers_say() {
        let whole = |text: &str| Some((None, text.to_owned()));
        assert_eq!(
            excerpt(VIEW, "     1\ta\n     2\tb\n     3\t\n\n"),
            whole("a\nb\n")
        );
        assert_eq!(
            excerpt(VIEW, "     1\ta\n     2\tb\n     3"),
            whole("a\nb\n")
        );
        assert_eq!(excerpt(VIEW, "     1\ta\n     2\tb\n"), whole("a\nb"));
        assert_eq!(excerpt(VIEW, "     1\t\n"), whole(""));
    }

    #[test]
    fn part_has_the_lines_of_its_numbers() {
        assert_eq!(
            excerpt(PART, "     4\ta\n     5\tb\n"),
            Some((Some(4..=5), "a\nb\n".to_owned()))
        );
        assert_eq!(
            excerpt(PART, "     4\ta\n     5\t\n"),
            Some((Some(4..=4), "a\n".to_owned()))
        );
        let of_unknown = excerpt("", "     1\ta\n     2\tb\n");
        assert_eq!(
            of_unknown,
            Some((Some(1..=2), "a\nb\n".to_owned())),
            "no command says that it is all"
        );
    }

    #[test]
    fn line_that_was_cut_stays_text_with_the_note_on_it() {
        let output = format!(
            "{HEADING}/a.py:\n     1\ta\n     2\t\n     3\thal<response clipped><NOTE>Cut.</NOTE>\n"
        );
        let lines = Excerpt {
            path: "/a.py".to_owned(),
            lines: Some(1..=2),
            text: "a\n\n".to_owned(),
        };
        let rest = "     3\thal<response clipped><NOTE>Cut.</NOTE>\n".to_owned();
        assert_eq!(
            pieces(VIEW, &output),
            Some(vec![Piece::Excerpt(lines), Piece::Text(rest)])
        );
    }

    #[test]
    fn words_of_a_template_stay() {
        let output = format!("{TEMPLATE}{HEADING}/a.py:\n     1\ta\n");
        let whole = Excerpt {
            path: "/a.py".to_owned(),
            lines: None,
            text: "a".to_owned(),
        };
        assert_eq!(
            pieces(VIEW, &output),
            Some(vec![
                Piece::Text(TEMPLATE.to_owned()),
                Piece::Excerpt(whole)
            ])
        );
    }

    #[test]
    fn carriage_returns_of_a_terminal_are_no_content() {
        let output = format!("{HEADING}/a.py:\r\n     1\ta\r\n     2\tb\r\n");
        let Some(Piece::Excerpt(excerpt)) =
            pieces(VIEW, &output).and_then(|mut pieces| pieces.pop())
        else {
            panic!("{output:?}")
        };
        assert_eq!((&*excerpt.path, &*excerpt.text), ("/a.py", "a\nb"));
        assert_eq!(excerpt_of_crlf_file(), Some((None, "a\r\nb\r".to_owned())));
    }

    fn excerpt_of_crlf_file() -> Option<(Option<std::ops::RangeInclusive<usize>>, String)> {
        excerpt(VIEW, "     1\ta\r\n     2\tb\r\n")
    }

    #[test]
    fn what_does_not_fit_stays_text() {
        assert_eq!(excerpt(VIEW, "     1\ta\n     3\tb\n"), None, "a gap");
        assert_eq!(
            excerpt(VIEW, "     1\ta<response clipped><NOTE>and so on</NOTE>\n"),
            None
        );
        assert_eq!(
            excerpt(VIEW, "     1\ta<response clipped>\n     2\tb\n"),
            None,
            "words of the file"
        );
        assert_eq!(excerpt(VIEW, "     1\ta\nReview the changes.\n"), None);
        assert_eq!(excerpt(VIEW, "a\nb\n"), None);
        assert_eq!(excerpt(VIEW, ""), None);
        let edited =
            format!("The file /a.py has been edited. {HEADING}a snippet of /a.py:\n     1\ta\n");
        assert_eq!(pieces(VIEW, &edited), None);
        assert_eq!(pieces(VIEW, "total 12"), None);
    }
}
