use std::{
    fmt,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::stream;
use tempfile::SpooledTempFile;

use crate::Error;

/// A request's body, written once and sent as often as needed.
///
/// Up to 256 KB are in memory; a larger one is in a temporary file that has no name.
#[derive(Clone)]
pub struct Body {
    file: Arc<Mutex<SpooledTempFile>>,
    len: u64,
}

const IN_MEMORY: usize = 256 << 10;
const CHUNK: usize = 128 << 10;

impl Body {
    /// Makes a body of what `write` writes, and returns it with what `write` returns.
    pub fn new<T>(write: impl FnOnce(&mut dyn Write) -> Result<T, Error>) -> Result<(Self, T), Error> {
        let mut out = BufWriter::with_capacity(CHUNK, SpooledTempFile::new(IN_MEMORY));
        let written = write(&mut out)?;
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let len = file.stream_position()?;
        Ok((Self { file: Arc::new(Mutex::new(file)), len }, written))
    }

    /// Returns how many bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the body back, from the start.
    ///
    /// Blocks, but on a file that was just written: its pages are in the cache.
    pub fn chunks(&self) -> impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static {
        Chunks { body: self.clone(), position: 0 }
    }

    pub(crate) fn to_reqwest(&self) -> reqwest::Body {
        reqwest::Body::wrap_stream(stream::iter(self.chunks()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len)
    }
}

/// Keeps its own position: a body may be sent again while an abandoned connection still reads it.
struct Chunks {
    body: Body,
    position: u64,
}

impl Chunks {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut file = self.body.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let left = self.body.len - self.position;
        let mut chunk = vec![0; usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
        file.read_exact(&mut chunk)?;
        self.position += chunk.len() as u64;
        Ok(chunk)
    }
}

impl Iterator for Chunks {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.position < self.body.len).then(|| self.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: impl Iterator<Item = io::Result<Vec<u8>>>) -> Vec<u8> {
        chunks.flat_map(Result::unwrap).collect()
    }

    #[test]
    fn body_reads_back_what_was_written_from_memory_and_from_disk() {
        for size in [0, 1, CHUNK, IN_MEMORY, IN_MEMORY + CHUNK + 1] {
            let bytes: Vec<u8> = (0..size).map(|index| (index / 1000) as u8).collect();
            let (body, ()) = Body::new(|out| Ok(out.write_all(&bytes)?)).unwrap();
            assert_eq!(body.len(), size as u64);
            assert!(read(body.chunks()) == bytes, "{size}");
            assert!(read(body.chunks()) == bytes, "{size} again");
        }
    }

    #[test]
    fn two_readers_do_not_disturb_each_other() {
        let bytes: Vec<u8> = (0..3 * CHUNK).map(|index| (index / 1000) as u8).collect();
        let (body, ()) = Body::new(|out| Ok(out.write_all(&bytes)?)).unwrap();
        let mut abandoned = body.chunks();
        abandoned.next();
        let mut interleaved = Vec::new();
        for chunk in body.chunks() {
            interleaved.extend(chunk.unwrap());
            abandoned.next();
        }
        assert!(interleaved == bytes);
    }
}
