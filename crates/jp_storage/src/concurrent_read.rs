//! Reads events while another process may be writing them.
//!
//! A writer appends in place and overwrites the closing bracket. A reader may see an end that is neither
//! the old one nor the new one. That is no damage, because the events before it are complete.

use std::{path::Path, thread, time::Duration};

use crate::{
    ReadError,
    events::parse::{self, Parsed},
    files, lock,
    tree::Tree,
};

/// The way in which a reader detects another process that writes the file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writers<'a> {
    /// Writers hold the lock at this path. The reading process may hold it, too.
    Locking(&'a Path),
    /// The reader only detects changes of the file.
    Unknown,
}

/// The number of attempts to read a file that keeps changing. With [`PAUSE`] they take a tenth of a
/// second. A writer needs a few milliseconds to append and sync.
const LOOKS: usize = 50;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// The conclusion about a file with a torn or malformed end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nothing is certain: read it again.
    Again,
    /// It is damaged.
    Damaged,
    /// Another process is still writing it.
    BeingWritten,
}

/// Decides about a file with a torn or malformed end after the first, second, … attempt to read it.
fn judge(looks: usize, is_written: bool) -> Verdict {
    match (looks, is_written) {
        // A failed append is undone. Only a second look shows that the file is whole again.
        (..=1, _) => Verdict::Again,
        (_, false) => Verdict::Damaged,
        (..LOOKS, true) => Verdict::Again,
        (LOOKS.., true) => Verdict::BeingWritten,
    }
}

/// Reads an events file and passes its bytes and events to `take`. Reads it again while another process
/// writes its end.
///
/// `take` sees a torn end only if no writer is about to repair it.
pub(crate) fn read_events<T>(
    tree: &Tree,
    path: &Path,
    writers: Writers<'_>,
    take: impl Fn(&[u8], &Parsed<'_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let mut looks = 0;
    loop {
        let (bytes, version) = tree.read_version(path).map_err(ReadError::io(path))?;
        let parsed = parse::parse(&bytes);
        if let Ok(parsed) = &parsed
            && parsed.torn.is_none()
        {
            return take(&bytes, parsed);
        }
        looks += 1;
        // Check the lock first. A writer that has just released it has already changed the file.
        let is_held = writers.are_at_work();
        let has_changed = files::version(path).ok() != Some(version);
        let path = path.to_owned();
        match judge(looks, is_held || has_changed) {
            Verdict::Again => thread::sleep(PAUSE),
            Verdict::Damaged => {
                let parsed = parsed.map_err(|source| ReadError::Events { path, source })?;
                return take(&bytes, &parsed);
            }
            Verdict::BeingWritten => {
                let parsed = parsed.map_err(|_| ReadError::BeingWritten { path })?;
                // The writer will finish or repair the end.
                let whole = Parsed {
                    torn: None,
                    ..parsed
                };
                return take(&bytes, &whole);
            }
        }
    }
}

impl Writers<'_> {
    fn are_at_work(self) -> bool {
        match self {
            Self::Locking(path) => lock::is_held_by_another(path),
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Access;

    #[test]
    fn unlocked_file_that_does_not_change_is_damaged() {
        assert_eq!([judge(1, false), judge(1, true)], [Verdict::Again; 2]);
        assert_eq!(
            [judge(2, false), judge(LOOKS, false)],
            [Verdict::Damaged; 2]
        );
        assert_eq!(
            [judge(2, true), judge(LOOKS - 1, true)],
            [Verdict::Again; 2]
        );
        assert_eq!(judge(LOOKS, true), Verdict::BeingWritten);
    }

    #[test]
    fn locked_file_is_never_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let (events, held) = (
            directory.path().join("events.json"),
            directory.path().join("1.lock"),
        );
        let lock = lock::try_lock(&held).unwrap();
        let tree = Tree::new(directory.path(), Access::Shared);
        let read = |path| {
            read_events(&tree, &events, Writers::Locking(path), |_, parsed| {
                Ok(parsed.torn.is_some())
            })
        };
        std::fs::write(&events, "[\n{\"a\":1}\n]\n}").unwrap();
        assert!(
            matches!(read(&held), Err(ReadError::Events { .. })),
            "the lock is this process's own"
        );
        // As if process 1 had taken it.
        std::fs::write(&held, "         1\n").unwrap();
        assert!(matches!(read(&held), Err(ReadError::BeingWritten { .. })));
        std::fs::write(&events, "[\n{\"a\":1},\n{\"b").unwrap();
        assert!(!read(&held).unwrap(), "who holds it will repair it");
        drop(lock);
        assert!(read(&held).unwrap());
    }
}
