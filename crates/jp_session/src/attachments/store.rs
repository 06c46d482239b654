//! Where handlers put what they find.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use jp_attachment::{ContentStore, FileStamp, Known};
use jp_llm::Measure;
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

/// Keeps content in a batch of blobs, and remembers which files it is from.
pub struct Keeper<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) stamps: &'a Stamps,
    kept: Mutex<Kept>,
}

/// What is known of content that was kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Files that hold it as it is.
    pub(crate) files: HashMap<Checksum, PathBuf>,
    /// What a request has to know of it to leave room for it.
    pub(crate) measures: HashMap<Checksum, Measure>,
}

impl<'a> Keeper<'a> {
    /// Begins with nothing kept.
    pub fn new(batch: &'a Batch, stamps: &'a Stamps) -> Self {
        Self {
            batch,
            stamps,
            kept: Mutex::default(),
        }
    }

    pub(crate) fn into_kept(self) -> Kept {
        self.kept
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, blob: &BlobRef, file: &FileStamp, measure: Option<Measure>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.files.insert(blob.checksum, file.path.clone());
        kept.measures
            .extend(measure.map(|measure| (blob.checksum, measure)));
    }
}

impl ContentStore for Keeper<'_> {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        let known = self.stamps.find(&state(file)?)?;
        let is_kept = self
            .batch
            .reuse(&known.blob, known.file_length)
            .unwrap_or(false);
        is_kept.then_some(())?;
        if known.file_length.is_none()
            && let file_length @ Some(_) = self.batch.file_length(&known.blob)
        {
            self.stamps.remember(
                state(file)?,
                KnownContent {
                    file_length,
                    ..known.clone()
                },
            );
        }
        self.note(
            &known.blob,
            file,
            known.measure.as_deref().and_then(Measure::parse),
        );
        Some(Known {
            blob: known.blob,
            mime_type: known.mime_type?,
        })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn std::error::Error + Send + Sync>> {
        let blob = self.batch.put_content(content)?;
        let Some(file) = file else { return Ok(blob) };
        let measure = measure(content);
        if let Some(state) = state(file) {
            let file_length = self.batch.file_length(&blob);
            self.stamps
                .remember(state, known_content(blob, mime_type, file_length, measure));
        }
        self.note(&blob, file, measure);
        Ok(blob)
    }
}

/// Returns what a request has to know of content to leave room for it.
pub(crate) fn measure(content: &ResourceContent) -> Option<Measure> {
    match content {
        ResourceContent::Text(text) => Measure::from_text(text),
        ResourceContent::Blob(_) => None,
    }
}

/// Returns what is remembered of a file that was read.
pub(crate) fn known_content(
    blob: BlobRef,
    mime_type: &str,
    file_length: Option<u64>,
    measure: Option<Measure>,
) -> KnownContent {
    let (mime_type, measure) = (
        Some(mime_type.to_owned()),
        measure.map(|measure| measure.to_string()),
    );
    KnownContent {
        blob,
        mime_type,
        file_length,
        measure,
    }
}

/// Returns what identifies a state of a file; nothing does where the system has no inodes to tell of.
pub(crate) fn state(file: &FileStamp) -> Option<FileState> {
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
