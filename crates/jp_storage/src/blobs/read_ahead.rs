use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use jp_resource::{BlobRef, Checksum, ResourceContent};

use super::{BlobError, Blobs, read::read_copy};

/// Blobs in the requested order, read ahead by two threads. Made by [`Blobs::read_ahead`].
///
/// It holds about 4 MB and one blob of any size. Drop stops the threads after their current run of small
/// blobs.
#[derive(Debug)]
pub struct ReadAhead {
    shared: Arc<Shared>,
    /// The index of the next blob to return.
    position: usize,
    workers: Vec<JoinHandle<()>>,
}

impl Blobs {
    /// Reads and verifies many blobs in order without holding all of them.
    ///
    /// If a file in `copies` still has a blob's content, it is read instead, because it needs no
    /// decompression.
    pub fn read_ahead(
        &self,
        blobs: impl IntoIterator<Item = BlobRef>,
        copies: Arc<HashMap<Checksum, PathBuf>>,
    ) -> ReadAhead {
        let shared = Arc::new(Shared {
            store: self.clone(),
            copies,
            blobs: blobs.into_iter().collect(),
            state: Mutex::default(),
            room: Condvar::new(),
            arrival: Condvar::new(),
        });
        // The consumer can read the first blob, so one blob needs no worker.
        let count = WORKERS.min(shared.blobs.len().saturating_sub(1));
        let workers = (0..count).filter_map(|_| spawn(&shared)).collect();
        ReadAhead {
            shared,
            position: 0,
            workers,
        }
    }
}

impl Iterator for ReadAhead {
    type Item = Result<ResourceContent, BlobError>;

    fn next(&mut self) -> Option<Self::Item> {
        let blob = self.shared.blobs.get(self.position)?;
        let position = self.position;
        self.position += 1;
        match self.shared.take(position) {
            Taken::Read(content) => Some(content),
            Taken::Unclaimed => Some(self.shared.read(blob)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.shared.blobs.len() - self.position;
        (left, Some(left))
    }
}

impl ExactSizeIterator for ReadAhead {}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.shared.state().claimed = self.shared.blobs.len();
        self.shared.room.notify_all();
        for worker in self.workers.drain(..) {
            _ = worker.join();
        }
    }
}

/// The number of threads. Two decompress faster than a connection sends.
const WORKERS: usize = 2;
/// The number of waiting bytes at which workers stop reading ahead.
const FULL: u64 = 4 << 20;
/// The most blobs in a run. A worker reads small blobs in runs, because handing over each one would cost
/// more than reading it.
const RUN_BLOBS: usize = 64;
/// The number of bytes at which a run ends.
const RUN_BYTES: u64 = 256 << 10;

#[derive(Debug)]
struct Shared {
    store: Blobs,
    copies: Arc<HashMap<Checksum, PathBuf>>,
    blobs: Vec<BlobRef>,
    state: Mutex<ReadAheadState>,
    /// Workers wait here while the buffer is full.
    room: Condvar,
    /// The consumer waits here for the next blob.
    arrival: Condvar,
}

#[derive(Debug, Default)]
struct ReadAheadState {
    /// Blobs below this index are claimed by a worker or the consumer.
    claimed: usize,
    /// The results that the consumer hasn't taken, by index.
    read: BTreeMap<usize, Result<ResourceContent, BlobError>>,
    /// The weight of the blobs that workers claimed and the consumer hasn't taken.
    ahead: u64,
    /// The index that the consumer waits for. If there is none, workers save a system call.
    awaited: Option<usize>,
    waiting_workers: usize,
}

/// The result of [`Shared::take`].
enum Taken {
    Read(Result<ResourceContent, BlobError>),
    /// No worker has claimed the blob. The consumer has, and must read it.
    Unclaimed,
}

/// Starts a worker. If the system refuses, the consumer reads all blobs.
fn spawn(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let work = move || {
        while let Some(run) = shared.claim() {
            let contents = shared.blobs[run.clone()]
                .iter()
                .map(|blob| shared.read(blob))
                .collect();
            shared.deliver(run, contents);
        }
    };
    thread::Builder::new()
        .name("read ahead".into())
        .spawn(work)
        .ok()
}

/// Returns the number of blobs in a worker's next run, and their weight.
fn measure_run(blobs: &[BlobRef]) -> (usize, u64) {
    let mut size = 0;
    for (count, blob) in blobs.iter().enumerate() {
        if count == RUN_BLOBS || size >= RUN_BYTES {
            return (count, size);
        }
        size += weight(blob);
    }
    (blobs.len(), size)
}

/// Returns the weight of a waiting blob. It is limited, because a recorded size may be wrong until the
/// blob is read.
fn weight(blob: &BlobRef) -> u64 {
    blob.size.min(FULL)
}

impl Shared {
    fn read(&self, blob: &BlobRef) -> Result<ResourceContent, BlobError> {
        let copy = self
            .copies
            .get(&blob.checksum)
            .and_then(|path| read_copy(blob, path));
        let bytes = copy.map_or_else(|| self.store.read(blob), Ok)?;
        Ok(ResourceContent::from_blob(blob, bytes)?)
    }

    /// Waits for room and claims the next run for a worker; `None` if all blobs are claimed.
    fn claim(&self) -> Option<Range<usize>> {
        let mut state = self.state();
        while state.ahead >= FULL && state.claimed < self.blobs.len() {
            state.waiting_workers += 1;
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting_workers -= 1;
        }
        let (count, size) = measure_run(&self.blobs[state.claimed..]);
        let start = state.claimed;
        state.claimed += count;
        state.ahead += size;
        (count > 0).then_some(start..start + count)
    }

    fn deliver(&self, run: Range<usize>, contents: Vec<Result<ResourceContent, BlobError>>) {
        let mut state = self.state();
        if state.awaited.is_some_and(|index| run.contains(&index)) {
            self.arrival.notify_one();
        }
        state.read.extend(run.zip(contents));
    }

    fn take(&self, index: usize) -> Taken {
        let mut state = self.state();
        if state.claimed == index {
            state.claimed += 1;
            return Taken::Unclaimed;
        }
        loop {
            if let Some(content) = state.read.remove(&index) {
                self.free(&mut state, weight(&self.blobs[index]));
                return Taken::Read(content);
            }
            state.awaited = Some(index);
            state = self
                .arrival
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.awaited = None;
        }
    }

    /// Frees the room of a taken blob. Wakes workers only if half of the buffer is free, because each
    /// wake-up costs a system call.
    fn free(&self, state: &mut ReadAheadState, size: u64) {
        state.ahead -= size;
        if state.waiting_workers > 0 && state.ahead < FULL / 2 {
            self.room.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, ReadAheadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Checksum, Encoding};

    use super::*;

    fn store(
        contents: impl IntoIterator<Item = Vec<u8>>,
    ) -> (tempfile::TempDir, Blobs, Vec<BlobRef>) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path());
        let batch = blobs.batch();
        let refs = contents
            .into_iter()
            .map(|content| batch.put(&content, Encoding::Binary).unwrap());
        let refs = refs.collect();
        batch.commit().unwrap();
        (directory, blobs, refs)
    }

    #[test]
    fn blobs_come_in_the_requested_order() {
        let (_directory, blobs, mut refs) =
            store((0..500).map(|number| vec![number as u8; number * 40]));
        refs.reverse();
        refs.extend_from_within(..10);
        let mut reading = blobs.read_ahead(refs.clone(), Arc::default());
        assert_eq!(reading.len(), 510);
        for blob in &refs {
            assert_eq!(
                Checksum::compute(reading.next().unwrap().unwrap().as_bytes()),
                blob.checksum
            );
        }
        assert!(reading.next().is_none());
        assert!(reading.next().is_none());
    }

    #[test]
    fn reading_ahead_is_bounded() {
        let (_directory, blobs, refs) = store((0..12).map(|number| vec![number; 3 << 20]));
        let mut reading = blobs.read_ahead(refs, Arc::default());
        let mut count = 0;
        while let Some(content) = reading.next() {
            assert_eq!(content.unwrap().into_bytes(), vec![count; 3 << 20]);
            count += 1;
            assert!(reading.shared.state().ahead < FULL + (3 << 20));
        }
        assert_eq!(count, 12);
        assert_eq!(reading.shared.state().ahead, 0);
    }

    #[test]
    fn copy_is_read_while_it_is_unchanged() {
        let (directory, blobs, refs) = store((0..20).map(|number| vec![number; 100]));
        let path = |index: usize| directory.path().join(format!("copy {index}"));
        let copies = |changed: &[u8]| {
            for (index, blob) in refs.iter().enumerate().skip(3) {
                std::fs::write(path(index), blobs.read(blob).unwrap()).unwrap();
            }
            std::fs::write(path(5), changed).unwrap();
            refs.iter()
                .enumerate()
                .map(|(index, blob)| (blob.checksum, path(index)))
                .collect()
        };
        for changed in [&[9; 100][..], b"shorter", b""] {
            let read = blobs.read_ahead(refs.clone(), Arc::new(copies(changed)));
            let read: Vec<_> = read
                .map(|content| Checksum::compute(content.unwrap().as_bytes()))
                .collect();
            assert_eq!(
                read,
                refs.iter().map(|blob| blob.checksum).collect::<Vec<_>>()
            );
        }
        let copies = Arc::new(copies(b""));
        refs.iter()
            .for_each(|blob| std::fs::remove_file(blobs.path(&blob.checksum)).unwrap());
        let failed: Vec<usize> = blobs
            .read_ahead(refs, copies)
            .enumerate()
            .filter_map(|(index, content)| content.is_err().then_some(index))
            .collect();
        assert_eq!(failed, [0, 1, 2, 5]);
    }

    #[test]
    fn damaged_blob_is_an_error_in_its_place() {
        let (_directory, blobs, refs) = store((0..20).map(|number| vec![number; 100]));
        std::fs::remove_file(blobs.path(&refs[7].checksum)).unwrap();
        let failed: Vec<bool> = blobs
            .read_ahead(refs, Arc::default())
            .map(|content| content.is_err())
            .collect();
        assert_eq!(
            failed,
            (0..20).map(|number| number == 7).collect::<Vec<_>>()
        );
    }

    #[test]
    fn recorded_size_beyond_reason_is_only_an_error() {
        let (_directory, blobs, mut refs) = store((0..20).map(|number| vec![number; 100]));
        refs.iter_mut().for_each(|blob| blob.size = u64::MAX);
        assert!(
            blobs
                .read_ahead(refs, Arc::default())
                .all(|content| content.is_err())
        );
    }

    #[test]
    fn dropping_stops_the_workers() {
        let (_directory, blobs, refs) = store((0..8).map(|number| vec![number; 3 << 20]));
        for taken in 0..4 {
            let mut reading = blobs.read_ahead(refs.clone(), Arc::default());
            assert_eq!(reading.by_ref().take(taken).count(), taken);
            drop(reading);
        }
    }

    #[test]
    fn empty_request_returns_nothing() {
        assert!(
            Blobs::open("/nonexistent")
                .read_ahead([], Arc::default())
                .next()
                .is_none()
        );
    }
}
