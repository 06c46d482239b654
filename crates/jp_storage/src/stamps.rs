//! Which file states have which content, so that an unchanged file is not read again.
//!
//! A cache in the user's cache directory: it holds no path, only what the file system says of a file
//! (device, inode, size, times) and the content's checksum, and it may be deleted at any time.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs, io,
    path::PathBuf,
    sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard},
};

use jp_resource::{BlobRef, Checksum, Encoding};

/// What identifies one state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// The file system.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
    /// A hash of its name: the MIME type depends on that too, and one file may have several.
    pub name: u64,
    /// Length in bytes.
    pub size: u64,
    /// Last change of content, in nanoseconds since the Unix epoch.
    pub modified: i128,
    /// Last change of anything, in nanoseconds since the Unix epoch.
    pub changed: i128,
}

/// What a file in that state holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownContent {
    /// The content.
    pub blob: BlobRef,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Length of the blob's file in a store, if it was written to one.
    pub file_length: Option<u64>,
    /// What whoever remembers it wants to know of the content, without spaces.
    pub measure: Option<String>,
}

/// The cache of one workspace.
#[derive(Debug)]
pub struct Stamps {
    path: PathBuf,
    /// Read when it is first asked.
    known: OnceLock<RwLock<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    contents: HashMap<FileState, KnownContent>,
    is_changed: bool,
}

/// More entries than this are not worth reading: the cache starts anew.
const MAX_ENTRIES: usize = 200_000;

impl Stamps {
    /// Names the cache at `path`; one that is missing or damaged is empty. Does no I/O.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self {
            path,
            known: OnceLock::new(),
        }
    }

    /// Returns what a file in this state holds, if it was read before.
    #[must_use]
    pub fn find(&self, state: &FileState) -> Option<KnownContent> {
        let known = self.read().read().unwrap_or_else(PoisonError::into_inner);
        known.contents.get(state).cloned()
    }

    /// Reads the cache, if it was not read before: for a thread that has nothing else to do yet.
    pub fn preload(&self) {
        self.read();
    }

    /// Remembers what a file in this state holds.
    pub fn remember(&self, state: FileState, content: KnownContent) {
        let mut known = self.lock();
        known.contents.insert(state, content);
        known.is_changed = true;
    }

    /// Writes the cache if anything was remembered.
    pub fn save(&self) -> io::Result<()> {
        if self.known.get().is_none() {
            return Ok(());
        }
        let known = self.lock();
        if !known.is_changed {
            return Ok(());
        }
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
        let read = || {
            let text = fs::read_to_string(&self.path).unwrap_or_default();
            let contents = whole(&text).lines().filter_map(parse_line).collect();
            RwLock::new(Known {
                contents,
                is_changed: false,
            })
        };
        self.known.get_or_init(read)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Known> {
        self.read().write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the lines after the first, which is their checksum; none where they are not those that were written.
fn whole(text: &str) -> &str {
    let (checksum, lines) = text.split_once('\n').unwrap_or_default();
    if checksum == Checksum::compute(lines.as_bytes()).to_string() {
        lines
    } else {
        ""
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
    // No file is empty.
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
    let mime_type = word(next()?);
    let file_length = Some(next()?.parse().ok()?).filter(|length| *length > 0);
    let measure = word(next()?);
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

fn word(field: &str) -> Option<String> {
    (field != "-").then(|| field.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_states_are_known_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache/checksums");
        let state = FileState {
            device: 1,
            inode: 2,
            name: 9,
            size: 3,
            modified: -4,
            changed: 5,
        };
        let blob = BlobRef {
            checksum: Checksum::compute(b"abc"),
            size: 3,
            encoding: Encoding::Utf8,
        };
        let (mime_type, measure) = (Some("text/plain".to_owned()), Some("3,0,0".to_owned()));
        let content = KnownContent {
            blob,
            mime_type,
            file_length: Some(23),
            measure,
        };
        let stamps = Stamps::open(path.clone());
        stamps.remember(state, content.clone());
        stamps.save().unwrap();
        let stamps = Stamps::open(path);
        assert_eq!(stamps.find(&state), Some(content));
        assert_eq!(
            stamps.find(&FileState {
                changed: 6,
                ..state
            }),
            None
        );
    }

    #[test]
    fn damaged_cache_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checksums");
        fs::write(&path, "1 2 3\nrubbish\n").unwrap();
        assert!(Stamps::open(path.clone()).lock().contents.is_empty());

        let state = FileState {
            device: 1,
            inode: 2,
            name: 9,
            size: 3,
            modified: -4,
            changed: 5,
        };
        let blob = BlobRef {
            checksum: Checksum::compute(b"abc"),
            size: 3,
            encoding: Encoding::Utf8,
        };
        let measure = Some("23,0,0".to_owned());
        let stamps = Stamps::open(path.clone());
        stamps.remember(
            state,
            KnownContent {
                blob,
                mime_type: None,
                file_length: None,
                measure,
            },
        );
        stamps.save().unwrap();
        let saved = fs::read_to_string(&path).unwrap();
        fs::write(&path, saved.replace("23,0,0", "24,0,0")).unwrap();
        assert_eq!(Stamps::open(path.clone()).find(&state), None);
        fs::write(&path, saved).unwrap();
        assert!(Stamps::open(path).find(&state).is_some());
    }
}
