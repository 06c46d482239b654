//! Previews of changes for the user's approval.

use super::compare::{Difference, write_diff};

/// Escapes control characters, so that the text stays on one line.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

/// Shows how a file changes, as a write_diff diff; that a file ends its lines with `\r\n` before
/// and after is no change.
pub(super) fn diff(path: &str, old: &str, new: &str, differences: &[Difference]) -> String {
    let path = one_line(path);
    match super::edit::is_crlf(old) && super::edit::is_crlf(new) {
        true => write_diff(
            &path,
            &old.replace("\r\n", "\n"),
            &new.replace("\r\n", "\n"),
            differences,
        ),
        false => write_diff(&path, old, new, differences),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::compare::compare, *};

    #[test]
    fn text_that_would_make_lines_of_its_own_stays_on_one() {
        assert_eq!(
            one_line("ls\n\x1b[2KRun `ls`?\ré\t"),
            r"ls\n\u{1b}[2KRun `ls`?\ré\t"
        );
    }

    #[test]
    fn diff_ignores_line_ends_that_stay() {
        let (old, new) = ("one\r\ntwo\r\n", "one\r\n2\r\n");
        insta::assert_snapshot!(diff("a\nb.rs", old, new, &compare(old, new)), @r"
        --- a\nb.rs
        +++ a\nb.rs
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        ");
    }
}
