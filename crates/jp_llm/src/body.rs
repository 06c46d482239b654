use std::{
    fmt,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    iter, mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use futures_util::stream;
use tempfile::SpooledTempFile;
use tokio::{sync::mpsc, time::Instant};

use crate::{Error, Later, Loaded, TextSource, json::GAP, later::Gap};

/// A request's body, written once and sent as often as needed.
///
/// Up to 256 KB are in memory; a larger one is in a temporary file that has no name. The texts that
/// it has room for are read each time, by a thread that is a few chunks ahead.
#[derive(Clone)]
pub struct Body {
    file: Arc<Mutex<SpooledTempFile>>,
    file_len: u64,
    gaps: Arc<[Gap]>,
    texts: Option<Arc<dyn TextSource>>,
    /// The first reading of the texts, which begins with the body: a little is there once the body is sent.
    begun: Arc<Mutex<Option<Reading>>>,
    len: u64,
}

/// The progress of reading a body for a connection.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    taken: AtomicU64,
    last_taken: Mutex<Option<Instant>>,
    failure: Mutex<Option<Error>>,
}

impl Sending {
    /// Returns how many bytes the connection has taken.
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns when the connection last took something.
    pub(crate) fn last_taken(&self) -> Option<Instant> {
        *self
            .last_taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the reason why the body could not be read: a connection only says that it broke.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Counts a chunk that a connection is given, or keeps the error.
    fn note(&self, chunk: Result<Vec<u8>, Error>) -> io::Result<Vec<u8>> {
        match chunk {
            Ok(chunk) => {
                self.taken.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                *self
                    .last_taken
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                Ok(chunk)
            }
            Err(error) => {
                let told = io::Error::other(error.to_string());
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(told)
            }
        }
    }
}

/// Texts on their way.
type Reading = Box<dyn Iterator<Item = Loaded> + Send>;

/// A part of a body with its texts.
type Filled = Result<Vec<u8>, Error>;

const IN_MEMORY: usize = 256 << 10;
const CHUNK: usize = 128 << 10;
/// Chunks of a body with gaps that may wait for the connection. With it a request has about half a megabyte in memory.
const AHEAD: usize = 4;

impl Body {
    /// Makes a body of what `write` writes, and returns it with what `write` returns.
    pub fn new<T>(
        write: impl FnOnce(&mut dyn Write) -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        // JSON comes in very small pieces, each of which would be a system call.
        let mut out = BufWriter::with_capacity(CHUNK, SpooledTempFile::new(IN_MEMORY));
        let result = write(&mut out)?;
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let len = file.stream_position()?;
        let file = Arc::new(Mutex::new(file));
        let (gaps, begun) = (Arc::default(), Arc::default());
        Ok((
            Self {
                file,
                file_len: len,
                gaps,
                texts: None,
                begun,
                len,
            },
            result,
        ))
    }

    /// Sets the texts that go where room was left while the body was written.
    pub(crate) fn with_room(self, later: &mut Later) -> Self {
        // Each gap has one NUL in the file, which the text replaces.
        let (gaps, texts) = later.take_gaps();
        let room: u64 = gaps.iter().map(Gap::len).sum();
        // Reading starts now: the first texts are there when the connection is.
        let begun = Arc::new(Mutex::new(Some(read(&gaps, &*texts))));
        Self {
            len: self.file_len - gaps.len() as u64 + room,
            gaps,
            texts: Some(texts),
            begun,
            ..self
        }
    }

    /// Returns how many bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    #[cfg(test)]
    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Returns whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the body from the start. It blocks, so don't call it from asynchronous code.
    pub fn chunks(&self) -> Box<dyn Iterator<Item = Result<Vec<u8>, Error>> + Send> {
        if self.gaps.is_empty() {
            return Box::new(self.file_chunks().map(|chunk| Ok(chunk?)));
        }
        let (mut filled, mut left) = (self.spawn_reader(), self.len);
        Box::new(iter::from_fn(move || {
            count_received(filled.blocking_recv(), &mut left)
        }))
    }

    /// Reads the body for a connection.
    ///
    /// Blocks only for what is in the file, whose pages are in the cache.
    pub(crate) fn to_reqwest(&self, sending: &Arc<Sending>) -> reqwest::Body {
        let sending = Arc::clone(sending);
        if self.gaps.is_empty() {
            let chunks = self
                .file_chunks()
                .map(move |chunk| sending.note(chunk.map_err(Error::from)));
            return reqwest::Body::wrap_stream(stream::iter(chunks));
        }
        let (mut filled, mut left) = (self.spawn_reader(), self.len);
        let chunks = stream::poll_fn(move |context| {
            let received = filled
                .poll_recv(context)
                .map(|received| count_received(received, &mut left));
            received.map(|chunk| chunk.map(|chunk| sending.note(chunk)))
        });
        reqwest::Body::wrap_stream(chunks)
    }

    /// Reads what was written, with its gaps.
    fn file_chunks(&self) -> FileChunks {
        FileChunks {
            file: Arc::clone(&self.file),
            position: 0,
            len: self.file_len,
        }
    }

    /// Reads what was written, with the texts that there is room for, in a thread.
    fn spawn_reader(&self) -> mpsc::Receiver<Filled> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (body, refused) = (self.clone(), sender.clone());
        let spawned = thread::Builder::new().name("send".into()).spawn(move || {
            if let Err(error) = body.fill(&sender) {
                // If the connection is gone, nobody receives it.
                _ = sender.blocking_send(Err(error));
            }
        });
        if let Err(error) = spawned {
            _ = refused.try_send(Err(error.into()));
        }
        receiver
    }

    fn fill(&self, sender: &mpsc::Sender<Filled>) -> Result<(), Error> {
        let Some(texts) = &self.texts else {
            return Ok(());
        };
        let begun = self
            .begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A retry reads all texts again: they are too large to keep.
        let mut texts = begun.unwrap_or_else(|| read(&self.gaps, &**texts));
        let mut gaps = self.gaps.iter();
        let mut out = Sent {
            sender,
            chunk: Vec::with_capacity(CHUNK),
        };
        for written in self.file_chunks() {
            let written = written?;
            let mut start = 0;
            // `zip` asks for a gap only after a NUL was found, so none is lost between chunks.
            for (index, gap) in memchr::memchr_iter(GAP, &written).zip(&mut gaps) {
                out.write_all(&written[start..index])?;
                gap.fill(texts.next(), &mut out)?;
                start = index + 1;
            }
            out.write_all(&written[start..])?;
        }
        Ok(out.flush()?)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len)
    }
}

fn read(gaps: &[Gap], texts: &dyn TextSource) -> Reading {
    texts.read(gaps.iter().map(|gap| gap.blob).collect())
}

/// Passes on a chunk and counts it. If the thread that sends them ends before all `left` bytes came, it panicked, and that
/// is an error: the connection must not take half a request for a whole one.
fn count_received(received: Option<Filled>, left: &mut u64) -> Option<Filled> {
    match received {
        Some(Ok(chunk)) => {
            *left = left.saturating_sub(chunk.len() as u64);
            Some(Ok(chunk))
        }
        None if mem::take(left) > 0 => {
            Some(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()))
        }
        received => {
            *left = 0;
            received
        }
    }
}

/// Reads a file in chunks, and keeps its own position: a body may be sent again while an abandoned connection still
/// reads it.
struct FileChunks {
    file: Arc<Mutex<SpooledTempFile>>,
    position: u64,
    len: u64,
}

impl FileChunks {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let left = self.len - self.position;
        let mut chunk = vec![0; usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
        file.read_exact(&mut chunk)?;
        self.position += chunk.len() as u64;
        Ok(chunk)
    }
}

impl Iterator for FileChunks {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.position < self.len).then(|| self.read())
    }
}

/// Hands over what is written to it in chunks.
struct Sent<'s> {
    sender: &'s mpsc::Sender<Filled>,
    chunk: Vec<u8>,
}

impl Write for Sent<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Sent before the buffer would have to grow.
        if self.chunk.len() + bytes.len() > CHUNK {
            self.flush()?;
        }
        self.chunk.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let chunk = mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        self.sender
            .blocking_send(Ok(chunk))
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jp_resource::{BlobRef, Encoding, ResourceContent};

    use super::*;
    use crate::{Loaded, Measure, later::TextForm};

    fn read(chunks: impl Iterator<Item = Result<Vec<u8>, Error>>) -> Vec<u8> {
        chunks.flat_map(Result::unwrap).collect()
    }

    #[test]
    fn body_reads_back_what_was_written() {
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

    /// Gives one text for all, or panics.
    struct One(Option<&'static str>);

    impl TextSource for One {
        fn read(&self, blobs: Vec<BlobRef>) -> Box<dyn Iterator<Item = Loaded> + Send> {
            let text = self.0;
            let read = move |_| {
                Ok(ResourceContent::Text(
                    text.expect("a test panics here").to_owned(),
                ))
            };
            Box::new(blobs.into_iter().map(read))
        }
    }

    /// A body of `x`s with room for `text` in these places.
    fn with_gaps(len: usize, places: &[usize], text: &str, source: One) -> Body {
        let blob = BlobRef::for_content(text.as_bytes(), Encoding::Utf8);
        let measures = HashMap::from([(blob.checksum, Measure::from_text(text).unwrap())]);
        let mut later = Later::new(Arc::new(measures), Arc::new(source));
        let mut bytes = vec![b'x'; len];
        for place in places {
            bytes[*place] = GAP;
            later.leave_room(&blob, "a:b", TextForm::Plain).unwrap();
        }
        Body::new(|out| Ok(out.write_all(&bytes)?))
            .unwrap()
            .0
            .with_room(&mut later)
    }

    #[test]
    fn gaps_are_filled_wherever_they_are() {
        for len in [1, 5, CHUNK, CHUNK + 2, 3 * CHUNK] {
            let places = [
                0,
                1,
                4,
                CHUNK - 2,
                CHUNK - 1,
                CHUNK,
                CHUNK + 1,
                2 * CHUNK,
                3 * CHUNK - 1,
            ];
            let places: Vec<_> = places.into_iter().filter(|place| *place < len).collect();
            let body = with_gaps(len, &places, "te\"t", One(Some("te\"t")));
            let expected = (0..len).map(|place| {
                if places.contains(&place) {
                    r#"te\"t"#
                } else {
                    "x"
                }
            });
            let expected: String = expected.collect();
            assert!(read(body.chunks()) == expected.as_bytes(), "{len}");
            assert_eq!(body.len(), expected.len() as u64);
        }
    }

    #[test]
    fn body_whose_reading_panics_ends_with_an_error() {
        let body = with_gaps(3, &[1], "text", One(None));
        let last = body.chunks().last().unwrap().unwrap_err();
        assert_eq!(
            crate::error::with_causes(&last),
            "write the request: unexpected end of file"
        );
    }
}
