//! Caches the content's checksum for each state of a file, so that jp doesn't read an unchanged file
//! again.
//!
//! The cache is in the user's cache directory and can be deleted at any time. It contains no path, only
//! the file system's data about a file (device, inode, size, times) and the checksum.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs, io,
    path::PathBuf,
    sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard},
};

use jp_resource::{BlobRef, Checksum, Encoding};

/// The identity of one state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// The file system.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
    /// A hash of its name. The MIME type depends on the name, and a file may have several.
    pub name: u64,
    /// Length in bytes.
    pub size: u64,
    /// The last change of its content, in nanoseconds since the Unix epoch.
    pub modified: i128,
    /// The last change of its content or metadata, in nanoseconds since the Unix epoch.
    pub changed: i128,
}

/// The content of a file in a known state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownContent {
    /// The content.
    pub blob: BlobRef,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// The length of the blob's file in a store, if it was written to one.
    pub file_length: Option<u64>,
    /// A measurement of the content by the caller, without spaces.
    pub measure: Option<String>,
}

/// The cache of one workspace.
#[derive(Debug)]
pub struct Stamps {
    path: PathBuf,
    /// Loaded at the first use.
    known: OnceLock<RwLock<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    contents: HashMap<FileState, KnownContent>,
    is_changed: bool,
}

/// The largest number of entries, about 35 MB. Reading more takes longer than it saves, so a larger
/// cache is cleared.
const MAX_ENTRIES: usize = 200_000;

impl Stamps {
    /// Makes the cache at `path`. A missing or damaged one is empty. Does no I/O.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self {
            path,
            known: OnceLock::new(),
        }
    }

    /// Returns the content of a file in this state, if it is known.
    #[must_use]
    pub fn find(&self, state: &FileState) -> Option<KnownContent> {
        let known = self.read().read().unwrap_or_else(PoisonError::into_inner);
        known.contents.get(state).cloned()
    }

    /// Loads the cache if it isn't loaded, so that a later [`find`](Self::find) doesn't wait.
    pub fn preload(&self) {
        self.read();
    }

    /// Stores the content of a file in this state.
    pub fn remember(&self, state: FileState, content: KnownContent) {
        let mut known = self.lock();
        known.contents.insert(state, content);
        known.is_changed = true;
    }

    /// Writes the cache if it has changed.
    pub fn save(&self) -> io::Result<()> {
        if self.known.get().is_none() {
            return Ok(());
        }
        let known = self.lock();
        if !known.is_changed {
            return Ok(());
        }
        // A line has about 170 bytes.
        let mut lines = String::with_capacity(known.contents.len() * 170);
        if known.contents.len() <= MAX_ENTRIES {
            known
                .contents
                .iter()
                .for_each(|(state, content)| write_line(&mut lines, state, content));
        }
        lines.insert_str(0, &format!("{}\n", Checksum::compute(lines.as_bytes())));
        crate::files::replace_cache(&self.path, lines.as_bytes())
    }

    fn read(&self) -> &RwLock<Known> {
        self.known.get_or_init(|| {
            let text = fs::read_to_string(&self.path).unwrap_or_default();
            RwLock::new(Known {
                contents: verified_lines(&text).filter_map(parse_line).collect(),
                is_changed: false,
            })
        })
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Known> {
        self.read().write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the lines after the first, which has their checksum. A damaged text has none.
fn verified_lines(text: &str) -> std::str::Lines<'_> {
    let (checksum, lines) = text.split_once('\n').unwrap_or_default();
    match checksum == Checksum::compute(lines.as_bytes()).to_string() {
        true => lines.lines(),
        false => "".lines(),
    }
}

fn write_line(text: &mut String, state: &FileState, content: &KnownContent) {
    let FileState {
        device,
        inode,
        name,
        size,
        modified,
        changed,
    } = state;
    let encoding = match content.blob.encoding {
        Encoding::Utf8 => "utf8",
        Encoding::Binary => "binary",
    };
    let mime_type = content.mime_type.as_deref().unwrap_or("-");
    let checksum = content.blob.checksum;
    // 0 stands for an unknown length, because no blob's file is empty.
    let file_length = content.file_length.unwrap_or_default();
    let measure = content.measure.as_deref().unwrap_or("-");
    writeln!(
        text,
        "{device} {inode} {name} {size} {modified} {changed} {checksum} {encoding} {mime_type} {file_length} {measure}"
    )
    .expect("writing to a string does not fail");
}

fn parse_line(line: &str) -> Option<(FileState, KnownContent)> {
    let mut fields = line.split(' ');
    // The order of `write_line`.
    let mut next = || fields.next();
    let state = FileState {
        device: next()?.parse().ok()?,
        inode: next()?.parse().ok()?,
        name: next()?.parse().ok()?,
        size: next()?.parse().ok()?,
        modified: next()?.parse().ok()?,
        changed: next()?.parse().ok()?,
    };
    let checksum = next()?.parse().ok()?;
    let encoding = match next()? {
        "utf8" => Encoding::Utf8,
        "binary" => Encoding::Binary,
        _ => return None,
    };
    let mime_type = optional_word(next()?);
    let file_length = Some(next()?.parse().ok()?).filter(|length| *length > 0);
    let measure = optional_word(next()?);
    let blob = BlobRef {
        checksum,
        size: state.size,
        encoding,
    };
    Some((
        state,
        KnownContent {
            blob,
            mime_type,
            file_length,
            measure,
        },
    ))
}

fn optional_word(field: &str) -> Option<String> {
    (field != "-").then(|| field.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: FileState = FileState {
        device: 1,
        inode: 2,
        name: 9,
        size: 3,
        modified: -4,
        changed: 5,
    };

    fn content(mime_type: Option<&str>, file_length: Option<u64>) -> KnownContent {
        KnownContent {
            blob: BlobRef::for_content(b"abc", Encoding::Utf8),
            mime_type: mime_type.map(str::to_owned),
            file_length,
            measure: Some("23,0,0".to_owned()),
        }
    }

    #[test]
    fn saved_states_are_known_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache/checksums");
        let content = content(Some("text/plain"), Some(23));
        let stamps = Stamps::open(path.clone());
        stamps.remember(STATE, content.clone());
        stamps.save().unwrap();
        let stamps = Stamps::open(path);
        assert_eq!(stamps.find(&STATE), Some(content));
        let changed = FileState {
            changed: 6,
            ..STATE
        };
        assert_eq!(stamps.find(&changed), None);
    }

    #[test]
    fn damaged_cache_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checksums");
        fs::write(&path, "1 2 3\nrubbish\n").unwrap();
        assert!(Stamps::open(path.clone()).lock().contents.is_empty());

        let stamps = Stamps::open(path.clone());
        stamps.remember(STATE, content(None, None));
        stamps.save().unwrap();
        let saved = fs::read_to_string(&path).unwrap();
        fs::write(&path, saved.replace("23,0,0", "24,0,0")).unwrap();
        assert_eq!(Stamps::open(path.clone()).find(&STATE), None);
        fs::write(&path, saved).unwrap();
        assert!(Stamps::open(path).find(&STATE).is_some());
    }
}
