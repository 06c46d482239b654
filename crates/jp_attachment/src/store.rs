use std::{
    collections::HashMap,
    error::Error,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jp_resource::{BlobRef, ResourceContent};

/// Keeps content, so that 100 MB of files can be attached without being in memory at once.
///
/// Called from several threads. What a failed resolution kept is for the caller to drop.
pub trait ContentStore: Sync {
    /// Returns what is known of a file in exactly this state, if its content is still kept.
    fn known(&self, file: &FileStamp) -> Option<Known>;

    /// Keeps content. `file` is the state that it was read from, where that may be [`known`](Self::known)
    /// another time.
    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>>;
}

/// A state of a file: if none of it differs, the content does not.
///
/// Holds the absolute path: it must not be stored under `.jp/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The canonical path.
    pub path: PathBuf,
    /// The file system's number; 0 where there is none to be had.
    pub device: u64,
    /// The file's number in its file system; 0 where there is none to be had.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// When the content last changed, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// When content or metadata last changed, in nanoseconds since 1970.
    pub ctime_ns: i128,
}

/// What reading a file would give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Names the content.
    pub blob: BlobRef,
    /// The content's MIME type.
    pub mime_type: String,
}

/// Keeps nothing and knows nothing: for who wants to know what there is, and not what it holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl ContentStore for Nowhere {
    fn known(&self, _: &FileStamp) -> Option<Known> {
        None
    }

    fn keep(
        &self,
        content: &ResourceContent,
        _: &str,
        _: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        Ok(content.blob_ref())
    }
}

/// Keeps content in memory, and remembers the files that it was read from.
#[derive(Debug, Default)]
pub struct MemoryStore {
    contents: Mutex<HashMap<BlobRef, ResourceContent>>,
    known: Mutex<HashMap<FileStamp, Known>>,
}

impl MemoryStore {
    /// Returns the content that `blob` names.
    #[must_use]
    pub fn get(&self, blob: &BlobRef) -> Option<ResourceContent> {
        lock(&self.contents).get(blob).cloned()
    }

    /// Returns how many contents are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.contents).len()
    }

    /// Returns whether no content is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the paths of the files that are remembered, in no order.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let known = lock(&self.known);
        known.keys().map(|file| file.path.clone()).collect()
    }

    /// Drops the contents; what is remembered of files stays.
    pub fn drop_contents(&self) {
        lock(&self.contents).clear();
    }
}

impl ContentStore for MemoryStore {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        lock(&self.known).get(file).cloned()
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        let blob = content.blob_ref();
        lock(&self.contents).insert(blob, content.clone());
        if let Some(file) = file {
            let mime_type = mime_type.to_owned();
            lock(&self.known).insert(file.clone(), Known { blob, mime_type });
        }
        Ok(blob)
    }
}

/// Locks a map, which a panic elsewhere leaves whole: each change of it is one call.
fn lock<K, V>(map: &Mutex<HashMap<K, V>>) -> MutexGuard<'_, HashMap<K, V>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
