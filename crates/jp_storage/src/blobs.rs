//! Content-addressed storage for the content of conversations.
//!
//! A blob is named by the SHA-256 of its raw bytes and kept gzip-compressed in
//! `ab/<other 62 digits>.blob.gz`. Equal content gives equal files, so stores of two people merge
//! without conflicts, and no text can be found in a store by searching it.
//!
//! In reading order: [`Blobs`] is a store. [`Blobs::batch`] returns a [`Batch`], which adds any amount of
//! content and makes it durable with one or two syncs. [`Blobs::read`] and [`Blobs::read_ahead`] return
//! verified content. [`Blobs::iter`] and [`Blobs::verify`] are for maintenance.
//!
//! A store needs no lock. A file with its final name is complete, and only its modification time changes.

mod check;
mod gzip;
mod literal;
mod read;
mod read_ahead;
mod write;

use std::{
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use jp_resource::{Checksum, ContentError};

pub use self::{
    check::{BlobFile, BlobFiles, BlobStatus, Leftovers},
    read_ahead::ReadAhead,
    write::{Batch, CommitReport},
};
use crate::{
    directory::{Access, Directory},
    files::TEMPORARY,
    tree::Tree,
};

/// A store of blobs in a directory. It is cheap to clone, and clones share offered batches.
#[derive(Debug, Clone)]
pub struct Blobs {
    directory: Arc<Path>,
    tree: Tree,
    /// The store's directory for reading. A handle saves looking up its path for every blob.
    opened: Arc<OnceLock<Directory>>,
    /// The ids of batches whose blobs are complete but still have temporary names.
    offered: Arc<Mutex<Vec<u64>>>,
}

/// An error of reading or storing a blob. Messages finish the sentence "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The file doesn't exist.
    #[error("find blob {checksum}: {} does not exist", path.display())]
    Missing {
        /// The requested blob.
        checksum: Checksum,
        /// The path of its file.
        path: PathBuf,
    },
    /// The file exists, but its content doesn't match its name.
    #[error("read blob {checksum}: {} is damaged: {damage}", path.display())]
    Corrupt {
        /// The requested blob.
        checksum: Checksum,
        /// The damaged file.
        path: PathBuf,
        /// The kind of damage.
        damage: Damage,
    },
    /// The file states a larger size than the caller allows.
    #[error("read blob {checksum}: {} has {size} bytes, more than {cap}", path.display())]
    TooLarge {
        /// The requested blob.
        checksum: Checksum,
        /// Its file.
        path: PathBuf,
        /// The length of the content that the file states.
        size: u64,
        /// The limit of the caller.
        cap: u64,
    },
    /// The blob is recorded as text but isn't UTF-8.
    #[error("read a blob as text")]
    NotText(#[from] ContentError),
    /// An earlier [`Batch::put`] failed, so the batch can't be committed.
    #[error("store blobs in {}: one of them could not be written", path.display())]
    Incomplete {
        /// The store.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("{action} {}", path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The kind of damage of a blob's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file is too short or too long for content of this size.
    #[error("a file of {length} bytes can't hold {size} bytes")]
    Length {
        /// Length of the file.
        length: u64,
        /// The recorded length of the content.
        size: u64,
    },
    /// The size that the file states differs from the recorded one.
    #[error("it states {found} bytes, but {expected} are recorded")]
    Size {
        /// The length of the content modulo 2³² that the file states.
        found: u32,
        /// The recorded length of the content.
        expected: u64,
    },
    /// The file isn't gzip, or gzip's checksum doesn't match.
    #[error("it does not decompress")]
    Gzip,
    /// The checksum of the content doesn't match.
    #[error("its content has the checksum {0}")]
    Checksum(Checksum),
}

impl Blobs {
    /// Makes the store in `directory`, which need not exist. Does no I/O.
    ///
    /// The directory's path may contain links. Below it, links are refused.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self::below(Tree::new(&directory, Access::Shared), &directory)
    }

    /// Makes the store in a directory of `tree`. Does no I/O.
    pub(crate) fn below(tree: Tree, directory: &Path) -> Self {
        Self {
            directory: directory.into(),
            tree,
            opened: Arc::default(),
            offered: Arc::default(),
        }
    }

    /// Returns the store's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn open_blob(&self, checksum: &Checksum) -> io::Result<(File, Metadata)> {
        let directory = match self.opened.get() {
            Some(directory) => directory,
            None => {
                let directory = self.tree.directory(&self.directory)?;
                self.opened.get_or_init(|| directory)
            }
        };
        let opened = directory.open_file(blob_name(checksum));
        if !is_missing(&opened) {
            return opened;
        }
        // The blobs of a batch have temporary names before it is committed.
        let batches = self.lock_offered().clone();
        let mut offered = batches
            .into_iter()
            .map(|batch| directory.open_file(temporary_name(checksum, batch)));
        // The batch may have been committed meanwhile.
        let opened = offered
            .find(|opened| !is_missing(opened))
            .unwrap_or_else(|| directory.open_file(blob_name(checksum)));
        if !is_missing(&opened) {
            return opened;
        }
        // The store may have been removed and made again since its handle was opened. Only a missing blob
        // costs this lookup.
        self.tree
            .directory(&self.directory)?
            .open_file(blob_name(checksum))
    }

    fn lock_offered(&self) -> MutexGuard<'_, Vec<u64>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of a blob's file, which may not exist.
    #[must_use]
    pub fn path(&self, checksum: &Checksum) -> PathBuf {
        self.directory.join(blob_name(checksum))
    }
}

fn is_missing<T>(opened: &io::Result<T>) -> bool {
    matches!(opened, Err(error) if error.kind() == io::ErrorKind::NotFound)
}

impl BlobError {
    fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Returns the name of the directory of a blob's file.
fn shard_name(checksum: &Checksum) -> String {
    let mut name = checksum.to_string();
    name.truncate(2);
    name
}

/// Returns the path of a blob's file, relative to the store.
fn blob_name(checksum: &Checksum) -> String {
    let mut name = checksum.to_string();
    name.insert(2, '/');
    name.push_str(SUFFIX);
    name
}

/// Returns the path of a blob's file in an uncommitted batch, relative to the store.
fn temporary_name(checksum: &Checksum, batch: u64) -> String {
    let checksum = checksum.to_string();
    let (shard, rest) = checksum.split_at(2);
    format!("{shard}/{TEMPORARY}{batch:016x}-{rest}")
}

const SUFFIX: &str = ".blob.gz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_has_one_level() {
        let blobs = Blobs::open("/store");
        assert_eq!(
            blobs.path(&Checksum::compute(b"abc")),
            Path::new(
                "/store/ba/7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.blob.gz"
            )
        );
    }
}
