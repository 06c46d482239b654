//! Content stores for handlers of attachments.

use std::{
    collections::HashMap,
    error::Error,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jp_attachment::{ContentStore, FileStamp, StoredFile};
use jp_llm::Measure;
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

/// Stores content in a batch of blobs, and remembers the files that it came from.
pub struct BatchStore<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) stamps: &'a Stamps,
    kept: Mutex<KeptContent>,
}

/// The content that a [`BatchStore`] has stored.
#[derive(Debug, Default)]
pub(crate) struct KeptContent {
    /// Files that contain it unchanged.
    pub(crate) files: HashMap<Checksum, PathBuf>,
    /// The measure of each text, from which a request computes the room that it needs.
    pub(crate) measures: HashMap<Checksum, Measure>,
}

impl<'a> BatchStore<'a> {
    /// Creates a store that has kept nothing yet.
    pub fn new(batch: &'a Batch, stamps: &'a Stamps) -> Self {
        Self {
            batch,
            stamps,
            kept: Mutex::default(),
        }
    }

    pub(crate) fn into_kept_content(self) -> KeptContent {
        self.kept
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file's content to the kept content.
    fn record(&self, blob: &BlobRef, file: &FileStamp, measure: Option<Measure>) {
        let mut kept = self.lock_kept();
        kept.files.insert(blob.checksum, file.path.clone());
        kept.measures
            .extend(measure.map(|measure| (blob.checksum, measure)));
    }

    fn lock_kept(&self) -> MutexGuard<'_, KeptContent> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContentStore for BatchStore<'_> {
    fn lookup(&self, file: &FileStamp) -> Option<StoredFile> {
        let known = self.stamps.find(&file_state(file)?)?;
        // A stamp outlives its blob, for example in another checkout or after `jp storage gc`.
        let has_blob = self.batch.reuse(&known.blob, known.file_length);
        has_blob.unwrap_or(false).then_some(())?;
        // The length is unknown if jp only compared the file so far. With it, the next command needn't open the blob.
        if known.file_length.is_none()
            && let file_length @ Some(_) = self.batch.file_length(&known.blob)
        {
            let state = file_state(file)?;
            let known = KnownContent {
                file_length,
                ..known.clone()
            };
            self.stamps.remember(state, known);
        }
        let measure = known.measure.as_deref().and_then(Measure::parse);
        self.record(&known.blob, file, measure);
        Some(StoredFile {
            blob: known.blob,
            mime_type: known.mime_type?,
        })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        let blob = self.batch.put_content(content)?;
        if let Some(file) = file {
            let file_length = || self.batch.file_length(&blob);
            let measure = remember(self.stamps, file, content, blob, mime_type, file_length);
            self.record(&blob, file, measure);
        }
        Ok(blob)
    }
}

/// Computes checksums and stores no content.
pub(crate) struct ChecksumStore<'a> {
    pub(crate) stamps: &'a Stamps,
}

impl ContentStore for ChecksumStore<'_> {
    fn lookup(&self, file: &FileStamp) -> Option<StoredFile> {
        let known = self.stamps.find(&file_state(file)?)?;
        Some(StoredFile {
            blob: known.blob,
            mime_type: known.mime_type?,
        })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        let blob = content.blob_ref();
        if let Some(file) = file {
            remember(self.stamps, file, content, blob, mime_type, || None);
        }
        Ok(blob)
    }
}

/// Remembers the content of a file, so that jp needn't read the file again while it is unchanged. Returns its measure.
fn remember(
    stamps: &Stamps,
    file: &FileStamp,
    content: &ResourceContent,
    blob: BlobRef,
    mime_type: &str,
    file_length: impl FnOnce() -> Option<u64>,
) -> Option<Measure> {
    let measure = match content {
        ResourceContent::Text(text) => Measure::from_text(text),
        ResourceContent::Blob(_) => None,
    };
    if let Some(state) = file_state(file) {
        let known = KnownContent {
            blob,
            mime_type: Some(mime_type.to_owned()),
            file_length: file_length(),
            measure: measure.map(|measure| measure.to_string()),
        };
        stamps.remember(state, known);
    }
    measure
}

/// Returns what identifies a state of a file; nothing if the file system has no inodes, because times alone don't.
fn file_state(file: &FileStamp) -> Option<FileState> {
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
