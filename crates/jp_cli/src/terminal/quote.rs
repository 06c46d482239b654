//! Showing a person what others wrote, set off by a margin: it can't be taken for jp's own words.

use super::Terminal;
use jp_session::{size, text::visible};

use crate::output::{Output, Tone};

/// How much of one text is shown.
const SHOWN_LINES: usize = 200;
/// How much of one line is shown: of its beginning, and of its end, so that nothing hides there.
const SHOWN_CHARACTERS: [usize; 2] = [1500, 500];

/// Prefix of each line.
pub(crate) const MARGIN: &str = "  │ ";

/// How much of a text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// As much as one can take in.
    Part,
    /// All of it.
    Whole,
}

/// Shows a text that came from elsewhere, with what each of its lines is; returns whether all of it is there.
///
/// Every row has the margin, those of a line that does not fit too.
pub(crate) fn quote(
    terminal: &Terminal<'_>,
    text: &str,
    extent: Extent,
    tone: impl Fn(&str) -> Tone,
) -> bool {
    let (lines, cut): (usize, fn(&str) -> String) = match extent {
        Extent::Part => (SHOWN_LINES, shortened),
        Extent::Whole => (usize::MAX, str::to_owned),
    };
    let width = terminal
        .columns()
        .saturating_sub(MARGIN.chars().count() + 1)
        .max(20);
    let mut is_whole = true;
    for line in text.lines().take(lines) {
        let shown = cut(line);
        is_whole &= shown == line;
        for row in rows(&visible(&shown), width) {
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

/// Shows the beginning of a text of the conversation that the user alone gets, where there may be no terminal.
pub(crate) fn quote_for_user(output: &Output, text: &str) {
    let lines = text.lines().take(SHOWN_LINES);
    lines.for_each(|line| {
        output.tell(
            Tone::Plain,
            &format!("{MARGIN}{}", visible(&shortened(line))),
        )
    });
    let more = text.lines().skip(SHOWN_LINES).count();
    if more > 0 {
        let more = size::count(more, "more line");
        output.tell(
            Tone::Plain,
            &format!("  … and {more}; `jp conversation print` shows all"),
        );
    }
}

/// Breaks a line into rows that surely fit: what is not ASCII may take two columns.
fn rows(line: &str, width: usize) -> Vec<&str> {
    let columns = |character: char| match character {
        '\t' => 8,
        character if character.is_ascii() => 1,
        _ => 2,
    };
    let (mut rows, mut start, mut taken) = (Vec::new(), 0, 0);
    for (index, character) in line.char_indices() {
        if taken + columns(character) > width && index > start {
            rows.push(&line[start..index]);
            (start, taken) = (index, 0);
        }
        taken += columns(character);
    }
    rows.push(&line[start..]);
    rows
}

/// Cuts a long text, and says by how much.
pub(crate) fn shortened(text: &str) -> String {
    let [before, after] = SHOWN_CHARACTERS;
    match text.chars().count().checked_sub(before + after) {
        None | Some(0) => text.to_owned(),
        Some(between) => {
            let start: String = text.chars().take(before).collect();
            let end: String = text.chars().skip(before + between).collect();
            format!(
                "{start} … ({} between) … {end}",
                size::count(between, "character")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_does_not_fit_goes_on_in_the_next_row() {
        assert_eq!(rows("", 4), [""]);
        assert_eq!(rows("abcdefgh", 4), ["abcd", "efgh"]);
        assert_eq!(rows("a    run it?", 5), ["a    ", "run i", "t?"]);
        assert_eq!(rows("éàü", 4), ["éà", "ü"]);
    }

    #[test]
    fn long_line_is_cut_in_the_middle() {
        let kept = "é".repeat(2000);
        assert_eq!(shortened(&kept), kept);
        let cut = shortened(&format!(
            "{}{}{}",
            "a".repeat(1500),
            "é".repeat(1001),
            "z".repeat(500)
        ));
        assert_eq!(
            cut,
            format!(
                "{} … (1,001 characters between) … {}",
                "a".repeat(1500),
                "z".repeat(500)
            )
        );
    }
}
