use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

use jiff::Timestamp;
use jp_resource::BlobRef;

use super::{
    Tolerated,
    inspect::{self, Inspected},
    plan::Planned,
};
use crate::{
    AttachError, Context, Declared, FileStamp, Known, Notice, classify::classify, parallel, secret,
};

/// How often a file is read again that changed while it was read.
const RETRIES: usize = 3;

/// What reading a file gives.
pub(super) enum Content {
    /// The store has it.
    Kept(Kept),
    /// It is a private key, and nothing named it outright: nothing has it.
    LeftOut,
}

/// What the store keeps of a file.
pub(super) struct Kept {
    pub(super) blob: BlobRef,
    pub(super) mime_type: String,
    pub(super) last_modified: Option<String>,
    pub(super) was_known: bool,
    pub(super) is_private_key: bool,
    pub(super) notices: Vec<Notice>,
}

impl Kept {
    fn known(known: Known, stamp: &FileStamp) -> Self {
        Self {
            blob: known.blob,
            mime_type: known.mime_type,
            last_modified: last_modified(stamp),
            was_known: true,
            is_private_key: false,
            notices: Vec::new(),
        }
    }
}

/// Reads and keeps each file that the store does not know.
pub(super) fn read(
    files: &[Planned],
    inspected: Vec<Tolerated<Inspected>>,
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Vec<Tolerated<Content>>, AttachError> {
    if let Some(progress) = context.progress {
        for Inspected { stamp, known } in inspected.iter().flatten() {
            progress.expect(1, stamp.size);
            if known.is_some() {
                progress.finish_read(stamp.size);
            }
        }
    }
    let unread = |(file, inspected)| match inspected {
        &Ok(Inspected {
            ref stamp,
            known: None,
        }) => Some((file, stamp)),
        _ => None,
    };
    let unread: Vec<_> = files.iter().zip(&inspected).filter_map(unread).collect();
    let work = |buffer: &mut Vec<u8>, (file, stamp): &(&Planned, &FileStamp)| {
        let reader = Reader {
            file,
            input: &declared[file.declared].input,
            context,
        };
        context.check_cancelled()?;
        let kept = reader.read(FileStamp::clone(stamp), buffer);
        if let Some(progress) = context.progress {
            progress.finish_read(stamp.size);
        }
        context.unavailable.tolerate(kept)
    };
    let mut read = parallel::map(&unread, context.workers, Vec::new, work)?.into_iter();
    let content = |inspected: Tolerated<Inspected>| match inspected? {
        Inspected {
            stamp,
            known: Some(known),
        } => Ok(Content::Kept(Kept::known(known, &stamp))),
        Inspected { known: None, .. } => read.next().expect("one for each that is not known"),
    };
    Ok(inspected.into_iter().map(content).collect())
}

struct Reader<'a> {
    file: &'a Planned,
    input: &'a str,
    context: &'a Context<'a>,
}

impl Reader<'_> {
    fn read(&self, mut stamp: FileStamp, buffer: &mut Vec<u8>) -> Result<Content, AttachError> {
        let path = &self.file.path;
        let mut is_other = false;
        for _ in 0..=RETRIES {
            let unchanged = read_once(&stamp, buffer);
            if unchanged.map_err(|error| AttachError::io(self.input, "read", path, error))? {
                let is_private_key = secret::is_private_key(buffer);
                return match is_private_key && !self.file.is_named {
                    true => Ok(Content::LeftOut),
                    false => self.keep(&stamp, buffer, is_private_key).map(Content::Kept),
                };
            }
            let before = stamp;
            stamp = inspect::stamp(path, self.input, self.context.limits.max_bytes)?;
            is_other |= stamp != before;
        }
        let (input, path) = (self.input.to_owned(), path.clone());
        Err(if is_other {
            AttachError::Changing { input, path }
        } else {
            AttachError::MadeUp { input, path }
        })
    }

    /// Hands the content over, and gives `buffer` its memory back.
    ///
    /// A private key is never remembered: a walk would get it from the store and not see what it is.
    fn keep(
        &self,
        stamp: &FileStamp,
        buffer: &mut Vec<u8>,
        is_private_key: bool,
    ) -> Result<Kept, AttachError> {
        let (content, mime_type) = classify(std::mem::take(buffer), &self.file.identity.name);
        let notices =
            self.context
                .check_secrets(self.input, &self.file.identity.name, content.as_text())?;
        let is_remembered = !is_private_key && inspect::is_settled(stamp, self.context.now);
        let remembered = is_remembered.then_some(stamp);
        let blob = self.context.store.keep(&content, mime_type, remembered);
        *buffer = content.into_bytes();
        let failure = |source| AttachError::Store {
            input: self.input.to_owned(),
            of: self.file.path.to_string_lossy().into_owned(),
            source,
        };
        Ok(Kept {
            blob: blob.map_err(failure)?,
            mime_type: mime_type.to_owned(),
            last_modified: last_modified(stamp),
            was_known: false,
            is_private_key,
            notices,
        })
    }
}

/// Reads the file into `buffer`; returns whether it was, then and afterwards, in the state of `stamp`.
fn read_once(stamp: &FileStamp, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut file = open(&stamp.path)?;
    let size = usize::try_from(stamp.size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // One byte more, to see that the file ends there.
    buffer.clear();
    buffer
        .try_reserve(size + 1)
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    buffer.resize(size + 1, 0);
    let length = read_up_to(&mut file, buffer, size)?;
    buffer.truncate(length);
    Ok(length == size && inspect::is_same(stamp, &file.metadata()?))
}

/// Reads until `size` bytes or the end; a file that gives exactly `size` costs one call.
fn read_up_to(file: &mut File, buffer: &mut [u8], size: usize) -> io::Result<usize> {
    let mut length = 0;
    loop {
        match file.read(&mut buffer[length..]) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Only what has become a pipe since it was looked at.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        }
        if length >= size {
            return Ok(length);
        }
    }
}

/// Opens without waiting, should the file have become a pipe since it was looked at.
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

/// Writes the modification time as RFC 3339, in whole seconds of UTC.
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
