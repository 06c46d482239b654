//! Quotes text from elsewhere behind a margin, so that it can't pass for jp's own words.

use super::Terminal;
use jp_session::{size, text::visible};

use crate::output::{MARGIN, Output, Tone};

/// Longest part of a text that is shown, in lines. More would scroll the prompt's beginning out of reach.
const SHOWN_LINES: usize = 200;
/// Longest beginning and end of a line that are shown, in characters. The end is shown so that nothing hides there.
const SHOWN_CHARACTERS: [usize; 2] = [1500, 500];

/// How much of a text to show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// At most [`SHOWN_LINES`] lines of [`SHOWN_CHARACTERS`].
    Part,
    /// All of it.
    Whole,
}

/// Quotes a text, with a tone for each line; returns whether all of it was shown.
///
/// Every row has the margin. jp wraps long lines itself, because a terminal would start the next row without it.
pub(crate) fn quote(
    terminal: &Terminal<'_>,
    text: &str,
    extent: Extent,
    tone: impl Fn(&str) -> Tone,
) -> bool {
    let (lines, cut): (usize, fn(&str) -> String) = match extent {
        Extent::Part => (SHOWN_LINES, shorten),
        Extent::Whole => (usize::MAX, str::to_owned),
    };
    // One column stays free: some terminals wrap as soon as the last one is written. In a terminal narrower than 20 columns
    // the rows wrap anyway.
    let width = terminal
        .columns()
        .saturating_sub(MARGIN.chars().count() + 1)
        .max(20);
    let mut is_whole = true;
    for line in text.lines().take(lines) {
        // Cut before escaping, so that escapes don't use up the shown part.
        let shown = cut(line);
        is_whole &= shown == line;
        for row in wrap(&visible(&shown), width) {
            terminal.tell(tone(line), &format!("{MARGIN}{row}"));
        }
    }
    let more = text.lines().skip(lines).count();
    if more > 0 {
        terminal.tell(
            Tone::Faint,
            &format!("  … and {}", size::count(more, "more line")),
        );
    }
    is_whole && more == 0
}

/// Quotes the beginning of a text that only the user receives. The lines may be longer than a row, because there may be no
/// terminal.
pub(crate) fn quote_for_user(output: &Output, text: &str) {
    let lines = text.lines().take(SHOWN_LINES);
    lines
        .for_each(|line| output.tell(Tone::Plain, &format!("{MARGIN}{}", visible(&shorten(line)))));
    let more = text.lines().skip(SHOWN_LINES).count();
    if more > 0 {
        let more = size::count(more, "more line");
        output.tell(
            Tone::Plain,
            &format!("  … and {more}; `jp conversation print` prints all of it"),
        );
    }
}

/// Breaks a line into rows that fit for certain: it counts two columns for each character that is not ASCII.
fn wrap(line: &str, width: usize) -> Vec<&str> {
    let (mut rows, mut start, mut taken) = (Vec::new(), 0, 0);
    for (index, character) in line.char_indices() {
        let columns = match character {
            '\t' => 8,
            character if character.is_ascii() => 1,
            _ => 2,
        };
        if taken + columns > width && index > start {
            rows.push(&line[start..index]);
            (start, taken) = (index, 0);
        }
        taken += columns;
    }
    rows.push(&line[start..]);
    rows
}

/// Cuts the middle out of a long text, and says how long it was.
pub(crate) fn shorten(text: &str) -> String {
    let [before, after] = SHOWN_CHARACTERS;
    match text.chars().count().checked_sub(before + after) {
        None | Some(0) => text.to_owned(),
        Some(between) => {
            let start: String = text.chars().take(before).collect();
            let end: String = text.chars().skip(before + between).collect();
            format!(
                "{start} … ({} left out) … {end}",
                size::count(between, "character")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_continues_in_the_next_row() {
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("abcdefgh", 4), ["abcd", "efgh"]);
        assert_eq!(wrap("a    run it?", 5), ["a    ", "run i", "t?"]);
        assert_eq!(wrap("éàü", 4), ["éà", "ü"]);
    }

    #[test]
    fn long_line_is_cut_in_the_middle() {
        let kept = "é".repeat(2000);
        assert_eq!(shorten(&kept), kept);
        let cut = shorten(&format!(
            "{}{}{}",
            "a".repeat(1500),
            "é".repeat(1001),
            "z".repeat(500)
        ));
        assert_eq!(
            cut,
            format!(
                "{} … (1,001 characters left out) … {}",
                "a".repeat(1500),
                "z".repeat(500)
            )
        );
    }
}
