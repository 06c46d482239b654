//! SWE-agent's file viewer, which shows a window of the file. Edits print it again:
//!
//! ```text
//! [File: /repo/a.py (250 lines total)]
//! (100 more lines above)
//! 101:a line
//! 102:another
//! (148 more lines below)
//! ```
//!
//! Some versions put marks of a selection between these lines. The marks follow the window as text.

use std::borrow::Cow;

use super::{
    Excerpt, Piece,
    cat_n::strip_returns,
    numbered,
    numbered::{Numbered, Style},
    with_newlines,
};

const HEADING: &str = "[File: ";
/// The words before the window of a refused edit. It shows text that was never in the file.
const NEVER_WRITTEN: &str = "would have looked";
/// The lines before and after a selection.
const MARKS: [&str; 2] = ["<<<<< START CURSOR >>>>>\n", "<<<<< END CURSOR >>>>>\n"];

/// Splits output at its windows; returns `None` if none can be proved.
#[must_use]
pub fn pieces(output: &str) -> Option<Vec<Piece>> {
    let output = strip_terminal_returns(output)?;
    let (mut pieces, mut text_start, mut at) = (Vec::new(), 0, 0);
    while let Some(start) = next_heading(&output, at) {
        let is_written = !output[at..start].contains(NEVER_WRITTEN);
        match read_window(&output[start..]) {
            Some(Window {
                excerpt,
                marks,
                length,
            }) => {
                at = start + length;
                if is_written {
                    pieces.extend(Piece::text(&output[text_start..start]));
                    pieces.push(Piece::Excerpt(excerpt));
                    pieces.extend(marks.into_iter().filter_map(Piece::text));
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

/// Removes the carriage returns of a terminal if the first heading has one.
fn strip_terminal_returns(output: &str) -> Option<Cow<'_, str>> {
    let start = next_heading(output, 0)?;
    let heading = output[start..].split('\n').next()?;
    strip_returns(heading, output)
}

fn next_heading(output: &str, from: usize) -> Option<usize> {
    output[from..]
        .match_indices(HEADING)
        .map(|(at, _)| from + at)
        .find(|&at| at == 0 || output.as_bytes()[at - 1] == b'\n')
}

/// A window and its place in the output.
struct Window {
    excerpt: Excerpt,
    marks: Vec<&'static str>,
    /// Its length in the output, in bytes.
    length: usize,
}

/// Reads the window that `text` starts with.
fn read_window(text: &str) -> Option<Window> {
    let (heading, after) = text.split_once('\n').unwrap_or((text, ""));
    let (path, total) = heading
        .strip_prefix(HEADING)?
        .strip_suffix(" lines total)]")?
        .rsplit_once(" (")?;
    let total = numbered::line_number(total)?;
    let (above, after) = more_lines(after, "above");
    let (Numbered { first, lines, rest }, marks) = read_marked_lines(after, above + 1);
    let (below, rest) = more_lines(rest, "below");
    if above + lines.len() + below != total {
        return None;
    }
    let is_whole = above == 0 && below == 0;
    let last = (first + lines.len()).checked_sub(1)?;
    let range = (!is_whole).then_some(first..=last);
    let excerpt = Excerpt {
        path: path.to_owned(),
        lines: range,
        text: with_newlines(&lines),
    };
    (is_whole || !lines.is_empty()).then_some(Window {
        excerpt,
        marks,
        length: text.len() - rest.len(),
    })
}

/// Reads numbered lines and the marks between them.
fn read_marked_lines(text: &str, first: usize) -> (Numbered<'_>, Vec<&'static str>) {
    let (mut lines, mut marks, mut rest) = (Vec::new(), Vec::new(), text);
    loop {
        let numbered = numbered::read(rest, Style::Colon, first + lines.len());
        lines.extend(numbered.lines);
        rest = numbered.rest;
        let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) else {
            return (Numbered { first, lines, rest }, marks);
        };
        marks.push(mark);
        rest = &rest[mark.len()..];
    }
}

/// Reads `(12 more lines above)`; the line is missing if the count is 0.
fn more_lines<'t>(text: &'t str, place: &str) -> (usize, &'t str) {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let suffix = format!(" more lines {place})");
    let count = line
        .strip_prefix('(')
        .and_then(|line| line.strip_suffix(&*suffix));
    count
        .and_then(numbered::line_number)
        .map_or((0, text), |count| (count, after))
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
    fn window_has_the_lines_of_its_numbers() {
        let output = "[File: /r/a.py (6 lines total)]\n(2 more lines above)\n3:a\n4:b:c\n(2 more lines below)";
        assert_eq!(
            outline(output).unwrap(),
            ["/r/a.py Some(3..=4) \"a\\nb:c\\n\""]
        );
        let whole = "[File: a (b).py (2 lines total)]\n1:a\n2:\n";
        assert_eq!(outline(whole).unwrap(), ["a (b).py None \"a\\n\\n\""]);
        assert_eq!(
            outline("[File: /r/a.py (0 lines total)]").unwrap(),
            ["/r/a.py None \"\""]
        );
    }

    #[test]
    fn words_around_a_window_stay_text() {
        let output =
            "File updated.\n[File: /r/a.py (1 lines total)]\n1:a\n(Open file: /r/a.py)\nbash-$";
        assert_eq!(
            outline(output).unwrap(),
            [
                "text \"File updated.\\n\"",
                "/r/a.py None \"a\\n\"",
                "text \"(Open file: /r/a.py)\\nbash-$\""
            ]
        );
    }

    #[test]
    fn carriage_returns_of_a_terminal_are_removed() {
        let output = "Done.\r\n[File: a.py (3 lines total)]\r\n1:a\r\n2:b\r\n(1 more lines below)";
        assert_eq!(
            outline(output).unwrap(),
            ["text \"Done.\\n\"", "a.py Some(1..=2) \"a\\nb\\n\""]
        );
        let mixed = "[File: a.py (2 lines total)]\r\n1:a\n2:b\r\n";
        assert_eq!(outline(mixed), None);
        let prompt = "[File: a.py (2 lines total)]\r\n1:a\r\n2:\n(Open file: a.py)\nbash-$";
        assert_eq!(
            outline(prompt).unwrap(),
            [
                "a.py None \"a\\n\\n\"",
                "text \"(Open file: a.py)\\nbash-$\""
            ],
            "text added to the terminal's output has none"
        );
        let of_the_file = "[File: a.py (2 lines total)]\n1:a\r\n2:b\r\n";
        assert_eq!(
            outline(of_the_file).unwrap(),
            ["a.py None \"a\\r\\nb\\r\\n\""]
        );
    }

    #[test]
    fn marks_of_a_selection_follow_the_window() {
        let output = "[File: a.py (5 lines total)]\n(1 more lines above)\n<<<<< START CURSOR >>>>>\n2:a\n3:b\n\
             <<<<< END CURSOR >>>>>\n4:c\n(1 more lines below)\nSTART_CURSOR moved to 2\n";
        assert_eq!(
            outline(output).unwrap(),
            [
                "a.py Some(2..=4) \"a\\nb\\nc\\n\"",
                "text \"<<<<< START CURSOR >>>>>\\n\"",
                "text \"<<<<< END CURSOR >>>>>\\n\"",
                "text \"START_CURSOR moved to 2\\n\"",
            ]
        );
        let of_the_file = "[File: a.py (2 lines total)]\n1:<<<<< START CURSOR >>>>>\n2:b\n";
        assert_eq!(
            outline(of_the_file).unwrap(),
            ["a.py None \"<<<<< START CURSOR >>>>>\\nb\\n\""]
        );
    }

    #[test]
    fn window_of_a_refused_edit_stays_text() {
        let output = "ERRORS:\n- E999\n\nThis is how your edit would have looked if applied\n---\n\
             [File: /r/a.py (1 lines total)]\n1:wrong\n---\n\n\
             This is the original code before your edit\n---\n\
             [File: /r/a.py (1 lines total)]\n1:right\n---\nTry again.";
        let outline = outline(output).unwrap();
        assert_eq!(outline.len(), 3);
        assert!(outline[0].contains("1:wrong"), "{outline:?}");
        assert_eq!(
            outline[1..],
            ["/r/a.py None \"right\\n\"", "text \"---\\nTry again.\""]
        );
    }

    #[test]
    fn unproved_output_stays_text() {
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
