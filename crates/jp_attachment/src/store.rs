use std::{
    collections::HashMap,
    error::Error,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jp_resource::{BlobRef, ResourceContent};

/// A store for content, so that attached files need not be in memory at once.
///
/// Called from several threads. If a resolution fails, the caller drops the content that it stored.
pub trait ContentStore: Sync {
    /// Returns the content of a file that was stored in exactly this state, if the store still has
    /// it.
    fn lookup(&self, file: &FileStamp) -> Option<StoredFile>;

    /// Stores content. `file` is the state of the file that it was read from, if a later
    /// [`lookup`](Self::lookup) may find it.
    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>>;
}

/// The state of a file. If it is equal, the content is equal.
///
/// It has the absolute path, so it must not be stored below `.jp/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The canonical path.
    pub path: PathBuf,
    /// The number of the file system; 0 on Windows.
    pub device: u64,
    /// The number of the file in its file system; 0 on Windows.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// The time of the last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// The time of the last change of content or metadata, in nanoseconds since 1970.
    pub ctime_ns: i128,
}

/// Content that is already stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The reference to the content.
    pub blob: BlobRef,
    /// The content's MIME type.
    pub mime_type: String,
}

/// A store that drops all content, for callers that only need names and checksums.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl ContentStore for Nowhere {
    fn lookup(&self, _: &FileStamp) -> Option<StoredFile> {
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

/// A store in memory, which remembers the files that content was read from.
#[derive(Debug, Default)]
pub struct MemoryStore {
    contents: Mutex<HashMap<BlobRef, ResourceContent>>,
    known: Mutex<HashMap<FileStamp, StoredFile>>,
}

impl MemoryStore {
    /// Returns the content that `blob` names.
    #[must_use]
    pub fn get(&self, blob: &BlobRef) -> Option<ResourceContent> {
        lock(&self.contents).get(blob).cloned()
    }

    /// The number of stored contents.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.contents).len()
    }

    /// Returns whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the paths of the remembered files, in no order.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let known = lock(&self.known);
        known.keys().map(|file| file.path.clone()).collect()
    }

    /// Drops all contents, but not the memory of files.
    pub fn drop_contents(&self) {
        lock(&self.contents).clear();
    }
}

impl ContentStore for MemoryStore {
    fn lookup(&self, file: &FileStamp) -> Option<StoredFile> {
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
            lock(&self.known).insert(file.clone(), StoredFile { blob, mime_type });
        }
        Ok(blob)
    }
}

/// Locks a map. A panic elsewhere can't leave it inconsistent, because each change is one call.
fn lock<K, V>(map: &Mutex<HashMap<K, V>>) -> MutexGuard<'_, HashMap<K, V>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
