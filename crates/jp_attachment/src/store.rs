use std::{error::Error, path::PathBuf};

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
