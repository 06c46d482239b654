//! What a turn asks of the person at the terminal: leave for a call, and answers to what tools ask.
//!
//! Whatever a model or a tool wrote is set off by a margin, with nothing in it that is not seen: it can't be taken for
//! jp's own words.

mod editor;
mod permission;
mod question;

pub(super) use self::{permission::permit, question::answer};
use crate::{output::Tone, size, terminal::Terminal};

/// How much of one text is shown.
const SHOWN_LINES: usize = 200;
/// How much of one line is shown: of its beginning, and of its end, so that nothing hides there.
const SHOWN_CHARACTERS: [usize; 2] = [1500, 500];

/// Shows a text that came from elsewhere, with what each of its lines is.
fn quote(terminal: &Terminal<'_>, text: &str, tone: impl Fn(&str) -> Tone) {
    for line in text.lines().take(SHOWN_LINES) {
        terminal.tell(tone(line), &format!("  │ {}", shortened(line)));
    }
    let more = text.lines().skip(SHOWN_LINES).count();
    if more > 0 {
        terminal.tell(Tone::Faint, &format!("  … and {}", size::count(more, "more line")));
    }
}

/// Cuts a long text, and says by how much.
fn shortened(text: &str) -> String {
    let [before, after] = SHOWN_CHARACTERS;
    match text.chars().count().checked_sub(before + after) {
        None | Some(0) => text.to_owned(),
        Some(between) => {
            let start: String = text.chars().take(before).collect();
            let end: String = text.chars().skip(before + between).collect();
            format!("{start} … ({} between) … {end}", size::count(between, "character"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_is_cut_in_the_middle() {
        let kept = "é".repeat(2000);
        assert_eq!(shortened(&kept), kept);
        let cut = shortened(&format!("{}{}{}", "a".repeat(1500), "é".repeat(1001), "z".repeat(500)));
        assert_eq!(cut, format!("{} … (1,001 characters between) … {}", "a".repeat(1500), "z".repeat(500)));
    }
}
