//! Detects changes of files and directories.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// The time after a change in which another one may have the same timestamp. FAT is the coarsest file system
/// in use, with steps of two seconds.
const TICK: Duration = Duration::from_secs(2);

/// The states of some paths, which may not exist. A comparison costs a system call for each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stamps {
    taken: Vec<(PathBuf, Option<FileState>)>,
    /// True if a later change of any path would be visible.
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

    /// Takes the states of files that were examined since `start`. If one changed at about that time, the
    /// states count as outdated, because a later change might have the same timestamp.
    pub(crate) fn after_looking(
        paths: impl IntoIterator<Item = PathBuf>,
        start: SystemTime,
    ) -> Self {
        let stamps = Self::before_reading(paths);
        let (from, now) = (start.checked_sub(TICK).unwrap_or(start), SystemTime::now());
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

    /// Returns true if nothing has changed.
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
    fn recently_changed_directory_is_examined_again() {
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
