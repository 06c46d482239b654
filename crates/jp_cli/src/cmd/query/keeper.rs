//! Where handlers put what they find.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jp_attachment::{ContentStore, FileStamp, Known};
use jp_resource::{BlobRef, ResourceContent};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

/// Keeps content in a batch of blobs, and remembers which files it is from.
pub(crate) struct Keeper<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) stamps: &'a Stamps,
}

impl ContentStore for Keeper<'_> {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        let known = self.stamps.find(&state(file)?)?;
        let is_kept = self.batch.reuse(&known.blob).unwrap_or(false);
        is_kept.then_some(())?;
        Some(Known { blob: known.blob, mime_type: known.mime_type? })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn std::error::Error + Send + Sync>> {
        let blob = self.batch.put_content(content)?;
        if let Some(state) = file.and_then(state) {
            self.stamps.remember(state, KnownContent { blob, mime_type: Some(mime_type.to_owned()) });
        }
        Ok(blob)
    }
}

/// Returns what identifies a state of a file; nothing does where the system has no inodes to tell of.
fn state(file: &FileStamp) -> Option<FileState> {
    let mut name = DefaultHasher::new();
    file.path.file_name().hash(&mut name);
    (file.inode != 0).then(|| FileState {
        name: name.finish(),
        device: file.device,
        inode: file.inode,
        size: file.size,
        modified: file.mtime_ns,
        changed: file.ctime_ns,
    })
}
