use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

use jiff::Timestamp;
use jp_resource::BlobRef;

use super::{
    inspect::{self, Inspected},
    plan::PlannedFile,
};
use crate::{
    AttachError, Context, Declared, FileStamp, Notice, StoredFile, classify::classify,
    context::Tolerated, parallel, secret,
};

/// The number of times that a file is read again if it changes while it is read. A file that
/// changes four times in a row is one that something writes to all the time, such as a log.
const RETRIES: usize = 3;

/// The result of reading a file.
pub(super) enum FileContent {
    /// The content is in the store.
    Kept(KeptFile),
    /// It is a private key that is not explicitly named, and was not stored.
    LeftOut,
}

/// A file whose content is in the store.
pub(super) struct KeptFile {
    pub(super) blob: BlobRef,
    pub(super) mime_type: String,
    pub(super) last_modified: Option<String>,
    pub(super) was_known: bool,
    pub(super) is_private_key: bool,
    pub(super) notices: Vec<Notice>,
}

impl KeptFile {
    fn from_known(known: StoredFile, stamp: &FileStamp) -> Self {
        Self {
            blob: known.blob,
            mime_type: known.mime_type,
            last_modified: last_modified(stamp),
            was_known: true,
            // Private keys are not remembered.
            is_private_key: false,
            notices: Vec::new(),
        }
    }
}

/// Reads and stores each file that the store does not know. The results are in the order of
/// `files`.
pub(super) fn read(
    files: &[PlannedFile],
    inspected: Vec<Tolerated<Inspected>>,
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Vec<Tolerated<FileContent>>, AttachError> {
    if let Some(progress) = context.progress {
        for Inspected { stamp, known } in inspected.iter().flatten() {
            progress.expect(1, stamp.size);
            if known.is_some() {
                progress.finish_read(stamp.size);
            }
        }
    }
    let unknown: Vec<(&PlannedFile, &FileStamp)> = files
        .iter()
        .zip(&inspected)
        .filter_map(|(file, inspected)| match inspected {
            Ok(Inspected { stamp, known: None }) => Some((file, stamp)),
            _ => None,
        })
        .collect();
    // Each thread reuses one buffer for all its files.
    let read = parallel::map(
        &unknown,
        context.workers,
        Vec::new,
        |buffer, (file, stamp)| {
            context.check_cancelled()?;
            let reader = Reader {
                file,
                input: &declared[file.declared].input,
                context,
            };
            let content = reader.read(FileStamp::clone(stamp), buffer);
            if let Some(progress) = context.progress {
                progress.finish_read(stamp.size);
            }
            context.unavailable.tolerate(content)
        },
    )?;
    let mut read = read.into_iter();
    let contents = inspected.into_iter().map(|inspected| {
        let Inspected { stamp, known } = inspected?;
        match known {
            Some(known) => Ok(FileContent::Kept(KeptFile::from_known(known, &stamp))),
            None => read.next().expect("one for each unknown file"),
        }
    });
    Ok(contents.collect())
}

struct Reader<'a> {
    file: &'a PlannedFile,
    input: &'a str,
    context: &'a Context<'a>,
}

impl Reader<'_> {
    /// Reads the file until its state is the same before and after.
    fn read(&self, mut stamp: FileStamp, buffer: &mut Vec<u8>) -> Result<FileContent, AttachError> {
        let path = &self.file.path;
        let mut has_changed = false;
        for _ in 0..=RETRIES {
            let is_unchanged = read_once(&stamp, buffer)
                .map_err(|error| AttachError::io(self.input, "read", path, error))?;
            if is_unchanged {
                let is_private_key = secret::is_private_key(buffer);
                if is_private_key && !self.file.is_named {
                    return Ok(FileContent::LeftOut);
                }
                return self
                    .keep(&stamp, buffer, is_private_key)
                    .map(FileContent::Kept);
            }
            let before = stamp;
            stamp = inspect::stamp(path, self.input, self.context.limits.max_bytes)?;
            has_changed |= stamp != before;
        }
        let (input, path) = (self.input.to_owned(), path.clone());
        Err(if has_changed {
            AttachError::Changing { input, path }
        } else {
            AttachError::MadeUp { input, path }
        })
    }

    /// Stores the content, and gives `buffer` its memory back.
    ///
    /// A private key is never remembered: a later walk would find it in the store and not recognise
    /// it.
    fn keep(
        &self,
        stamp: &FileStamp,
        buffer: &mut Vec<u8>,
        is_private_key: bool,
    ) -> Result<KeptFile, AttachError> {
        let (content, mime_type) = classify(std::mem::take(buffer), &self.file.identity.name);
        let notices =
            self.context
                .check_secrets(self.input, &self.file.identity.name, content.as_text())?;
        let is_remembered = !is_private_key && inspect::is_settled(stamp, self.context.now);
        let remembered = is_remembered.then_some(stamp);
        let blob = self.context.store.keep(&content, mime_type, remembered);
        *buffer = content.into_bytes();
        let blob = blob.map_err(|source| AttachError::Store {
            input: self.input.to_owned(),
            of: self.file.path.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(KeptFile {
            blob,
            mime_type: mime_type.to_owned(),
            last_modified: last_modified(stamp),
            was_known: false,
            is_private_key,
            notices,
        })
    }
}

/// Reads the file into `buffer`. Returns whether it was in the state of `stamp`, also afterwards.
fn read_once(stamp: &FileStamp, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut file = open(&stamp.path)?;
    let size = usize::try_from(stamp.size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // One byte more, to see whether the file ends there.
    // A failed allocation is an error of this file and must not abort the program.
    buffer.clear();
    buffer
        .try_reserve(size + 1)
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    buffer.resize(size + 1, 0);
    let length = read_up_to(&mut file, buffer, size)?;
    buffer.truncate(length);
    Ok(length == size && inspect::is_same(stamp, &file.metadata()?))
}

/// Reads `size` bytes, or up to the end. A file of exactly `size` bytes costs one call.
fn read_up_to(file: &mut File, buffer: &mut [u8], size: usize) -> io::Result<usize> {
    let mut length = 0;
    loop {
        match file.read(&mut buffer[length..]) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Only if the file has become a pipe since it was inspected.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        }
        if length >= size {
            return Ok(length);
        }
    }
}

/// Opens a file without blocking, because it may have become a pipe since it was inspected.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// Returns the modification time as RFC 3339, in whole seconds of UTC.
pub(super) fn last_modified(stamp: &FileStamp) -> Option<String> {
    let seconds = i64::try_from(stamp.mtime_ns.div_euclid(1_000_000_000)).ok()?;
    Timestamp::from_second(seconds)
        .ok()
        .map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn change_between_looking_and_reading_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "four").unwrap();
        let stamp = inspect::stamp(&path, "a", 10).unwrap();
        let mut buffer = Vec::new();
        assert!(read_once(&stamp, &mut buffer).unwrap());
        assert_eq!(buffer, b"four");
        for content in ["longer", "two", ""] {
            fs::write(&path, content).unwrap();
            assert!(!read_once(&stamp, &mut buffer).unwrap(), "{content:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, "four").unwrap();
        assert!(!read_once(&stamp, &mut buffer).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn file_that_becomes_a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "four").unwrap();
        let stamp = inspect::stamp(&path, "a", 10).unwrap();
        fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        assert!(!read_once(&stamp, &mut Vec::new()).unwrap());
    }
}
