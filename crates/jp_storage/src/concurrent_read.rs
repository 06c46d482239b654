//! Reads events while another process may be writing them.
//!
//! A writer appends in place, over the closing bracket. A reader may see an end that is neither the
//! old one nor the new one. That is no damage: the events before it are whole.

use std::{path::Path, thread, time::Duration};

use crate::{
    ReadError,
    events::parse::{self, Parsed},
    files, lock,
    tree::Tree,
};

/// How a reader detects another process that writes to the file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Writers<'a> {
    /// A process that does holds the lock at this path; the one that reads may hold it itself.
    Locking(&'a Path),
    /// By changes of the file only.
    Unknown,
}

/// How often a file is looked at before it counts as one that never rests, and the pause between two looks: a tenth of
/// a second in all. A writer needs a few milliseconds to append and to sync.
const LOOKS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Conclusion about a file with a torn or malformed end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// None yet: read it again.
    Again,
    /// It is damaged.
    Damaged,
    /// Another process is still writing it.
    BeingWritten,
}

/// Decides after the first, second, … look at a file whose end is torn or malformed.
fn judge(looks: usize, is_written: bool) -> Verdict {
    match (looks, is_written) {
        // A failed append is taken back: the file is as it was, and only a second look shows that it is whole.
        (..=1, _) => Verdict::Again,
        (_, false) => Verdict::Damaged,
        (..LOOKS, true) => Verdict::Again,
        (LOOKS.., true) => Verdict::BeingWritten,
    }
}

/// Reads an events file, again if its end is being written, and passes its bytes and its events on.
///
/// A torn end is passed on only if nobody is about to repair it.
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
        // The lock first: a writer that has let it go by then has changed the file by then.
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
                // The process that writes will finish the end, or repair it.
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
    fn file_is_damaged_only_if_it_rests_unlocked() {
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
    fn file_that_another_process_holds_is_never_called_damaged() {
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
