//! Where handlers put what they find.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use jp_attachment::{ContentStore, FileStamp, Known};
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

/// Keeps content in a batch of blobs, and remembers which files it is from.
pub(crate) struct Keeper<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) stamps: &'a Stamps,
    /// Files that hold what was kept, as it is.
    files: Mutex<HashMap<Checksum, PathBuf>>,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(batch: &'a Batch, stamps: &'a Stamps) -> Self {
        Self { batch, stamps, files: Mutex::default() }
    }

    /// Returns a file for each content that is from one.
    pub(crate) fn into_files(self) -> HashMap<Checksum, PathBuf> {
        self.files.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, blob: &BlobRef, file: &FileStamp) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(blob.checksum, file.path.clone());
    }
}

impl ContentStore for Keeper<'_> {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        let known = self.stamps.find(&state(file)?)?;
        let is_kept = self.batch.reuse(&known.blob, known.file_length).unwrap_or(false);
        is_kept.then_some(())?;
        if known.file_length.is_none()
            && let file_length @ Some(_) = self.batch.file_length(&known.blob)
        {
            self.stamps.remember(state(file)?, KnownContent { file_length, ..known.clone() });
        }
        self.note(&known.blob, file);
        Some(Known { blob: known.blob, mime_type: known.mime_type? })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn std::error::Error + Send + Sync>> {
        let blob = self.batch.put_content(content)?;
        if let Some(file) = file {
            self.note(&blob, file);
        }
        if let Some(state) = file.and_then(state) {
            let (mime_type, file_length) = (Some(mime_type.to_owned()), self.batch.file_length(&blob));
            self.stamps.remember(state, KnownContent { blob, mime_type, file_length });
        }
        Ok(blob)
    }
}

/// Returns what identifies a state of a file; nothing does where the system has no inodes to tell of.
pub(super) fn state(file: &FileStamp) -> Option<FileState> {
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
