//! Which lines of a text stand in other texts.

use std::{collections::HashMap, ops::Range};

/// Texts of more lines are not searched, and of what is searched no more lines are looked at.
const MOST_LINES: usize = 10_000;
/// So many places of equal lines are tried for each line.
const MOST_PLACES: usize = 8;

/// Lines of a text that stand in another one, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Which lines they are, as indexes from 0.
    pub(super) ours: Range<usize>,
    /// Which of the texts they stand in.
    pub(super) text: usize,
    /// The index of the first one there.
    pub(super) theirs: usize,
}

/// Finds runs of lines that stand in one of `texts`, in order; each has `least` bytes or more.
///
/// The longest run from a line on is taken, of equal ones that in the earliest text.
pub(super) fn find(content: &str, texts: &[impl AsRef<str>], least: usize) -> Vec<Run> {
    let lines: Vec<&str> = content.split_inclusive('\n').take(MOST_LINES + 1).collect();
    if lines.len() > MOST_LINES {
        return Vec::new();
    }
    let standing = Standing::of(texts);
    let mut runs: Vec<Run> = Vec::new();
    let (mut at, mut end) = (0, 0);
    while at < lines.len() {
        match standing.longest(&lines, at, end).filter(|run| bytes(&lines[run.ours.clone()]) >= least) {
            Some(run) => {
                (at, end) = (run.ours.end, run.ours.end);
                runs.push(run);
            }
            None => at += 1,
        }
    }
    runs
}

fn bytes(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}

/// The lines of texts, and where each of them stands.
struct Standing<'t> {
    texts: Vec<Vec<&'t str>>,
    places: HashMap<&'t str, Vec<(usize, usize)>>,
}

impl<'t> Standing<'t> {
    fn of(texts: &'t [impl AsRef<str>]) -> Self {
        let mut left = MOST_LINES;
        let mut standing = Self { texts: Vec::new(), places: HashMap::new() };
        for (text, content) in texts.iter().enumerate() {
            let lines: Vec<&str> = content.as_ref().split_inclusive('\n').take(left).collect();
            left -= lines.len();
            for (index, line) in lines.iter().enumerate() {
                let places = standing.places.entry(line).or_default();
                if places.len() < MOST_PLACES {
                    places.push((text, index));
                }
            }
            standing.texts.push(lines);
        }
        standing
    }

    /// Returns the longest run through line `at`; it reaches back to `end` at most, where the one before ends.
    fn longest(&self, lines: &[&str], at: usize, end: usize) -> Option<Run> {
        let runs = self.places.get(lines[at])?.iter().map(|(text, index)| {
            let theirs = &self.texts[*text];
            let same = |(left, right): &(&&str, &&str)| left == right;
            let after = lines[at..].iter().zip(&theirs[*index..]).take_while(same).count();
            let before =
                lines[end..at].iter().rev().zip(theirs[..*index].iter().rev()).take_while(same).count();
            Run { ours: at - before..at + after, text: *text, theirs: index - before }
        });
        // Of equal ones `max_by_key` takes the last, which here is the first.
        runs.rev().max_by_key(|run| run.ours.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn longest_runs_are_found_wherever_they_stand() {
        let runs = find("new\na\nb\nc\nnew\nd\ne\n", &["x\na\nb\n", "d\ne\na\nb\nc\n"], 4);
        assert_eq!(runs, [Run { ours: 1..4, text: 1, theirs: 2 }, Run { ours: 5..7, text: 1, theirs: 0 }]);
        assert_eq!(find("a\nb\n", &["a\nb\n", "a\nb\n"], 4), [Run { ours: 0..2, text: 0, theirs: 0 }]);
        assert_eq!(find("a\nb\n", &["a\nb\n"], 5), []);
        assert_eq!(find(&"a\n".repeat(MOST_LINES + 1), &["a\n"], 1), []);
    }

    proptest! {
        #[test]
        fn runs_are_what_they_say_and_do_not_overlap(
            content in "([abc]{0,2}\n){0,30}[ab]?",
            texts in prop::collection::vec("([abc]{0,2}\n){0,30}[ab]?", 0..4),
            least in 1usize..9,
        ) {
            let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
            let ours = lines(&content);
            let mut end = 0;
            for run in find(&content, &texts, least) {
                prop_assert!(run.ours.start >= end && run.ours.end > run.ours.start);
                end = run.ours.end;
                let theirs = &lines(&texts[run.text])[run.theirs..run.theirs + run.ours.len()];
                prop_assert_eq!(&ours[run.ours.clone()], theirs);
            }
        }
    }
}
