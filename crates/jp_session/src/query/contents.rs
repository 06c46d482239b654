//! Where a request takes stored content from.

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

/// A store for the content of a query that keeps nothing; gone when the query is done.
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

/// Reads content ahead, in the order in which a thread needs it, but what can be read when the request is sent.
pub(crate) struct Ahead {
    expected: VecDeque<BlobRef>,
    ahead: ReadAhead,
    stores: Vec<Blobs>,
    later: Later,
}

/// Starts reading what a thread needs.
pub(crate) fn contents(thread: &Thread<'_>, asked: &ReadyQuery<'_>) -> Ahead {
    let (store, scratch) = (&asked.store, asked.scratch.as_ref());
    let scratch = scratch.map(|scratch| scratch.blobs().clone());
    // What only the scratch store has can't be read from the other, ahead or later.
    let (mut expected, measures) = match scratch {
        Some(_) => (Vec::new(), Arc::default()),
        None => (thread.blobs(), Arc::clone(&asked.measures)),
    };
    expected.retain(|blob| !measures.contains_key(&blob.checksum));
    let stored = Stored {
        blobs: store.blobs().clone(),
        files: Arc::clone(&asked.files),
    };
    Ahead {
        ahead: store
            .blobs()
            .read_ahead(expected.clone(), Arc::clone(&asked.files)),
        expected: expected.into(),
        stores: scratch.into_iter().chain([store.blobs().clone()]).collect(),
        later: Later::new(measures, Arc::new(stored)),
    }
}

impl Contents for Ahead {
    fn load(&mut self, blob: &BlobRef) -> Loaded {
        if self.expected.front() == Some(blob) {
            self.expected.pop_front();
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

/// Where a request finds the texts that it has room for.
struct Stored {
    blobs: Blobs,
    files: Arc<HashMap<Checksum, PathBuf>>,
}

impl TextSource for Stored {
    fn read(&self, blobs: Vec<BlobRef>) -> Box<dyn Iterator<Item = Loaded> + Send> {
        let ahead = self.blobs.read_ahead(blobs, Arc::clone(&self.files));
        Box::new(ahead.map(|read| Ok(read?)))
    }
}

/// Reads content that the conversation names.
pub(crate) fn read(asked: &ReadyQuery<'_>, blob: &BlobRef) -> Result<ResourceContent, BlobError> {
    let scratch = asked
        .scratch
        .as_ref()
        .map(|scratch| scratch.blobs().clone());
    read_from(
        &Vec::from_iter(scratch.into_iter().chain([asked.store.blobs().clone()])),
        blob,
    )
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
