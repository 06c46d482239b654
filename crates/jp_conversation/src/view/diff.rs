//! Unified diffs, in bounded time.

use std::{fmt::Write as _, ops::Range};

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};
use memchr::{memchr_iter, memrchr_iter};

use super::lines;

/// The number of unchanged lines around a change.
const CONTEXT: u32 = 3;
/// The most lines between the common start and the common end of two texts. A comparison of more takes too long.
const MOST_LINES: usize = 10_000;

/// Returns the changes from `old` to `new` as hunks of a unified diff; `None` if it would be longer than `most`
/// bytes or take long to find.
pub(super) fn unified_diff(old: &str, new: &str, most: usize) -> Option<String> {
    // Most changes are small, so cut off the common ends before the costly comparison. The context stays.
    let head = before_context(old, lines::common_head(old, new));
    let tail = after_context(&old[head..], lines::common_tail(&old[head..], &new[head..]));
    let skipped = lines::count(&old[..head]);
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if lines::count(old).max(lines::count(new)) > MOST_LINES {
        return None;
    }
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    // Moves changes to natural boundaries, such as the start of a function.
    diff.postprocess_lines(&input);
    let mut text = String::new();
    for group in groups(diff.hunks(), input.before.len()) {
        write_group(&group, &input, 1 + skipped, &mut text);
        // After each group, so that a long diff is not written to its end.
        if text.len() > most {
            return None;
        }
    }
    Some(text)
}

/// Returns the length of a common start without the lines of the context.
fn before_context(text: &str, head: usize) -> usize {
    let mut breaks = memrchr_iter(b'\n', &text.as_bytes()[..head]).skip(CONTEXT as usize);
    breaks.next().map_or(0, |at| at + 1)
}

/// Returns the length of a common end without the lines of the context.
fn after_context(text: &str, tail: usize) -> usize {
    let mut breaks =
        memchr_iter(b'\n', &text.as_bytes()[text.len() - tail..]).skip(CONTEXT as usize - 1);
    breaks.next().map_or(0, |at| tail - at - 1)
}

/// Changes in one hunk of the diff, with their lines in the old text including context.
struct Group {
    hunks: Vec<Hunk>,
    before: Range<u32>,
}

/// Groups changes whose contexts touch.
fn groups(hunks: impl Iterator<Item = Hunk>, lines: usize) -> Vec<Group> {
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    let mut groups: Vec<Group> = Vec::new();
    for hunk in hunks {
        let start = hunk.before.start.saturating_sub(CONTEXT);
        let end = hunk.before.end.saturating_add(CONTEXT).min(lines);
        match groups.last_mut().filter(|group| start <= group.before.end) {
            Some(group) => {
                group.before.end = end;
                group.hunks.push(hunk);
            }
            None => groups.push(Group {
                before: start..end,
                hunks: vec![hunk],
            }),
        }
    }
    groups
}

fn write_group(group: &Group, input: &InternedInput<&str>, first: usize, text: &mut String) {
    let (Some(head), Some(tail)) = (group.hunks.first(), group.hunks.last()) else {
        return;
    };
    let after_start = head.after.start - (head.before.start - group.before.start);
    let after_end = tail.after.end + (group.before.end - tail.before.end);
    let header = [
        span('-', first, &group.before),
        span('+', first, &(after_start..after_end)),
    ];
    // Writing to a string does not fail.
    _ = writeln!(text, "@@ {} {} @@", header[0], header[1]);
    let mut at = group.before.start;
    for hunk in &group.hunks {
        write_lines(
            ' ',
            &input.before[range(at..hunk.before.start)],
            input,
            text,
        );
        write_lines('-', &input.before[range(hunk.before.clone())], input, text);
        write_lines('+', &input.after[range(hunk.after.clone())], input, text);
        at = hunk.before.end;
    }
    write_lines(' ', &input.before[range(at..group.before.end)], input, text);
}

/// Writes `-3,4`: the first line and the number of lines. An empty span has the number of the line before it.
fn span(sign: char, first: usize, lines: &Range<u32>) -> String {
    let start = first + lines.start as usize - usize::from(lines.is_empty());
    match lines.len() {
        1 => format!("{sign}{start}"),
        count => format!("{sign}{start},{count}"),
    }
}

fn range(lines: Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}

fn write_lines(
    sign: char,
    tokens: &[imara_diff::Token],
    input: &InternedInput<&str>,
    text: &mut String,
) {
    for token in tokens {
        let line = input.interner[*token];
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Applies a unified diff.
#[cfg(test)]
pub(super) fn apply(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut new, mut at) = (String::new(), 0);
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let unended = lines.next_if(|next| next.starts_with('\\')).is_some();
        let content = if unended {
            line[1..].trim_end_matches('\n')
        } else {
            &line[1..]
        };
        match line.as_bytes()[0] {
            b'@' => {
                let span = line.split([' ', ',']).nth(1).unwrap();
                let is_empty = line.split(' ').nth(1).unwrap().ends_with(",0");
                let start = span[1..].parse::<usize>().unwrap() + usize::from(is_empty) - 1;
                new.extend(old[at..start].iter().copied());
                at = start;
                let (span, _) = line.split_once('+').unwrap().1.split_once(" @@").unwrap();
                let (start, count) = span.split_once(',').unwrap_or((span, "1"));
                let before = new.split_inclusive('\n').count() + 1 - usize::from(count == "0");
                assert_eq!(start.parse(), Ok(before), "{line} in {diff}");
            }
            b'+' => new.push_str(content),
            sign => {
                assert_eq!(old[at], content, "the diff does not fit: {diff}");
                at += 1;
                if sign == b' ' {
                    new.push_str(content);
                }
            }
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(old: &str, new: &str) -> String {
        unified_diff(old, new, usize::MAX).unwrap()
    }

    #[test]
    fn changes_have_three_lines_around_them() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old
            .replace("5\n6\n", "five\n6\n")
            .replace("18\n", "18\nmore\n");
        insta::assert_snapshot!(whole(&old, &new), @r"
        @@ -2,7 +2,7 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
        @@ -16,5 +16,6 @@
         16
         17
         18
        +more
         19
         20
        ");
    }

    #[test]
    fn missing_newline_at_the_end_is_shown() {
        insta::assert_snapshot!(whole("a\nb\n", "a\nc"), @r"
        @@ -1,2 +1,2 @@
         a
        -b
        +c
        \ No newline at end of file
        ");
    }

    #[test]
    fn empty_text_has_line_zero() {
        assert!(whole("", "a\n").starts_with("@@ -0,0 +1 @@\n"));
        assert!(whole("a\n", "").starts_with("@@ -1 +0,0 @@\n"));
    }

    #[test]
    fn diff_over_the_bound_is_none() {
        assert_eq!(unified_diff("a\n", "b\n", 5), None);
    }

    #[test]
    fn only_different_lines_count_against_the_bound() {
        let lines = |changed: usize| -> String {
            (0..50_000)
                .map(|n| format!("{}\n", if n == 30_000 { changed } else { n }))
                .collect()
        };
        assert!(whole(&lines(1), &lines(2)).starts_with("@@ -29998,7 +29998,7 @@\n 29997\n"));
        let text = |line: &str| format!("{line}\n").repeat(MOST_LINES + 1);
        assert_eq!(unified_diff(&text("a"), &text("b"), usize::MAX), None);
    }

    proptest! {
        #[test]
        fn applied_diff_gives_the_new_text(
            old in "([abc]{0,2}\n){0,40}[ab]?",
            new in "([abc]{0,2}\n){0,40}[ab]?",
        ) {
            prop_assert_eq!(apply(&old, &whole(&old, &new)), new);
        }
    }
}
