//! The stored content of a request.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use crate::{error::SessionError, query::ready_query::ReadyQuery};
use jp_conversation::view::Thread;
use jp_llm::{Contents, Later, Loaded, TextSource};
use jp_resource::{BlobRef, Checksum, ResourceContent};
use jp_storage::{BlobError, Blobs, ReadAhead};

/// A temporary store for the content of a query that the conversation does not keep. It is removed when it is dropped.
pub struct Scratch {
    _directory: tempfile::TempDir,
    blobs: Blobs,
}

impl Scratch {
    /// Makes a store in a temporary directory.
    ///
    /// # Errors
    ///
    /// If the directory can't be made.
    pub fn new() -> Result<Self, SessionError> {
        let directory = tempfile::Builder::new().prefix("jp-").tempdir();
        let directory = directory.map_err(|error| {
            SessionError::new(format!("failed to create a temporary directory: {error}"))
                .with_hint("set TMPDIR to a directory in which you can create files.")
        })?;
        let blobs = Blobs::open(directory.path().join("blobs"));
        Ok(Self {
            _directory: directory,
            blobs,
        })
    }

    /// Returns the blobs of the store.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }
}

/// Reads content ahead, in the order in which a thread needs it. Content that can be read while the
/// request is sent is left to [`Later`].
pub(crate) struct Ahead {
    expected: VecDeque<BlobRef>,
    ahead: ReadAhead,
    stores: Vec<Blobs>,
    later: Later,
}

/// Starts to read the content that a thread needs.
pub(crate) fn read_ahead(thread: &Thread<'_>, query: &ReadyQuery<'_>) -> Ahead {
    // The scratch store has content that the other lacks, and both ways of reading ahead know one
    // store only.
    let (mut expected, measures) = match &query.scratch {
        Some(_) => (Vec::new(), Arc::default()),
        None => (thread.blobs(), Arc::clone(&query.measures)),
    };
    expected.retain(|blob| !measures.contains_key(&blob.checksum));
    let stored = StoredContent {
        blobs: query.store.blobs().clone(),
        files: Arc::clone(&query.files),
    };
    Ahead {
        ahead: query
            .store
            .blobs()
            .read_ahead(expected.clone(), Arc::clone(&query.files)),
        expected: expected.into(),
        stores: stores(query),
        later: Later::new(measures, Arc::new(stored)),
    }
}

impl Contents for Ahead {
    fn load(&mut self, blob: &BlobRef) -> Loaded {
        if self.expected.front() == Some(blob) {
            self.expected.pop_front();
            // `None` means that its thread could not start: then the content is read here.
            if let Some(read) = self.ahead.next() {
                return Ok(read?);
            }
        }
        read_from(&self.stores, blob).map_err(Into::into)
    }

    fn later(&mut self) -> Option<&mut Later> {
        Some(&mut self.later)
    }
}

/// Reads the texts that a request leaves room for, while it is sent.
struct StoredContent {
    blobs: Blobs,
    files: Arc<HashMap<Checksum, PathBuf>>,
}

impl TextSource for StoredContent {
    fn read(&self, blobs: Vec<BlobRef>) -> Box<dyn Iterator<Item = Loaded> + Send> {
        let ahead = self.blobs.read_ahead(blobs, Arc::clone(&self.files));
        Box::new(ahead.map(|read| Ok(read?)))
    }
}

/// Reads content that an event of the conversation names.
pub(crate) fn read(query: &ReadyQuery<'_>, blob: &BlobRef) -> Result<ResourceContent, BlobError> {
    read_from(&stores(query), blob)
}

/// Returns the stores that may have content of a query: the scratch store, if there is one, and the
/// conversation's.
fn stores(query: &ReadyQuery<'_>) -> Vec<Blobs> {
    let scratch = query.scratch.as_ref().map(Scratch::blobs);
    let stores = scratch.into_iter().chain([query.store.blobs()]);
    stores.cloned().collect()
}

/// Reads from the first store that has the blob.
fn read_from(stores: &[Blobs], blob: &BlobRef) -> Result<ResourceContent, BlobError> {
    let (last, others) = stores.split_last().expect("there is a store to read from");
    for store in others {
        match store.read_content(blob) {
            Err(BlobError::Missing { .. }) => {}
            read => return read,
        }
    }
    last.read_content(blob)
}
