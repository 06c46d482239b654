use std::{
    ffi::{OsStr, OsString},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
    vec,
};

use jp_resource::Checksum;

use super::{BlobError, Blobs, SUFFIX};
use crate::{
    directory::{Directory, skip_absent},
    tree::{remove_stale, temporaries},
};

/// A blob's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobFile {
    /// The blob's name.
    pub checksum: Checksum,
    /// Its path.
    pub path: PathBuf,
    /// The length of the compressed file.
    pub length: u64,
    /// The time when it was written or last named by a new event.
    pub modified: SystemTime,
}

/// The size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobStatus {
    /// The number of blobs.
    pub count: u64,
    /// The length of their compressed files.
    pub bytes: u64,
}

/// The counts of temporary files, which crashed or active writers left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// The number of removed files.
    pub removed: usize,
    /// The number of files that stay because they changed recently.
    pub kept: usize,
}

/// All blobs of a store, ordered by checksum. Made by [`Blobs::iter`].
#[derive(Debug)]
pub struct BlobFiles {
    /// The store; `None` if it doesn't exist.
    store: Option<Directory>,
    /// The names of its directories, two digits each.
    shards: vec::IntoIter<OsString>,
    /// The files of the current directory.
    files: vec::IntoIter<PathBuf>,
}

impl Blobs {
    /// Lists the store's blobs, unverified. A store that does not exist has none.
    pub fn iter(&self) -> Result<BlobFiles, BlobError> {
        let store = match self.tree.directory(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map_err(BlobError::io("list", &*self.directory))?),
        };
        let shards = store.as_ref().map(shards).transpose()?.unwrap_or_default();
        Ok(BlobFiles {
            store,
            shards: shards.into_iter(),
            files: Vec::new().into_iter(),
        })
    }

    /// Counts the store's blobs.
    pub fn status(&self) -> Result<BlobStatus, BlobError> {
        self.iter()?
            .try_fold(BlobStatus::default(), |status, file| {
                let bytes = status.bytes + file?.length;
                Ok(BlobStatus {
                    count: status.count + 1,
                    bytes,
                })
            })
    }

    /// Removes temporary files that haven't changed for `age`, which crashed writers left.
    pub fn clean_stale_temporaries(&self, age: Duration) -> Result<Leftovers, BlobError> {
        let mut leftovers = Leftovers::default();
        let failed = BlobError::io("list", &*self.directory);
        let Some(store) = skip_absent(self.tree.directory(&self.directory)).map_err(failed)? else {
            return Ok(leftovers);
        };
        for shard in shards(&store)? {
            let path = store.path().join(&shard);
            if !store
                .is_directory(&shard)
                .is_ok_and(|is_directory| is_directory)
            {
                continue;
            }
            let opened =
                skip_absent(store.open_directory(&shard)).map_err(BlobError::io("list", &path))?;
            let Some(shard) = opened else { continue };
            for name in temporaries(&shard).map_err(BlobError::io("list", &path))? {
                let failed = BlobError::io("remove", path.join(&name));
                leftovers.remove(&shard, &name, age).map_err(failed)?;
            }
        }
        Ok(leftovers)
    }
}

impl Leftovers {
    /// Removes a file or a directory if it hasn't changed for `age`, and counts it.
    pub(crate) fn remove(
        &mut self,
        directory: &Directory,
        name: &OsStr,
        age: Duration,
    ) -> io::Result<()> {
        match remove_stale(directory, name, age)? {
            Some(true) => self.removed += 1,
            Some(false) => self.kept += 1,
            None => {}
        }
        Ok(())
    }
}

impl Iterator for BlobFiles {
    type Item = Result<BlobFile, BlobError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            for path in self.files.by_ref() {
                if let Some(file) = blob_file(path).transpose() {
                    return Some(file);
                }
            }
            match list(self.store.as_ref()?, &self.shards.next()?) {
                Ok(files) => self.files = files.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Lists the directories of blobs, sorted.
fn shards(store: &Directory) -> Result<Vec<OsString>, BlobError> {
    let mut names = store
        .entries()
        .map_err(BlobError::io("list", store.path()))?;
    names.retain(|name| {
        name.to_str()
            .is_some_and(|name| name.len() == 2 && is_hexadecimal(name))
    });
    names.sort_unstable();
    Ok(names)
}

/// Lists the paths in a shard, sorted. A shard that was removed meanwhile is empty.
fn list(store: &Directory, shard: &OsStr) -> Result<Vec<PathBuf>, BlobError> {
    let path = store.path().join(shard);
    let names = match store
        .open_directory(shard)
        .and_then(|shard| shard.entries())
    {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        names => names.map_err(BlobError::io("list", &path))?,
    };
    let mut paths: Vec<PathBuf> = names.iter().map(|name| path.join(name)).collect();
    paths.sort_unstable();
    Ok(paths)
}

/// Describes a blob's file; `None` if it isn't one or was removed meanwhile.
fn blob_file(path: PathBuf) -> Result<Option<BlobFile>, BlobError> {
    let Some(checksum) = checksum(&path) else {
        return Ok(None);
    };
    // A link counts, too. Opening it later is an error that names it.
    let metadata = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(BlobError::io("examine", &path))?,
    };
    let modified = metadata
        .modified()
        .map_err(BlobError::io("examine", &path))?;
    Ok(Some(BlobFile {
        checksum,
        path,
        length: metadata.len(),
        modified,
    }))
}

/// Parses the checksum in a blob's path.
fn checksum(path: &Path) -> Option<Checksum> {
    let rest = file_name(path)?.strip_suffix(SUFFIX)?;
    let shard = file_name(path.parent()?)?;
    let digits = format!("{shard}{rest}");
    if is_hexadecimal(&digits) {
        digits.parse().ok()
    } else {
        None
    }
}

fn is_hexadecimal(digits: &str) -> bool {
    digits
        .bytes()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jp_resource::Encoding;

    use super::*;
    use crate::files::is_temporary;

    const HOUR: Duration = Duration::from_secs(3600);

    fn store(contents: &[&[u8]]) -> (tempfile::TempDir, Blobs) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path());
        let batch = blobs.batch();
        for content in contents {
            batch.put(content, Encoding::Utf8).unwrap();
        }
        batch.commit().unwrap();
        (directory, blobs)
    }

    #[test]
    fn blobs_are_listed_by_checksum() {
        let (_directory, blobs) = store(&[b"a", b"b", b"c"]);
        let mut expected = [b"a", b"b", b"c"].map(|content| Checksum::compute(content));
        expected.sort();
        let files: Vec<BlobFile> = blobs.iter().unwrap().map(Result::unwrap).collect();
        assert_eq!(
            files.iter().map(|file| file.checksum).collect::<Vec<_>>(),
            expected
        );
        assert!(
            files
                .iter()
                .all(|file| file.path == blobs.path(&file.checksum))
        );
        let bytes = files.iter().map(|file| file.length).sum();
        assert_eq!(blobs.status().unwrap(), BlobStatus { count: 3, bytes });
    }

    #[test]
    fn other_files_are_skipped() {
        let (directory, blobs) = store(&[b"a"]);
        let shard = blobs
            .path(&Checksum::compute(b"a"))
            .parent()
            .unwrap()
            .to_owned();
        fs::create_dir(directory.path().join("zz")).unwrap();
        for path in [
            directory.path().join("notes"),
            shard.join("x.blob.gz"),
            shard.join(".tmp-1-1"),
        ] {
            fs::write(path, "").unwrap();
        }
        assert_eq!(blobs.status().unwrap().count, 1);
    }

    #[test]
    fn absent_store_is_empty() {
        let blobs = Blobs::open("/nonexistent");
        assert_eq!(blobs.status().unwrap(), BlobStatus::default());
        assert_eq!(
            blobs.clean_stale_temporaries(HOUR).unwrap(),
            Leftovers::default()
        );
    }

    #[test]
    fn only_stale_temporaries_are_removed() {
        let (_directory, blobs) = store(&[b"a"]);
        let [crashed, running] = [blobs.batch(), blobs.batch()];
        crashed.put(b"crashed", Encoding::Utf8).unwrap();
        let temporary = temporaries(&blobs).remove(0);
        let file = fs::File::options().write(true).open(&temporary).unwrap();
        file.set_modified(SystemTime::now() - 2 * HOUR).unwrap();
        running.put(b"running", Encoding::Utf8).unwrap();

        assert_eq!(
            blobs.clean_stale_temporaries(HOUR).unwrap(),
            Leftovers {
                removed: 1,
                kept: 1
            }
        );
        assert!(!temporary.exists());
        assert_eq!(running.commit().unwrap().written, 1);
        assert_eq!(blobs.status().unwrap().count, 2);
    }

    fn temporaries(blobs: &Blobs) -> Vec<PathBuf> {
        let store = blobs.tree.directory(blobs.directory()).unwrap();
        let shards = shards(&store).unwrap();
        let files = shards.iter().flat_map(|shard| list(&store, shard).unwrap());
        files
            .filter(|path| is_temporary(path.file_name().unwrap()))
            .collect()
    }
}
