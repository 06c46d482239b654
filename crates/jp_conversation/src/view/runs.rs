//! Finds the lines of a text that other texts contain.

use std::{hash::BuildHasher, ops::Range};

use hashbrown::{DefaultHashBuilder, HashMap};

use super::lines;

/// The most lines of a searched text, and the most lines of all texts to search in. With [`MOST_PLACES`] they bound
/// the work of one comparison.
const MOST_LINES: usize = 10_000;
/// The most places that are tried for each line. A brace or an empty line occurs everywhere.
const MOST_PLACES: usize = 4;

/// The lines of a text as hashes. Callers verify the lines that they find.
#[derive(Debug)]
pub(super) struct LineTable {
    hashes: Vec<u64>,
    /// The start of each line, and the end of the text.
    starts: Vec<usize>,
}

/// Hashes lines, the same way for all tables of a view.
#[derive(Debug, Default)]
pub(super) struct Hasher(DefaultHashBuilder);

/// Successive lines of a text that another text contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The lines, as indexes from 0.
    pub(super) ours: Range<usize>,
    /// The index of the other text.
    pub(super) text: usize,
    /// The index of the first line there.
    pub(super) theirs: usize,
}

impl Hasher {
    pub(super) fn table(&self, text: &str) -> LineTable {
        let starts = lines::starts(text);
        let hashes = starts
            .windows(2)
            .map(|line| self.0.hash_one(&text.as_bytes()[line[0]..line[1]]))
            .collect();
        LineTable { hashes, starts }
    }
}

impl LineTable {
    /// Returns the byte range of lines in the text.
    pub(super) fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.starts[lines.start]..self.starts[lines.end]
    }

    /// Finds all lines of another table in a row. Returns the index of the first.
    pub(super) fn find_all(&self, lines: &Self) -> Option<usize> {
        let first = lines.hashes.first()?;
        let starts = self
            .hashes
            .iter()
            .enumerate()
            .filter(|(_, hash)| *hash == first);
        starts
            .map(|(start, _)| start)
            .find(|start| self.hashes[*start..].starts_with(&lines.hashes))
    }

    /// Returns the number of lines.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    fn bytes_on_one_side(&self, sides: &HashMap<u64, [bool; 2]>) -> usize {
        let lines = self.hashes.iter().zip(self.starts.windows(2));
        lines
            .filter(|(hash, _)| sides[*hash] != [true; 2])
            .map(|(_, line)| line[1] - line[0])
            .sum()
    }

    /// Returns the bytes of lines that only one of two tables has. A diff is at least as long.
    pub(super) fn different_bytes(&self, other: &Self) -> usize {
        let mut sides: HashMap<u64, [bool; 2]> =
            HashMap::with_capacity(self.hashes.len() + other.hashes.len());
        self.hashes
            .iter()
            .for_each(|hash| sides.entry(*hash).or_default()[0] = true);
        other
            .hashes
            .iter()
            .for_each(|hash| sides.entry(*hash).or_default()[1] = true);
        self.bytes_on_one_side(&sides) + other.bytes_on_one_side(&sides)
    }
}

/// Finds runs of lines of `ours` that one of the texts contains, in order. Each has at least `least` bytes.
///
/// It takes the longest run through a line; of equally long ones, that in the earliest text. Equal hashes count as
/// equal lines.
pub(super) fn find(ours: &LineTable, texts: &[&LineTable], least: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // Such a text is sent whole or as a diff.
    if ours.hashes.len() > MOST_LINES {
        return runs;
    }
    let places = LinePlaces::new(ours, texts);
    let (mut at, mut end) = (0, 0);
    while at < ours.hashes.len() {
        match places
            .longest(at, end)
            .filter(|run| ours.bytes(&run.ours).len() >= least)
        {
            Some(run) => {
                (at, end) = (run.ours.end, run.ours.end);
                runs.push(run);
            }
            None => at += 1,
        }
    }
    runs
}

/// The places of lines in texts.
struct LinePlaces<'t> {
    ours: &'t LineTable,
    texts: &'t [&'t LineTable],
    places: HashMap<u64, Places>,
}

/// The places of one line: texts, and its index in each.
#[derive(Default)]
struct Places {
    count: usize,
    places: [(usize, usize); MOST_PLACES],
}

impl Places {
    fn push(&mut self, place: (usize, usize)) {
        if let Some(free) = self.places.get_mut(self.count) {
            *free = place;
            self.count += 1;
        }
    }
}

impl<'t> LinePlaces<'t> {
    fn new(ours: &'t LineTable, texts: &'t [&'t LineTable]) -> Self {
        let mut places: HashMap<u64, Places> = HashMap::with_capacity(ours.hashes.len());
        // Only places of lines in `ours` are kept, so a large text costs no memory.
        places.extend(ours.hashes.iter().map(|hash| (*hash, Places::default())));
        let lines = texts.iter().enumerate().flat_map(|(text, table)| {
            table
                .hashes
                .iter()
                .enumerate()
                .map(move |(index, hash)| (hash, (text, index)))
        });
        for (hash, place) in lines.take(MOST_LINES) {
            if let Some(places) = places.get_mut(hash) {
                places.push(place);
            }
        }
        Self {
            ours,
            texts,
            places,
        }
    }

    /// Returns the longest run through line `at`. It starts at `end` at the earliest, the end of the previous run.
    fn longest(&self, at: usize, end: usize) -> Option<Run> {
        let ours = &self.ours.hashes;
        let Places { count, places } = self.places.get(&ours[at])?;
        let runs = places[..*count].iter().map(|(text, index)| {
            let theirs = &self.texts[*text].hashes;
            let same = |(left, right): &(&u64, &u64)| left == right;
            let after = ours[at..]
                .iter()
                .zip(&theirs[*index..])
                .take_while(same)
                .count();
            let before = ours[end..at]
                .iter()
                .rev()
                .zip(theirs[..*index].iter().rev())
                .take_while(same)
                .count();
            Run {
                ours: at - before..at + after,
                text: *text,
                theirs: index - before,
            }
        });
        // `max_by_key` takes the last of equal ones, so reverse them to take the first.
        runs.rev().max_by_key(|run| run.ours.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(content: &str, texts: &[impl AsRef<str>], least: usize) -> Vec<Run> {
        let hasher = Hasher::default();
        let tables: Vec<_> = texts
            .iter()
            .map(|text| hasher.table(text.as_ref()))
            .collect();
        find(
            &hasher.table(content),
            &tables.iter().collect::<Vec<_>>(),
            least,
        )
    }

    #[test]
    fn longest_runs_are_found_anywhere() {
        let runs = found(
            "new\na\nb\nc\nnew\nd\ne\n",
            &["x\na\nb\n", "d\ne\na\nb\nc\n"],
            4,
        );
        assert_eq!(
            runs,
            [
                Run {
                    ours: 1..4,
                    text: 1,
                    theirs: 2
                },
                Run {
                    ours: 5..7,
                    text: 1,
                    theirs: 0
                }
            ]
        );
        assert_eq!(
            found("a\nb\n", &["a\nb\n", "a\nb\n"], 4),
            [Run {
                ours: 0..2,
                text: 0,
                theirs: 0
            }]
        );
        assert_eq!(found("a\nb\n", &["a\nb\n"], 5), []);
        assert_eq!(found(&"a\n".repeat(MOST_LINES + 1), &["a\n"], 1), []);
        let hasher = Hasher::default();
        assert_eq!(
            hasher
                .table("a\nb\na\nc\n")
                .find_all(&hasher.table("a\nc\n")),
            Some(2)
        );
        assert_eq!(hasher.table("a\nb\n").find_all(&hasher.table("b")), None);
        assert_eq!(hasher.table("a\n").find_all(&hasher.table("")), None);
    }

    #[test]
    fn lines_of_only_one_table_are_counted() {
        let hasher = Hasher::default();
        let different = |old, new| hasher.table(old).different_bytes(&hasher.table(new));
        assert_eq!(different("a\nbb\nc\n", "a\nc\nddd\n"), 3 + 4);
        assert_eq!(different("a\na\n", "a"), 5);
        assert_eq!(different("", "a\n"), 2);
    }

    proptest! {
        #[test]
        fn runs_name_equal_lines_once(
            content in "([abc]{0,2}\n){0,30}[ab]?",
            texts in prop::collection::vec("([abc]{0,2}\n){0,30}[ab]?", 0..4),
            least in 1usize..9,
        ) {
            let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
            let ours = lines(&content);
            let mut end = 0;
            for run in found(&content, &texts, least) {
                prop_assert!(run.ours.start >= end && run.ours.end > run.ours.start);
                end = run.ours.end;
                let theirs = &lines(&texts[run.text])[run.theirs..run.theirs + run.ours.len()];
                prop_assert_eq!(&ours[run.ours.clone()], theirs);
            }
        }
    }
}
