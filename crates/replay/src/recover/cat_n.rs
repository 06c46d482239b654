//! `view` of the editor tool that SWE-agent has from Anthropic: a heading, then lines numbered as by
//! `cat -n`.
//!
//! The tool also numbers the empty text after the file's last newline. It cuts a long file in the
//! middle of a line. That line stays text, with the note about the cut; the lines before it are
//! complete. The snippets that `str_replace` and `insert` print stay text, because some versions
//! number them one too low.

use std::borrow::Cow;

use super::{
    Excerpt, Piece, line_range, numbered,
    numbered::{Numbered, Style},
    with_newlines,
};

/// A prefix of the output in a history, which has observations in the form that the model received.
const TEMPLATE: &str = "OBSERVATION:\n";
const HEADING: &str = "Here's the result of running `cat -n` on ";
/// The mark at the cut of a long file.
const CLIPPED: &str = "<response clipped>";

/// Returns the pieces of the editor tool's output if it shows a file. `command` is the tool's call.
#[must_use]
pub fn pieces(command: &str, output: &str) -> Option<Vec<Piece>> {
    let (template, output) = output.split_at(if output.starts_with(TEMPLATE) {
        TEMPLATE.len()
    } else {
        0
    });
    let (heading, numbered) = output.strip_prefix(HEADING)?.split_once('\n')?;
    let numbered = strip_returns(heading, numbered)?;
    let path = heading.trim_end_matches('\r').strip_suffix(':')?;
    let (style, first) = Style::from_first_line(&numbered)?;
    let read = numbered::read(&numbered, style, first);
    // Snippets of edits may start with line 0.
    if !read.rest.trim().is_empty() || first == 0 {
        return None;
    }
    let shown = match numbered.contains(CLIPPED) {
        true => read_clipped(path, style, &read)?,
        false => vec![Piece::Excerpt(read_complete(path, command, &read)?)],
    };
    Some(Piece::text(template).into_iter().chain(shown).collect())
}

fn read_complete(path: &str, command: &str, read: &Numbered<'_>) -> Option<Excerpt> {
    let is_view =
        command.split_whitespace().any(|word| word == "view") && !command.contains("view_range");
    if read.first == 1 && is_view {
        return Some(Excerpt::whole_file(path, read.lines.join("\n")));
    }
    line_range(path, read.first, &read.lines)
}

/// Makes an excerpt of the lines before the cut, and text of the line with the cut.
fn read_clipped(path: &str, style: Style, read: &Numbered<'_>) -> Option<Vec<Piece>> {
    let (cut, whole) = read.lines.split_last()?;
    let is_cut_there = cut.contains(CLIPPED) && !whole.iter().any(|line| line.contains(CLIPPED));
    let next = read.first + whole.len();
    let lines = (is_cut_there && !whole.is_empty()).then(|| read.first..=next - 1)?;
    let excerpt = Excerpt {
        path: path.to_owned(),
        lines: Some(lines),
        text: with_newlines(whole),
    };
    Some(vec![
        Piece::Excerpt(excerpt),
        Piece::Text(format!("{}{cut}\n", style.prefix(next))),
    ])
}

/// Removes the carriage return that a terminal puts before each newline, if the heading has one.
///
/// Text after the first newline without a carriage return was added to the terminal's output. It
/// must not have any carriage return; otherwise the result is `None`.
pub(super) fn strip_returns<'t>(heading: &str, text: &'t str) -> Option<Cow<'t, str>> {
    if !heading.ends_with('\r') {
        return Some(text.into());
    }
    let end = text
        .match_indices('\n')
        .map(|(at, _)| at)
        .find(|&at| !text[..at].ends_with('\r'))
        .unwrap_or(text.len());
    let (output, added) = text.split_at(end);
    (!added.contains('\r')).then(|| (output.replace("\r\n", "\n") + added).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: &str = "str_replace_editor view /testbed/a.py";
    const PART: &str = "str_replace_editor view /testbed/a.py --view_range 4 5";

    type LinesAndText = (Option<std::ops::RangeInclusive<usize>>, String);

    fn excerpt(command: &str, numbered: &str) -> Option<LinesAndText> {
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
    fn last_number_shows_if_the_file_ends_with_a_newline() {
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
    fn range_has_the_lines_of_its_numbers() {
        assert_eq!(
            excerpt(PART, "     4\ta\n     5\tb\n"),
            Some((Some(4..=5), "a\nb\n".to_owned()))
        );
        assert_eq!(
            excerpt(PART, "     4\ta\n     5\t\n"),
            Some((Some(4..=4), "a\n".to_owned()))
        );
        assert_eq!(
            excerpt("", "     1\ta\n     2\tb\n"),
            Some((Some(1..=2), "a\nb\n".to_owned())),
            "without the command, it may be a part"
        );
    }

    #[test]
    fn cut_line_stays_text() {
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
    fn template_stays_text() {
        let output = format!("{TEMPLATE}{HEADING}/a.py:\n     1\ta\n");
        assert_eq!(
            pieces(VIEW, &output),
            Some(vec![
                Piece::Text(TEMPLATE.to_owned()),
                Piece::Excerpt(Excerpt::whole_file("/a.py", "a"))
            ])
        );
    }

    #[test]
    fn carriage_returns_of_a_terminal_are_removed() {
        let output = format!("{HEADING}/a.py:\r\n     1\ta\r\n     2\tb\r\n");
        let Some(Piece::Excerpt(stripped)) =
            pieces(VIEW, &output).and_then(|mut pieces| pieces.pop())
        else {
            panic!("{output:?}")
        };
        assert_eq!((&*stripped.path, &*stripped.text), ("/a.py", "a\nb"));
        assert_eq!(
            excerpt(VIEW, "     1\ta\r\n     2\tb\r\n"),
            Some((None, "a\r\nb\r".to_owned())),
            "those of the file stay"
        );
    }

    #[test]
    fn unproved_output_stays_text() {
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
