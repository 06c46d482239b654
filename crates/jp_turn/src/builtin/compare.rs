//! Compares two texts and shows the differences. Pure.

use std::{collections::HashSet, fmt::Write, ops::Range};

use super::files::Lines;

/// The number of lines shown before and after a difference, as in `diff -u`.
const CONTEXT: usize = 3;
/// The maximum number of lines that are compared at once. The time grows with the square of the
/// number of differing lines.
const MAX_AT_ONCE: usize = 10_000;
/// The number of lines of each text that are compared at a time if there are more. It is large
/// enough to find a moved function again, and small enough for a file of 200,000 changed lines.
const WINDOW: usize = 400;

/// Lines of one text that replace lines of another, counted from 0. One of the ranges may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// Compares two texts, line by line.
///
/// Compares long texts in pieces, so that the time is proportional to their length. The result is
/// still correct, but may be larger than necessary: after a very long insertion, equal lines may
/// count as different.
pub(super) fn compare(old: &str, new: &str) -> Vec<Difference> {
    let (old, new): (Vec<_>, Vec<_>) = (lines(old).collect(), lines(new).collect());
    // Most changes are small, so the equal beginning and end are skipped before the expensive part.
    let start = count_equal(old.iter(), new.iter());
    let end = count_equal(old[start..].iter().rev(), new[start..].iter().rev());
    let comparison = Comparison {
        old: &old[..old.len() - end],
        new: &new[..new.len() - end],
        at: (start, start),
        differences: Vec::new(),
    };
    comparison.run()
}

/// Returns the changed parts of the new text with their context. An empty text has none.
pub(super) fn regions(differences: &[Difference], new: &str) -> Vec<Lines> {
    let new_len = lines(new).count();
    let regions = group_hunks(differences)
        .map(|hunk| expand(hunk, new_len).1)
        .filter(|lines| !lines.is_empty());
    regions
        .map(|lines| Lines {
            first: lines.start + 1,
            last: lines.end,
        })
        .collect()
}

/// Writes the differences as a unified diff of the file at `path`.
pub(super) fn write_diff(path: &str, old: &str, new: &str, differences: &[Difference]) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (lines(old).collect(), lines(new).collect());
    let mut diff = format!("--- {path}\n+++ {path}\n");
    for hunk in group_hunks(differences) {
        let (old_lines, new_lines) = expand(hunk, new.len());
        _ = writeln!(
            diff,
            "@@ -{} +{} @@",
            write_range(&old_lines),
            write_range(&new_lines)
        );
        let mut at = old_lines.start;
        for Difference {
            old: removed,
            new: added,
        } in hunk
        {
            push_lines(&mut diff, ' ', &old[at..removed.start]);
            push_lines(&mut diff, '-', &old[removed.clone()]);
            push_lines(&mut diff, '+', &new[added.clone()]);
            at = removed.end;
        }
        push_lines(&mut diff, ' ', &old[at..old_lines.end]);
    }
    diff
}

/// A comparison under way.
struct Comparison<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// The position in both texts.
    at: (usize, usize),
    differences: Vec<Difference>,
}

impl Comparison<'_> {
    fn run(mut self) -> Vec<Difference> {
        let left = self.old.len() + self.new.len() - self.at.0 - self.at.1;
        let window = if left > MAX_AT_ONCE { WINDOW } else { left };
        while self.at != (self.old.len(), self.new.len()) {
            let same = count_equal(self.old[self.at.0..].iter(), self.new[self.at.1..].iter());
            self.at = (self.at.0 + same, self.at.1 + same);
            self.step(window);
        }
        self.differences
    }

    /// Compares the next lines.
    fn step(&mut self, window: usize) {
        let (old, new) = self.at;
        let end = (
            self.old.len().min(old + window),
            self.new.len().min(new + window),
        );
        let mut found = compare_window(&self.old[old..end.0], &self.new[new..end.1]);
        for difference in &mut found {
            difference.old = difference.old.start + old..difference.old.end + old;
            difference.new = difference.new.start + new..difference.new.end + new;
        }
        self.at = end;
        // A difference at the end of a piece may be an effect of the cut, so compare those lines
        // again with the next piece.
        let is_cut = end != (self.old.len(), self.new.len());
        let last = found
            .last()
            .filter(|last| is_cut && last.old.start - old > window / 2);
        if let Some(last) = last {
            self.at = (last.old.start, last.new.start);
            found.pop();
        }
        found
            .into_iter()
            .for_each(|difference| self.push(difference));
    }

    /// Adds a difference, or makes the last one longer.
    fn push(&mut self, difference: Difference) {
        match self.differences.last_mut() {
            Some(last)
                if (last.old.end, last.new.end) == (difference.old.start, difference.new.start) =>
            {
                last.old.end = difference.old.end;
                last.new.end = difference.new.end;
            }
            _ => self.differences.push(difference),
        }
    }
}

/// Compares lines at a cost that grows with the square of what differs.
fn compare_window(old: &[&str], new: &[&str]) -> Vec<Difference> {
    let known: HashSet<_> = old.iter().collect();
    let is_something = !old.is_empty() || !new.is_empty();
    // Without a common line, the general algorithm takes quadratic time to find nothing.
    if is_something && !new.iter().any(|line| known.contains(line)) {
        return vec![Difference {
            old: 0..old.len(),
            new: 0..new.len(),
        }];
    }
    let (old_text, new_text) = (old.concat(), new.concat());
    let mut options = diffy::DiffOptions::new();
    // A context as long as the texts gives one hunk with every line.
    options.set_context_len(old.len() + new.len());
    let patch = options.create_patch(&old_text, &new_text);
    let mut differences: Vec<Difference> = Vec::new();
    let (mut at, mut is_same) = ((0, 0), true);
    for line in patch.hunks().iter().flat_map(diffy::Hunk::lines) {
        let (removed, added) = match line {
            diffy::Line::Context(_) => (1, 1),
            diffy::Line::Delete(_) => (1, 0),
            diffy::Line::Insert(_) => (0, 1),
        };
        let next = (at.0 + removed, at.1 + added);
        let was_same = std::mem::replace(&mut is_same, matches!(line, diffy::Line::Context(_)));
        match differences.last_mut().filter(|_| !was_same) {
            _ if is_same => {}
            Some(last) => (last.old.end, last.new.end) = next,
            None => differences.push(Difference {
                old: at.0..next.0,
                new: at.1..next.1,
            }),
        }
        at = next;
    }
    differences
}

/// Groups differences whose contexts touch.
fn group_hunks(differences: &[Difference]) -> impl Iterator<Item = &[Difference]> {
    differences.chunk_by(|left, right| right.old.start - left.old.end <= 2 * CONTEXT)
}

/// Returns the old and the new lines of a hunk, with those around it.
fn expand(hunk: &[Difference], new_len: usize) -> (Range<usize>, Range<usize>) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return (0..0, 0..0);
    };
    let before = CONTEXT.min(first.old.start);
    let after = CONTEXT.min(new_len - last.new.end);
    (
        first.old.start - before..last.old.end + after,
        first.new.start - before..last.new.end + after,
    )
}

/// Writes a range as the header of a hunk does.
fn write_range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn push_lines(diff: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        diff.push(mark);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// Counts how many items are the same from the start on.
fn count_equal<'a>(
    left: impl Iterator<Item = &'a &'a str>,
    right: impl Iterator<Item = &'a &'a str>,
) -> usize {
    left.zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn numbered(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn differences_are_counted_in_lines() {
        let old = numbered(20);
        let mut new = old.clone();
        new[2] = "three\n".to_owned();
        new.pop();
        let (old, new) = (old.concat(), new.concat());
        let differences = compare(&old, &new);
        let found = [
            Difference {
                old: 2..3,
                new: 2..3,
            },
            Difference {
                old: 19..20,
                new: 19..19,
            },
        ];
        assert_eq!(differences, found);
        let regions = [
            Lines { first: 1, last: 6 },
            Lines {
                first: 17,
                last: 19,
            },
        ];
        assert_eq!(super::regions(&differences, &new), regions);
        assert_eq!(super::regions(&compare("a\n", ""), ""), []);
    }

    #[test]
    fn file_of_which_every_line_changes_is_compared_at_once() {
        let line = "x".repeat(49);
        let old = format!("{line}\n").repeat(200_000);
        assert_eq!(old.len(), 10_000_000);
        let new = old.replace(&line, "y");
        let started = Instant::now();
        let differences = compare(&old, &new);
        let diff = write_diff("a", &old, &new, &differences);
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );
        assert_eq!(
            differences,
            [Difference {
                old: 0..200_000,
                new: 0..200_000
            }]
        );
        assert_eq!(diff.lines().count(), 400_003);
    }

    #[test]
    fn changes_far_apart_in_a_long_file_are_found_each() {
        let old = numbered(50_000);
        let mut new = old.clone();
        new[10] = "ten\n".to_owned();
        new.splice(
            20_000..20_000,
            ["more\n".to_owned(), "and more\n".to_owned()],
        );
        new.drain(40_000..40_300);
        let differences = compare(&old.concat(), &new.concat());
        let found = [
            Difference {
                old: 10..11,
                new: 10..11,
            },
            Difference {
                old: 20_000..20_000,
                new: 20_000..20_002,
            },
            Difference {
                old: 39_998..40_298,
                new: 40_000..40_000,
            },
        ];
        assert_eq!(differences, found);
    }

    proptest! {
        #[test]
        fn diff_turns_one_text_into_the_other(old in "([ab]{0,2}\n){0,12}[ab]?", new in "([ab]{0,2}\n){0,12}[ab]?") {
            let diff = write_diff("a", &old, &new, &compare(&old, &new));
            let patch = diffy::Patch::from_str(&diff).unwrap();
            prop_assert_eq!(diffy::apply(&old, &patch).unwrap(), new);
        }

        #[test]
        fn pieces_give_correct_differences(old in "([abc]\n){0,40}", new in "([abc]\n){0,40}", window in 1usize..9) {
            let (old, new): (Vec<_>, Vec<_>) = (lines(&old).collect(), lines(&new).collect());
            let mut comparison = Comparison { old: &old, new: &new, at: (0, 0), differences: Vec::new() };
            while comparison.at != (old.len(), new.len()) {
                comparison.step(window);
            }
            let (mut made, mut at): (Vec<&str>, _) = (Vec::new(), 0);
            for difference in comparison.differences {
                made.extend(&old[at..difference.old.start]);
                prop_assert_eq!(made.len(), difference.new.start);
                made.extend(&new[difference.new]);
                at = difference.old.end;
            }
            made.extend(&old[at..]);
            prop_assert_eq!(made, new);
        }
    }
}
