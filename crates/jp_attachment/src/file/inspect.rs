use std::{
    fs::Metadata,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{Tolerated, plan::Planned};
use crate::{
    AttachError, Context, Declared, FileStamp, Known, Secrets, parallel, special::special_file,
};

/// What there is to know of a file without reading it.
pub(super) struct Inspected {
    pub(super) stamp: FileStamp,
    /// What the store knows of it.
    pub(super) known: Option<Known>,
}

/// Looks at each file, with one system call, and at what the store knows of it, where that is enough: where files
/// are looked at for secrets, it is not.
pub(super) fn inspect(
    files: &[Planned],
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Vec<Tolerated<Inspected>>, AttachError> {
    let is_trusted = context.secrets == Secrets::Off;
    let look = |(): &mut (), file: &Planned| {
        context.check_cancelled()?;
        let stamp = stamp(
            &file.path,
            &declared[file.declared].input,
            context.limits.max_bytes,
        );
        context.unavailable.tolerate(stamp.map(|stamp| {
            let known = is_trusted.then(|| context.store.known(&stamp)).flatten();
            Inspected { stamp, known }
        }))
    };
    parallel::map(files, context.workers, || (), look)
}

/// Refuses more bytes in all than are allowed.
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

/// Returns the state of the file at `path`. Refuses what is not a file and what is too large.
pub(super) fn stamp(path: &Path, input: &str, limit: u64) -> Result<FileStamp, AttachError> {
    let metadata =
        std::fs::metadata(path).map_err(|error| AttachError::io(input, "look at", path, error))?;
    let (input, path) = (input.to_owned(), path.to_owned());
    if let Some(kind) = special_file(metadata.file_type()) {
        return Err(AttachError::Special { input, path, kind });
    }
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
        _ => Ok(of_metadata(path, &metadata)),
    }
}

/// Returns whether `metadata` is that of the same file in the same state.
pub(super) fn is_same(stamp: &FileStamp, metadata: &Metadata) -> bool {
    let FileStamp {
        device,
        inode,
        size,
        mtime_ns,
        ctime_ns,
        ..
    } = of_metadata(PathBuf::new(), metadata);
    (device, inode, size) == (stamp.device, stamp.inode, stamp.size)
        && (mtime_ns, ctime_ns) == (stamp.mtime_ns, stamp.ctime_ns)
}

/// Returns whether a file in this state is still in it when its times are what they are now.
///
/// A file that is written twice within one tick of its file system's clock has the same times after
/// both. So the last change has to be well before `now`: a tenth of a second, or two seconds where times
/// are whole seconds (FAT, ext3, some network file systems).
pub(super) fn is_settled(stamp: &FileStamp, now: SystemTime) -> bool {
    let now = nanoseconds(now);
    [stamp.mtime_ns, stamp.ctime_ns].into_iter().all(|time| {
        let is_coarse = time.rem_euclid(1_000_000_000) == 0;
        let tick = if is_coarse {
            Duration::from_secs(2)
        } else {
            Duration::from_millis(100)
        };
        time + nanoseconds(UNIX_EPOCH + tick) <= now
    })
}

fn nanoseconds(time: SystemTime) -> i128 {
    let nanoseconds = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanoseconds(since),
        Err(error) => -nanoseconds(error.duration()),
    }
}

#[cfg(unix)]
fn of_metadata(path: PathBuf, metadata: &Metadata) -> FileStamp {
    use std::os::unix::fs::MetadataExt;
    let time = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    FileStamp {
        path,
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.len(),
        mtime_ns: time(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: time(metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(not(unix))]
fn of_metadata(path: PathBuf, metadata: &Metadata) -> FileStamp {
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
