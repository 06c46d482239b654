//! SWE-agent's windowed viewer, which edits print again:
//!
//! ```text
//! [File: /repo/a.py (250 lines total)]
//! (100 more lines above)
//! 101:a line
//! 102:another
//! (148 more lines below)
//! ```

use std::borrow::Cow;

use super::{
    Excerpt, Piece,
    cat_n::without_returns,
    numbered,
    numbered::{Numbered, Style},
    with_ends,
};

const HEADING: &str = "[File: ";
/// Stands before a window of what a refused edit would have made: that is in no file.
const NEVER_WRITTEN: &str = "would have looked";

/// Splits output at the windows in it; `None` where it has none that can be proved.
#[must_use]
pub fn pieces(output: &str) -> Option<Vec<Piece>> {
    let output = unended(output)?;
    let (mut pieces, mut text_start, mut at) = (Vec::new(), 0, 0);
    while let Some(start) = next_heading(&output, at) {
        let is_written = !output[at..start].contains(NEVER_WRITTEN);
        match window(&output[start..]) {
            Some((excerpt, length)) => {
                at = start + length;
                if is_written {
                    pieces.extend(Piece::text(&output[text_start..start]));
                    pieces.push(Piece::Excerpt(excerpt));
                    text_start = at;
                }
            }
            None => at = start + HEADING.len(),
        }
    }
    let has_any = !pieces.is_empty();
    pieces.extend(Piece::text(&output[text_start..]));
    has_any.then_some(pieces)
}

/// Takes off what a terminal adds to each line, where it did.
fn unended(output: &str) -> Option<Cow<'_, str>> {
    let start = next_heading(output, 0)?;
    let heading = output[start..].split('\n').next()?;
    without_returns(heading, output)
}

fn next_heading(output: &str, from: usize) -> Option<usize> {
    let found = output[from..].match_indices(HEADING).map(|(at, _)| from + at);
    found.into_iter().find(|at| *at == 0 || output.as_bytes()[at - 1] == b'\n')
}

/// Reads the window that `text` starts with; also returns its length.
fn window(text: &str) -> Option<(Excerpt, usize)> {
    let (heading, after) = text.split_once('\n').unwrap_or((text, ""));
    let (path, total) = heading.strip_prefix(HEADING)?.strip_suffix(" lines total)]")?.rsplit_once(" (")?;
    let total = numbered::line_number(total)?;
    let (above, after) = more_lines(after, "above");
    let Numbered { first, lines, rest } = numbered::read(after, Style::Colon, above + 1);
    let (below, rest) = more_lines(rest, "below");
    if above + lines.len() + below != total {
        return None;
    }
    let is_whole = above == 0 && below == 0;
    let last = (first + lines.len()).checked_sub(1)?;
    let range = (!is_whole).then_some(first..=last);
    let excerpt = Excerpt { path: path.to_owned(), lines: range, text: with_ends(&lines) };
    (is_whole || !lines.is_empty()).then_some((excerpt, text.len() - rest.len()))
}

/// Reads `(12 more lines above)`, which is missing where there are none.
fn more_lines<'t>(text: &'t str, place: &str) -> (usize, &'t str) {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let suffix = format!(" more lines {place})");
    let count = line.strip_prefix('(').and_then(|line| line.strip_suffix(&*suffix));
    count.and_then(numbered::line_number).map_or((0, text), |count| (count, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(output: &str) -> Option<Vec<String>> {
        let line = |piece: Piece| match piece {
            Piece::Text(text) => format!("text {text:?}"),
            Piece::Excerpt(Excerpt { path, lines, text }) => format!("{path} {lines:?} {text:?}"),
        };
        Some(pieces(output)?.into_iter().map(line).collect())
    }

    #[test]
    fn window_is_the_lines_of_its_numbers() {
        let output =
            "[File: /r/a.py (6 lines total)]\n(2 more lines above)\n3:a\n4:b:c\n(2 more lines below)";
        assert_eq!(outline(output).unwrap(), ["/r/a.py Some(3..=4) \"a\\nb:c\\n\""]);
        let whole = "[File: a (b).py (2 lines total)]\n1:a\n2:\n";
        assert_eq!(outline(whole).unwrap(), ["a (b).py None \"a\\n\\n\""]);
        assert_eq!(outline("[File: /r/a.py (0 lines total)]").unwrap(), ["/r/a.py None \"\""]);
    }

    #[test]
    fn words_around_a_window_stay() {
        let output = "File updated.\n[File: /r/a.py (1 lines total)]\n1:a\n(Open file: /r/a.py)\nbash-$";
        assert_eq!(
            outline(output).unwrap(),
            ["text \"File updated.\\n\"", "/r/a.py None \"a\\n\"", "text \"(Open file: /r/a.py)\\nbash-$\""]
        );
    }

    #[test]
    fn carriage_returns_of_a_terminal_are_no_content() {
        let output = "Done.\r\n[File: a.py (3 lines total)]\r\n1:a\r\n2:b\r\n(1 more lines below)";
        assert_eq!(outline(output).unwrap(), ["text \"Done.\\n\"", "a.py Some(1..=2) \"a\\nb\\n\""]);
        let mixed = "[File: a.py (2 lines total)]\r\n1:a\n2:b\r\n";
        assert_eq!(outline(mixed), None);
        let of_the_file = "[File: a.py (2 lines total)]\n1:a\r\n2:b\r\n";
        assert_eq!(outline(of_the_file).unwrap(), ["a.py None \"a\\r\\nb\\r\\n\""]);
    }

    #[test]
    fn window_of_a_refused_edit_is_in_no_file() {
        let output = "ERRORS:\n- E999\n\nThis is how your edit would have looked if applied\n---\n\
             [File: /r/a.py (1 lines total)]\n1:wrong\n---\n\n\
             This is the original code before your edit\n---\n\
             [File: /r/a.py (1 lines total)]\n1:right\n---\nTry again.";
        let outline = outline(output).unwrap();
        assert_eq!(outline.len(), 3);
        assert!(outline[0].contains("1:wrong"), "{outline:?}");
        assert_eq!(outline[1..], ["/r/a.py None \"right\\n\"", "text \"---\\nTry again.\""]);
    }

    #[test]
    fn what_does_not_fit_stays_text() {
        for output in [
            "[File: a (3 lines total)]\n1:a\n3:c\n",
            "[File: a (3 lines total)]\n1:a\n2:b\n",
            "[File: a (3 lines total)]\n(1 more lines above)\n1:a\n2:b\n3:c\n",
            "[File: a (9 lines total)]\n(2 more lines above)\n(7 more lines below)\n",
            "[File: a (many lines total)]\n1:a\n",
            "[File: a]\n1:a\n",
            "x [File: a (1 lines total)]\n1:a\n",
            "1:a\n",
            "",
        ] {
            assert_eq!(outline(output), None, "{output:?}");
        }
    }
}
