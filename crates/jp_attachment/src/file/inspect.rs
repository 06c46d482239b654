use std::{
    fs::Metadata,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::plan::PlannedFile;
use crate::{
    AttachError, Context, Declared, FileStamp, Secrets, StoredFile, context::Tolerated, parallel,
    special_file::special_file,
};

/// Nanoseconds in a second.
const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// The state of a file that was not read.
pub(super) struct Inspected {
    pub(super) stamp: FileStamp,
    /// The content, if the store knows it.
    pub(super) known: Option<StoredFile>,
}

/// Inspects each file with one system call, and looks its content up in the store.
///
/// If texts are scanned for secrets, the store doesn't help: the files have to be read.
pub(super) fn inspect(
    files: &[PlannedFile],
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Vec<Tolerated<Inspected>>, AttachError> {
    parallel::map(
        files,
        context.workers,
        || (),
        |(), file| {
            context.check_cancelled()?;
            let input = &declared[file.declared].input;
            let stamp = stamp(&file.path, input, context.limits.max_bytes);
            context.unavailable.tolerate(stamp.map(|stamp| {
                let known = match context.secrets {
                    Secrets::Off => context.store.lookup(&stamp),
                    Secrets::Warn | Secrets::Refuse => None,
                };
                Inspected { stamp, known }
            }))
        },
    )
}

/// Fails if the files together are longer than allowed. Before they are read, to save the time.
pub(super) fn check_total(
    inspected: &[Tolerated<Inspected>],
    context: &Context<'_>,
) -> Result<(), AttachError> {
    let sizes = inspected
        .iter()
        .flatten()
        .map(|inspected| inspected.stamp.size);
    let (files, size) = (sizes.clone().count(), sizes.fold(0, u64::saturating_add));
    let limit = context.limits.max_total_bytes;
    if size > limit {
        Err(AttachError::TooManyBytes { files, size, limit })
    } else {
        Ok(())
    }
}

/// Returns the state of the file at `path`. Fails if it is not a file, or longer than `limit`
/// bytes.
pub(super) fn stamp(path: &Path, input: &str, limit: u64) -> Result<FileStamp, AttachError> {
    let metadata =
        std::fs::metadata(path).map_err(|error| AttachError::io(input, "look at", path, error))?;
    let (input, path) = (input.to_owned(), path.to_owned());
    if let Some(kind) = special_file(metadata.file_type()) {
        return Err(AttachError::Special { input, path, kind });
    }
    // It was a file when the walk found it.
    if metadata.is_dir() {
        return Err(AttachError::Changing { input, path });
    }
    match metadata.len() {
        size if size > limit => Err(AttachError::TooLarge {
            input,
            path,
            size,
            limit,
        }),
        _ => Ok(stamp_from(path, &metadata)),
    }
}

/// Returns whether `metadata` is of the same file in the same state.
pub(super) fn is_same(stamp: &FileStamp, metadata: &Metadata) -> bool {
    let FileStamp {
        device,
        inode,
        size,
        mtime_ns,
        ctime_ns,
        ..
    } = stamp_from(PathBuf::new(), metadata);
    (device, inode, size) == (stamp.device, stamp.inode, stamp.size)
        && (mtime_ns, ctime_ns) == (stamp.mtime_ns, stamp.ctime_ns)
}

/// Returns whether any later change of a file will change its times.
///
/// A file that is written twice within one tick of the file system's clock has the same times after
/// both. So the last change has to be well before `now`: a tenth of a second, or two seconds if
/// times are whole seconds (FAT, ext3, some network file systems).
pub(super) fn is_settled(stamp: &FileStamp, now: SystemTime) -> bool {
    let now = nanoseconds(now);
    [stamp.mtime_ns, stamp.ctime_ns].into_iter().all(|time| {
        let is_coarse = time.rem_euclid(NANOS_PER_SECOND) == 0;
        let tick = if is_coarse {
            Duration::from_secs(2)
        } else {
            Duration::from_millis(100)
        };
        time + nanoseconds(UNIX_EPOCH + tick) <= now
    })
}

/// Returns the nanoseconds from 1970 to a time, which are negative before.
fn nanoseconds(time: SystemTime) -> i128 {
    let (sign, duration) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (1, after),
        Err(before) => (-1, before.duration()),
    };
    sign * i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(unix)]
fn stamp_from(path: PathBuf, metadata: &Metadata) -> FileStamp {
    use std::os::unix::fs::MetadataExt;
    FileStamp {
        path,
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.len(),
        mtime_ns: i128::from(metadata.mtime()) * NANOS_PER_SECOND
            + i128::from(metadata.mtime_nsec()),
        ctime_ns: i128::from(metadata.ctime()) * NANOS_PER_SECOND
            + i128::from(metadata.ctime_nsec()),
    }
}

#[cfg(not(unix))]
fn stamp_from(path: PathBuf, metadata: &Metadata) -> FileStamp {
    let mtime_ns = metadata.modified().map_or(0, nanoseconds);
    FileStamp {
        path,
        device: 0,
        inode: 0,
        size: metadata.len(),
        mtime_ns,
        ctime_ns: mtime_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_settled_when_both_times_are_well_past() {
        const SECOND: i128 = 1_000_000_000;
        let table = [
            (100 * SECOND + 1, 100 * SECOND + 1, true),
            (103 * SECOND - 100_000_000, 5, true),
            (103 * SECOND - 99_999_999, 5, false),
            (5, 103 * SECOND - 99_999_999, false),
            (101 * SECOND, 101 * SECOND, true),
            (102 * SECOND, 101 * SECOND, false),
            (104 * SECOND + 1, 5, false),
        ];
        let now = UNIX_EPOCH + Duration::from_secs(103);
        for (mtime_ns, ctime_ns, settled) in table {
            let stamp = FileStamp {
                path: "/a".into(),
                device: 1,
                inode: 1,
                size: 1,
                mtime_ns,
                ctime_ns,
            };
            assert_eq!(is_settled(&stamp, now), settled, "{stamp:?}");
        }
    }
}
