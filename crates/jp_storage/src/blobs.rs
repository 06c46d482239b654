//! Content-addressed storage for what conversations refer to.
//!
//! A blob is named by the SHA-256 of its raw bytes and kept gzip-compressed in
//! `ab/<other 62 digits>.blob.gz`. Equal content gives equal files, so stores of two people merge
//! without conflicts, and no text can be found in a store by searching it.
//!
//! In reading order: [`Blobs`] is a store; [`Blobs::batch`] gives a [`Batch`], which adds content to
//! it and makes it durable with one sync, or two, however much it is; [`Blobs::read`] and
//! [`Blobs::read_ahead`] give it back, always verified; [`Blobs::iter`] and [`Blobs::verify`] are for
//! upkeep.
//!
//! A store needs no lock: a file under a final name is complete, and never changes but for its
//! modification time.

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

/// A store of blobs in a directory; cheap to clone, and clones know of each other's batches.
#[derive(Debug, Clone)]
pub struct Blobs {
    directory: Arc<Path>,
    tree: Tree,
    /// For reading: a name is looked up from here, not from the root of the file system.
    opened: Arc<OnceLock<Directory>>,
    /// The ids of batches whose blobs are complete and on their way to their names.
    offered: Arc<Mutex<Vec<u64>>>,
}

/// What went wrong with a blob.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// No file is there.
    #[error("find blob {checksum}: {} does not exist", path.display())]
    Missing {
        /// The blob asked for.
        checksum: Checksum,
        /// Where it would be.
        path: PathBuf,
    },
    /// The file is there but does not hold what its name says.
    #[error("read blob {checksum}: {} is damaged: {damage}", path.display())]
    Corrupt {
        /// The blob asked for.
        checksum: Checksum,
        /// The damaged file.
        path: PathBuf,
        /// In what way.
        damage: Damage,
    },
    /// The blob says it is larger than the caller allows.
    #[error("read blob {checksum}: {} holds {size} bytes, more than {cap}", path.display())]
    TooLarge {
        /// The blob asked for.
        checksum: Checksum,
        /// Its file.
        path: PathBuf,
        /// Length of the content, as the file states it.
        size: u64,
        /// What the caller allows.
        cap: u64,
    },
    /// The blob is recorded as text and is not.
    #[error("read a blob as text")]
    NotText(#[from] ContentError),
    /// An earlier [`Batch::put`] failed, so there is nothing whole to commit.
    #[error("store blobs in {}: one of them could not be written", path.display())]
    Incomplete {
        /// The store.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// In what way a blob's file is damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file is shorter or longer than any file for content of this size.
    #[error("a file of {length} bytes can't hold {size} bytes")]
    Length {
        /// Length of the file.
        length: u64,
        /// Length of the content, as it is recorded.
        size: u64,
    },
    /// The file's own record of the content's size is another one.
    #[error("it states {found} bytes where {expected} are recorded")]
    Size {
        /// Length of the content modulo 2³², as the file states it.
        found: u32,
        /// Length of the content, as it is recorded.
        expected: u64,
    },
    /// The file is not gzip, or its content fails gzip's own check.
    #[error("it does not decompress")]
    Gzip,
    /// The content is another one.
    #[error("its content has the checksum {0}")]
    Checksum(Checksum),
}

impl Blobs {
    /// Names the store in `directory`, which need not exist. Does no I/O.
    ///
    /// Links may lead to it; below it none is followed.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self::below(Tree::new(&directory, Access::Shared), &directory)
    }

    /// Names the store in a directory of `tree`. Does no I/O.
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
        // A batch that is not committed yet keeps its content under temporary names.
        let batches = self.lock_offered().clone();
        let mut offered = batches
            .into_iter()
            .map(|batch| directory.open_file(temporary_name(checksum, batch)));
        // By now it may have got its name.
        let opened = offered
            .find(|opened| !is_missing(opened))
            .unwrap_or_else(|| directory.open_file(blob_name(checksum)));
        if !is_missing(&opened) {
            return opened;
        }
        // The store may have been removed and made again since its handle was opened. Only here, so that a blob that is
        // found costs no lookup of the store.
        self.tree
            .directory(&self.directory)?
            .open_file(blob_name(checksum))
    }

    fn lock_offered(&self) -> MutexGuard<'_, Vec<u64>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file of a blob, whether or not it exists.
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

/// Name of the directory that a blob's file is in.
fn shard_name(checksum: &Checksum) -> String {
    let mut name = checksum.to_string();
    name.truncate(2);
    name
}

/// Name of a blob's file, relative to the store.
fn blob_name(checksum: &Checksum) -> String {
    let mut name = checksum.to_string();
    name.insert(2, '/');
    name.push_str(SUFFIX);
    name
}

/// Name of a blob's file in a batch before it has its own, relative to the store.
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
