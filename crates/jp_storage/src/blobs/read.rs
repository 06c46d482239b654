use std::{
    cell::RefCell,
    fs::{File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
};

use jp_resource::{BlobRef, Checksum, ResourceContent};

use super::{BlobError, Blobs, Damage, gzip};
use crate::files;

impl Blobs {
    /// Reads and verifies a blob.
    ///
    /// Allocates at most the recorded size, and only if the file can hold it.
    pub fn read(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        self.read_opened(self.open_blob(&blob.checksum), blob)
    }

    /// Reads and verifies a blob in an open file, which may still have its temporary name.
    pub(super) fn read_opened(
        &self,
        file: io::Result<(File, Metadata)>,
        blob: &BlobRef,
    ) -> Result<Vec<u8>, BlobError> {
        Reading::new(self, blob.checksum).with_file(file, |reading, file, stated| {
            if stated != blob.size as u32 {
                return Err(reading.corruption(Damage::Size {
                    found: stated,
                    expected: blob.size,
                }));
            }
            reading.content(file, blob.size)
        })
    }

    /// Reads and verifies a blob as text or bytes, depending on its recorded encoding.
    pub fn read_content(&self, blob: &BlobRef) -> Result<ResourceContent, BlobError> {
        Ok(ResourceContent::from_blob(blob, self.read(blob)?)?)
    }

    /// Verifies a blob whose size is unknown. Returns the size of its content.
    ///
    /// Refuses content of more than `cap` bytes without reading it.
    pub fn verify(&self, checksum: &Checksum, cap: u64) -> Result<u64, BlobError> {
        Reading::new(self, *checksum).with_file(
            self.open_blob(checksum),
            |reading, file, stated| {
                let size = u64::from(stated);
                if size > cap {
                    let path = reading.path();
                    return Err(BlobError::TooLarge {
                        checksum: *checksum,
                        path,
                        size,
                        cap,
                    });
                }
                reading
                    .content(file, size)
                    .map(|content| content.len() as u64)
            },
        )
    }
}

thread_local! {
    /// The compressed file that is being read.
    static FILE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The reading of one blob.
struct Reading<'b> {
    blobs: &'b Blobs,
    checksum: Checksum,
}

impl<'b> Reading<'b> {
    fn new(blobs: &'b Blobs, checksum: Checksum) -> Self {
        Self { blobs, checksum }
    }

    fn path(&self) -> PathBuf {
        self.blobs.path(&self.checksum)
    }

    /// Reads the compressed file and passes it to `read` with the size that it states. Reuses the thread's
    /// buffer.
    fn with_file<T>(
        &self,
        file: io::Result<(File, Metadata)>,
        read: impl FnOnce(&Self, &[u8], u32) -> Result<T, BlobError>,
    ) -> Result<T, BlobError> {
        FILE.with_borrow_mut(|buffer| {
            file.and_then(|file| read_file(file, buffer))
                .map_err(|error| self.read_error(error))?;
            let result = match buffer.last_chunk() {
                Some(last) => read(self, buffer, gzip::stated_size(*last)),
                None => Err(self.corruption(Damage::Gzip)),
            };
            if buffer.capacity() > gzip::KEPT {
                *buffer = Vec::new();
            }
            result
        })
    }

    fn content(&self, file: &[u8], size: u64) -> Result<Vec<u8>, BlobError> {
        let length = file.len() as u64;
        if !gzip::is_plausible(length, size) {
            return Err(self.corruption(Damage::Length { length, size }));
        }
        let mut content = vec![0; size as usize];
        gzip::decompress(file, &mut content).map_err(|_| self.corruption(Damage::Gzip))?;
        match Checksum::compute(&content) {
            found if found != self.checksum => Err(self.corruption(Damage::Checksum(found))),
            _ => Ok(content),
        }
    }

    fn corruption(&self, damage: Damage) -> BlobError {
        BlobError::Corrupt {
            checksum: self.checksum,
            path: self.path(),
            damage,
        }
    }

    fn read_error(&self, source: io::Error) -> BlobError {
        let path = self.path();
        match source.kind() {
            io::ErrorKind::NotFound => BlobError::Missing {
                checksum: self.checksum,
                path,
            },
            _ => BlobError::Io {
                action: "read",
                path,
                source,
            },
        }
    }
}

/// Reads a blob's content from a file of the user that recently had it; `None` if it has changed.
pub(super) fn read_copy(blob: &BlobRef, path: &Path) -> Option<Vec<u8>> {
    let mut file = files::open_unblocked(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() != blob.size {
        return None;
    }
    let mut content = vec![0; usize::try_from(blob.size).ok()?];
    file.read_exact(&mut content).ok()?;
    (Checksum::compute(&content) == blob.checksum).then_some(content)
}

/// Replaces `buffer` with the content of a file, which no process changes.
fn read_file((mut file, metadata): (File, Metadata), buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = usize::try_from(metadata.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    buffer.clear();
    buffer.try_reserve_exact(length)?;
    buffer.resize(length, 0);
    file.read_exact(buffer)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jp_resource::Encoding;

    use super::*;

    fn store(content: &[u8]) -> (tempfile::TempDir, Blobs, BlobRef) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path());
        let batch = blobs.batch();
        let blob = batch.put(content, Encoding::Utf8).unwrap();
        batch.commit().unwrap();
        (directory, blobs, blob)
    }

    fn damage<T: std::fmt::Debug>(result: Result<T, BlobError>) -> Damage {
        match result {
            Err(BlobError::Corrupt { damage, .. }) => damage,
            result => panic!("{result:?}"),
        }
    }

    #[test]
    fn content_has_its_recorded_encoding() {
        let (_directory, blobs, text) = store("Текст".as_bytes());
        let binary = BlobRef {
            encoding: Encoding::Binary,
            ..text
        };
        assert_eq!(
            blobs.read_content(&text).unwrap(),
            ResourceContent::Text("Текст".into())
        );
        assert_eq!(
            blobs.read_content(&binary).unwrap(),
            ResourceContent::Blob("Текст".into())
        );
    }

    #[test]
    fn bytes_recorded_as_text_are_an_error() {
        let (_directory, blobs, blob) = store(b"\xff\xfe");
        assert!(matches!(
            blobs.read_content(&blob),
            Err(BlobError::NotText(_))
        ));
    }

    #[test]
    fn absent_blob_is_missing() {
        let blobs = Blobs::open("/nonexistent");
        let blob = BlobRef::for_content(b"content", Encoding::Utf8);
        assert_eq!(
            blobs.read(&blob).unwrap_err().to_string(),
            format!(
                "find blob {}: {} does not exist",
                blob.checksum,
                blobs.path(&blob.checksum).display()
            )
        );
    }

    #[test]
    fn wrong_size_is_refused_before_allocation() {
        let (_directory, blobs, blob) = store(b"content");
        for size in [0, 6, 8, 1 << 60] {
            let blob = BlobRef { size, ..blob };
            assert_eq!(
                damage(blobs.read(&blob)),
                Damage::Size {
                    found: 7,
                    expected: size
                }
            );
        }
        let blob = BlobRef {
            size: 7 + (1 << 32),
            ..blob
        };
        assert!(matches!(damage(blobs.read(&blob)), Damage::Length { .. }));
    }

    #[test]
    fn every_changed_bit_is_found() {
        let (_directory, blobs, blob) = store(&b"some content, some more content".repeat(3));
        let path = blobs.path(&blob.checksum);
        let whole = fs::read(&path).unwrap();
        for position in 10..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[position] ^= 1 << bit;
                fs::write(&path, changed).unwrap();
                damage(blobs.read(&blob));
            }
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            damage(blobs.read(&blob));
        }
    }

    #[test]
    fn another_blobs_file_is_found_by_its_checksum() {
        let (_directory, blobs, blob) = store(b"content");
        let batch = blobs.batch();
        let other = batch.put(b"CONTENT", Encoding::Utf8).unwrap();
        batch.commit().unwrap();
        fs::copy(blobs.path(&other.checksum), blobs.path(&blob.checksum)).unwrap();
        assert_eq!(damage(blobs.read(&blob)), Damage::Checksum(other.checksum));
        assert_eq!(
            damage(blobs.verify(&blob.checksum, 100)),
            Damage::Checksum(other.checksum)
        );
    }

    #[test]
    fn blob_is_verified_by_its_name_alone() {
        let (_directory, blobs, blob) = store(b"content");
        assert_eq!(blobs.verify(&blob.checksum, 7).unwrap(), 7);
        assert!(matches!(
            blobs.verify(&blob.checksum, 6),
            Err(BlobError::TooLarge {
                size: 7,
                cap: 6,
                ..
            })
        ));
        fs::write(blobs.path(&blob.checksum), "").unwrap();
        assert_eq!(damage(blobs.verify(&blob.checksum, 7)), Damage::Gzip);
    }
}
