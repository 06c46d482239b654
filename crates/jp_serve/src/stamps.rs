//! Tells whether files and directories have changed.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// How long after a change another one may have the same time. FAT counts in steps of two seconds, the
/// coarsest of the file systems in use.
const TICK: Duration = Duration::from_secs(2);

/// The states of some paths, which may not exist. Comparing them costs a system call for each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stamps {
    taken: Vec<(PathBuf, Option<FileState>)>,
    /// Whether a later change would show in all of them.
    is_settled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct FileState {
    modified: SystemTime,
    length: u64,
    is_directory: bool,
}

impl Stamps {
    /// Takes the states of files before they are read.
    pub(crate) fn before_reading(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let taken = paths
            .into_iter()
            .map(|path| (path.clone(), FileState::read(&path)));
        Self {
            taken: taken.collect(),
            is_settled: true,
        }
    }

    /// Takes the states of files that have been looked at since `begun`. A change at about that time counts
    /// as one that came later, because a later one might have the same time.
    pub(crate) fn after_looking(
        paths: impl IntoIterator<Item = PathBuf>,
        begun: SystemTime,
    ) -> Self {
        let stamps = Self::before_reading(paths);
        let (from, now) = (begun.checked_sub(TICK).unwrap_or(begun), SystemTime::now());
        let is_settled = !stamps
            .taken
            .iter()
            .filter_map(|(_, state)| state.as_ref())
            .any(|state| (from..=now).contains(&state.modified));
        Self {
            is_settled,
            ..stamps
        }
    }

    /// Returns whether nothing has changed.
    pub(crate) fn are_current(&self) -> bool {
        self.is_settled
            && self
                .taken
                .iter()
                .all(|(path, state)| FileState::read(path) == *state)
    }
}

impl FileState {
    fn read(path: &PathBuf) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            modified: found.modified().ok()?,
            length: found.len(),
            is_directory: found.is_dir(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_that_changed_while_it_was_looked_at_is_looked_at_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        assert!(!Stamps::after_looking([path.clone()], changed + TICK / 2).are_current());
        let settled =
            Stamps::after_looking([path.clone(), path.join("missing")], changed + TICK * 2);
        assert!(settled.are_current());
        fs::write(path.join("missing"), "x").unwrap();
        assert!(!settled.are_current());
    }
}
