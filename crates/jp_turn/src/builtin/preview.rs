//! What a person is shown before they agree.

use std::fmt::Write;

/// Writes text so that it stays on one line and is what it looks like.
pub(super) fn one_line(text: &str) -> String {
    escaped(text, |letter| letter.is_control() || is_deceptive(letter))
}

/// The same for text of several lines.
pub(super) fn lines(text: &str) -> String {
    escaped(text, |letter| (letter.is_control() && !matches!(letter, '\n' | '\t')) || is_deceptive(letter))
}

/// Shows how a file changes, as a unified diff; that a file ends its lines with `\r\n` before and after is no change.
pub(super) fn diff(path: &str, old: &str, new: &str) -> String {
    let are_crlf = super::edit::is_crlf(old) && super::edit::is_crlf(new);
    let shown = |text: &str| if are_crlf { text.replace("\r\n", "\n") } else { text.to_owned() };
    let (old, new) = (shown(old), shown(new));
    let mut options = diffy::DiffOptions::new();
    options.set_original_filename(path.to_owned()).set_modified_filename(path.to_owned());
    lines(&options.create_patch(&old, &new).to_string())
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_escaped(letter) {
            true => _ = write!(shown, "{}", letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

/// Returns whether a character changes how others are shown: directions, line ends that are none, nothing at all.
fn is_deceptive(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_forge_a_prompt_is_escaped() {
        assert_eq!(one_line("ls\n\x1b[2KRun `ls`?\r\u{202e}é\t"), r"ls\n\u{1b}[2KRun `ls`?\r\u{202e}é\t");
        assert_eq!(lines("a\n\tb\r\n\x1b[0m"), "a\n\tb\\r\n\\u{1b}[0m");
    }

    #[test]
    fn diff_names_the_file_and_passes_over_line_ends_that_stay() {
        insta::assert_snapshot!(diff("a b.rs", "one\r\ntwo\r\n", "one\r\n2\r\n"), @"
        --- a b.rs
        +++ a b.rs
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        ");
    }
}
