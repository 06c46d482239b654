use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, Metadata},
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use jp_resource::{BlobRef, Checksum, Encoding, ResourceContent};

use super::{BlobError, Blobs, blob_name, gzip, shard_name, temporary_name};
use crate::directory::Directory;

/// Content on its way into a store.
///
/// [`put`](Self::put) writes under temporary names and may be called from several threads;
/// [`commit`](Self::commit) makes all of it durable and gives it its names. Dropped without a
/// commit, it removes what it wrote. Memory: about 100 bytes a blob, and a file's compressed bytes
/// while it is written.
#[derive(Debug)]
pub struct Batch {
    blobs: Blobs,
    directory: OnceLock<Directory>,
    /// Distinguishes the temporary names of this batch.
    id: u64,
    state: Mutex<BatchState>,
}

/// What a [`Batch`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitReport {
    /// Blobs that were new.
    pub written: usize,
    /// Blobs that the store had.
    pub reused: usize,
    /// Length of the new files.
    pub bytes: u64,
}

/// So many names are worth a second thread.
const MANY: usize = 512;

/// What a batch has seen of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobStage {
    /// Being written.
    Begun,
    /// Complete under its temporary name, in a file of this length.
    Staged { length: u64 },
    /// In the store already, or committed.
    Settled { length: u64 },
}

#[derive(Debug, Default)]
struct BatchState {
    entries: HashMap<Checksum, BlobStage>,
    failed: bool,
    /// Directories that are no links, of two digits.
    own_shards: HashSet<String>,
    /// Whether a reused blob got its name so recently that the name may not be on disk.
    recent: bool,
    report: CommitReport,
}

impl Blobs {
    /// Starts adding content. Does no I/O.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch {
            blobs: self.clone(),
            directory: OnceLock::new(),
            id: RandomState::new().hash_one(std::process::id()),
            state: Mutex::default(),
        }
    }
}

impl Batch {
    /// Adds `content`, and names it.
    ///
    /// Content that the batch has, or that the store has whole, is not written; its file's
    /// modification time is brought up to date so that garbage collection spares it.
    pub fn put(&self, content: &[u8], encoding: Encoding) -> Result<BlobRef, BlobError> {
        let blob = BlobRef::for_content(content, encoding);
        if self.begin(&blob) {
            self.store(&blob, content)
                .inspect_err(|_| self.state().failed = true)?;
        }
        Ok(blob)
    }

    /// Returns the length of a blob's file, once the batch has it.
    pub fn file_length(&self, blob: &BlobRef) -> Option<u64> {
        self.state()
            .entries
            .get(&blob.checksum)
            .and_then(|entry| entry.length())
    }

    /// Adds resource content, and names it.
    pub fn put_content(&self, content: &ResourceContent) -> Result<BlobRef, BlobError> {
        self.put(content.as_bytes(), content.encoding())
    }

    /// Returns whether the batch or the store has `blob`, and keeps it from garbage collection.
    ///
    /// For content that is known unread. Where the answer is no, the caller has to
    /// [`put`](Self::put) it. A fresh file of the length that it was written with is not opened.
    pub fn reuse(&self, blob: &BlobRef, file_length: Option<u64>) -> Result<bool, BlobError> {
        if self.state().entries.contains_key(&blob.checksum) {
            return Ok(true);
        }
        let Some(kept) = self.keep(blob, file_length)? else {
            return Ok(false);
        };
        let mut state = self.state();
        if !state.entries.contains_key(&blob.checksum) {
            state.reuse(blob, kept);
        }
        Ok(true)
    }

    /// Reads and verifies content that the batch was given or that its store has, before it is committed.
    pub fn read_content(&self, blob: &BlobRef) -> Result<ResourceContent, BlobError> {
        let entry = self.state().entries.get(&blob.checksum).copied();
        let Some(BlobStage::Staged { .. }) = entry else {
            return self.blobs.read_content(blob);
        };
        let file = self
            .directory()?
            .open_file(temporary_name(&blob.checksum, self.id));
        Ok(ResourceContent::from_blob(
            blob,
            self.blobs.read_opened(file, blob)?,
        )?)
    }

    /// Lets the value that the batch was made of, and clones of that, read what the batch has, until it is dropped or
    /// committed.
    pub(crate) fn offer(&self) {
        self.blobs.lock_offered().push(self.id);
    }

    /// Makes everything durable and gives it its names, for an event to name it.
    ///
    /// One sync of the file system brings the content to disk before it has a name. The names are durable
    /// no later than what is written and synced after this returns: by the journal's order on ext4 and XFS,
    /// by a second sync elsewhere. Nothing is synced where nothing was written. Where it fails, blobs that
    /// have their name by then keep it; they are whole.
    pub fn commit(self) -> Result<CommitReport, BlobError> {
        let mut state = self.state();
        if state.failed {
            return Err(BlobError::Incomplete {
                path: self.blobs.directory().to_owned(),
            });
        }
        if state.report.written > 0 {
            self.sync_content()?;
            self.rename_all(&mut state)?;
        }
        if (state.report.written > 0 || state.recent) && !self.directory()?.orders_names() {
            self.sync_names(&state)?;
        }
        Ok(state.report)
    }

    /// Registers `blob`; returns whether the caller is the one to store it.
    fn begin(&self, blob: &BlobRef) -> bool {
        let mut state = self.state();
        let new = !state.entries.contains_key(&blob.checksum);
        if new {
            state.entries.insert(blob.checksum, BlobStage::Begun);
        }
        new
    }

    fn store(&self, blob: &BlobRef, content: &[u8]) -> Result<(), BlobError> {
        // What is damaged is written again: the content is at hand.
        if let Some(kept) = self.keep(blob, None)?
            && self.blobs.read(blob).is_ok()
        {
            self.state().reuse(blob, kept);
            return Ok(());
        }
        let length = gzip::with_compressed(content, |file| {
            self.write(&blob.checksum, file).map(|()| file.len() as u64)
        })?;
        self.state().stage(blob, length);
        Ok(())
    }

    /// Returns what is known of `blob`'s file if the store has it whole, and brings its modification time up to date.
    ///
    /// A file that this user may not touch counts as absent: writing it again makes it ours.
    fn keep(&self, blob: &BlobRef, length: Option<u64>) -> Result<Option<Metadata>, BlobError> {
        let path = || self.blobs.path(&blob.checksum);
        if let Some(length) = length
            && self.is_own_shard(&blob.checksum)?
            && let Some(kept) = stat_fresh(&path(), length)
        {
            return Ok(Some(kept));
        }
        match self.directory()?.open_file(blob_name(&blob.checksum)) {
            Ok((file, metadata)) => Ok(keep_file(&file, metadata, blob.size).ok().flatten()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BlobError::io("open", path())(error)),
        }
    }

    /// Returns whether a blob's directory is there and no link; asks the system once for each.
    fn is_own_shard(&self, checksum: &Checksum) -> Result<bool, BlobError> {
        let shard = shard_name(checksum);
        if self.state().own_shards.contains(&shard) {
            return Ok(true);
        }
        let is_own = self
            .directory()?
            .is_directory(&shard)
            .is_ok_and(|is_directory| is_directory);
        if is_own {
            self.state().own_shards.insert(shard);
        }
        Ok(is_own)
    }

    /// Writes a blob's file under its temporary name.
    fn write(&self, checksum: &Checksum, bytes: &[u8]) -> Result<(), BlobError> {
        let directory = self.directory()?;
        let name = temporary_name(checksum, self.id);
        let failed = |action| BlobError::io(action, self.blobs.directory().join(&name));
        let mut file = directory
            .create_file_below(&name)
            .map_err(failed("create"))?;
        if let Err(error) = write_file(&mut file, bytes) {
            drop(file);
            _ = remove_temporary(directory, checksum, self.id);
            return Err(failed("write")(error));
        }
        Ok(())
    }

    /// Gives all that is staged its names; where it is much, a second thread takes a half.
    fn rename_all(&self, state: &mut BatchState) -> Result<(), BlobError> {
        let mut entries: Vec<_> = state.entries.iter_mut().collect();
        // Each directory is looked at once, and the two threads are in different ones.
        entries.sort_unstable_by_key(|(checksum, _)| **checksum);
        if entries.len() >= MANY {
            let half = entries.len() / 2;
            let (here, there) = entries.split_at_mut(half);
            thread::scope(|scope| {
                let other = thread::Builder::new().spawn_scoped(scope, || self.rename(there));
                self.rename(here)?;
                // Where the system has no thread for it, it is done below.
                let Ok(other) = other else { return Ok(()) };
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
        }
        self.rename(&mut entries)
    }

    /// Gives what is staged of these, which are in order, its names.
    ///
    /// Looks for a link once for each directory; to open it would take three calls. A link that appears after that
    /// leads to no file with the random name of this batch, so nothing is renamed behind it.
    fn rename(&self, entries: &mut [(&Checksum, &mut BlobStage)]) -> Result<(), BlobError> {
        let directory = self.directory()?;
        let mut own_shard = String::new();
        for (checksum, entry) in entries {
            let BlobStage::Staged { length } = **entry else {
                continue;
            };
            let shard = shard_name(checksum);
            let refused = if shard == own_shard {
                Ok(())
            } else {
                directory.refuse_link(&shard)
            };
            refused
                .and_then(|()| {
                    directory.rename(temporary_name(checksum, self.id), blob_name(checksum))
                })
                .map_err(|error| BlobError::io("create", self.blobs.path(checksum))(error))?;
            own_shard = shard;
            **entry = BlobStage::Settled { length };
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn sync_content(&self) -> Result<(), BlobError> {
        self.sync_file_system()
    }

    #[cfg(target_os = "linux")]
    fn sync_names(&self, _state: &BatchState) -> Result<(), BlobError> {
        self.sync_file_system()
    }

    #[cfg(target_os = "linux")]
    fn sync_file_system(&self) -> Result<(), BlobError> {
        self.directory()?
            .sync_file_system()
            .map_err(BlobError::io("sync", self.blobs.directory()))
    }

    /// Has nothing left to do: each file was synced when it was written.
    #[cfg(not(target_os = "linux"))]
    fn sync_content(&self) -> Result<(), BlobError> {
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_names(&self, state: &BatchState) -> Result<(), BlobError> {
        let shards: std::collections::BTreeSet<String> = state
            .entries
            .keys()
            .map(|checksum| blob_name(checksum)[..2].to_owned())
            .collect();
        for name in shards.iter().map(String::as_str).chain([""]) {
            let path = self.blobs.directory().join(name);
            let synced = self
                .directory()?
                .open_directory(name)
                .and_then(|directory| directory.sync());
            synced.map_err(BlobError::io("sync", path))?;
        }
        Ok(())
    }

    /// Opens the store's directory once, making it where it is absent.
    fn directory(&self) -> Result<&Directory, BlobError> {
        if self.directory.get().is_none() {
            let path = self.blobs.directory();
            let directory = self
                .blobs
                .tree
                .make_directory(path)
                .map_err(BlobError::io("open", path))?;
            _ = self.directory.set(directory);
        }
        Ok(self.directory.get().expect("it was set above"))
    }

    fn state(&self) -> MutexGuard<'_, BatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.blobs.lock_offered().retain(|batch| *batch != self.id);
        let Some(directory) = self.directory.get() else {
            return;
        };
        for (checksum, entry) in &self.state().entries {
            if let BlobStage::Staged { .. } = entry {
                _ = remove_temporary(directory, checksum, self.id);
            }
        }
    }
}

impl BatchState {
    fn stage(&mut self, blob: &BlobRef, length: u64) {
        self.entries
            .insert(blob.checksum, BlobStage::Staged { length });
        self.report.written += 1;
        self.report.bytes += length;
    }

    fn reuse(&mut self, blob: &BlobRef, kept: Metadata) {
        self.entries
            .insert(blob.checksum, BlobStage::Settled { length: kept.len() });
        self.recent |= is_recent(&kept);
        self.report.reused += 1;
    }
}

impl BlobStage {
    fn length(self) -> Option<u64> {
        match self {
            Self::Begun => None,
            Self::Staged { length } | Self::Settled { length } => Some(length),
        }
    }
}

/// Removes a blob's file under its temporary name.
fn remove_temporary(store: &Directory, checksum: &Checksum, batch: u64) -> io::Result<()> {
    let name = temporary_name(checksum, batch);
    let file = Path::new(&name).file_name().unwrap_or_default();
    store
        .open_directory(shard_name(checksum))?
        .remove_file(file)
}

/// Younger modification times are left alone: garbage collection spares files for an hour.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// A writer needs less time from naming a blob to having the name on disk.
const NAMING: Duration = Duration::from_secs(60);

/// Returns what is known of a file of this length, which it was written with, that need not be freshened. One that is
/// damaged and has its length passes for whole, but no longer than it is [`FRESH`].
fn stat_fresh(path: &Path, length: u64) -> Option<Metadata> {
    let metadata = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let is_fresh = metadata
        .modified()
        .is_ok_and(|modified| is_within(modified, FRESH));
    (metadata.len() == length && is_fresh).then_some(metadata)
}

/// Brings a file's modification time up to date if it looks whole, and returns what is known of it.
///
/// What a crash leaves of a file, of git's if not of ours, is cut short or zero at the end: the size stated there is
/// enough.
fn keep_file(file: &File, metadata: Metadata, size: u64) -> io::Result<Option<Metadata>> {
    let length = metadata.len();
    let whole = gzip::is_plausible(length, size) && read_stated_size(file, length)? == size as u32;
    if !whole {
        return Ok(None);
    }
    if !is_within(metadata.modified()?, FRESH) {
        file.set_modified(SystemTime::now())?;
    }
    Ok(Some(metadata))
}

/// Returns whether a file got its name so recently that the name may not be on disk.
fn is_recent(metadata: &Metadata) -> bool {
    naming_time(metadata).is_ok_and(|time| is_within(time, NAMING))
}

fn is_within(time: SystemTime, age: Duration) -> bool {
    time.elapsed().is_ok_and(|elapsed| elapsed < age)
}

/// Returns when a file got its name, or later: when anything but its content last changed.
#[cfg(unix)]
fn naming_time(metadata: &Metadata) -> io::Result<SystemTime> {
    let seconds = std::os::unix::fs::MetadataExt::ctime(metadata).unsigned_abs();
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(not(unix))]
fn naming_time(metadata: &Metadata) -> io::Result<SystemTime> {
    metadata.modified()
}

/// Reads the content's length modulo 2³² from the end of a file.
fn read_stated_size(file: &File, length: u64) -> io::Result<u32> {
    let mut last = [0; 4];
    read_exact_at(file, &mut last, length - 4)?;
    Ok(gzip::stated_size(last))
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_exact_at(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
    io::Read::read_exact(&mut file, buffer)
}

fn write_file(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    if cfg!(not(target_os = "linux")) {
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    struct Store {
        blobs: Blobs,
        _directory: tempfile::TempDir,
    }

    impl Store {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            Self {
                blobs: Blobs::open(directory.path().join("a/blobs")),
                _directory: directory,
            }
        }

        fn add(&self, content: &[u8]) -> (BlobRef, CommitReport) {
            let batch = self.blobs.batch();
            let blob = batch.put(content, Encoding::Binary).unwrap();
            (blob, batch.commit().unwrap())
        }

        /// Lists every file, complete or not.
        fn files(&self) -> Vec<PathBuf> {
            let shards = fs::read_dir(self.blobs.directory()).into_iter().flatten();
            shards
                .flat_map(|shard| fs::read_dir(shard.unwrap().path()).unwrap())
                .map(|file| file.unwrap().path())
                .collect()
        }
    }

    fn set_age(path: &std::path::Path, age: Duration) {
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(SystemTime::now() - age)
            .unwrap();
    }

    fn age(path: &std::path::Path) -> Duration {
        fs::metadata(path)
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap_or_default()
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn content_is_read_before_it_is_committed() {
        let store = Store::new();
        let (stored, _) = store.add(b"stored");
        let batch = store.blobs.batch();
        let staged = batch.put(b"staged", Encoding::Utf8).unwrap();
        assert!(matches!(
            store.blobs.read(&staged),
            Err(BlobError::Missing { .. })
        ));
        assert_eq!(
            batch.read_content(&staged).unwrap(),
            ResourceContent::Text("staged".into())
        );
        assert_eq!(
            batch.read_content(&stored).unwrap(),
            ResourceContent::Blob(b"stored".into())
        );
        let other = BlobRef::for_content(b"nowhere", Encoding::Utf8);
        assert!(matches!(
            batch.read_content(&other),
            Err(BlobError::Missing { .. })
        ));
        let longer = BlobRef { size: 7, ..staged };
        assert!(matches!(
            batch.read_content(&longer),
            Err(BlobError::Corrupt { .. })
        ));
        batch.commit().unwrap();
        assert_eq!(store.blobs.read(&staged).unwrap(), b"staged");
    }

    #[test]
    fn offered_content_is_found_until_its_batch_is_gone() {
        let store = Store::new();
        for is_committed in [false, true] {
            let batch = store.blobs.batch();
            let blob = batch.put(b"content", Encoding::Utf8).unwrap();
            assert!(matches!(
                store.blobs.read(&blob),
                Err(BlobError::Missing { .. })
            ));
            batch.offer();
            assert_eq!(store.blobs.clone().read(&blob).unwrap(), b"content");
            if is_committed {
                batch.commit().unwrap();
                assert_eq!(store.blobs.read(&blob).unwrap(), b"content");
            } else {
                drop(batch);
                assert!(matches!(
                    store.blobs.read(&blob),
                    Err(BlobError::Missing { .. })
                ));
            }
            assert!(store.blobs.lock_offered().is_empty());
        }
        let untouched = store.blobs.batch();
        untouched.offer();
        drop(untouched);
        assert!(store.blobs.lock_offered().is_empty());
    }

    #[test]
    fn offered_content_is_found_while_it_gets_its_name() {
        let store = Store::new();
        let batch = store.blobs.batch();
        let put = |number: usize| {
            batch
                .put(format!("content {number}").as_bytes(), Encoding::Utf8)
                .unwrap()
        };
        let blobs: Vec<_> = (0..2 * MANY).map(put).collect();
        batch.offer();
        thread::scope(|scope| {
            let committing = scope.spawn(|| batch.commit().unwrap());
            while !committing.is_finished() {
                blobs
                    .iter()
                    .for_each(|blob| drop(store.blobs.read(blob).unwrap()));
            }
        });
        blobs
            .iter()
            .for_each(|blob| drop(store.blobs.read(blob).unwrap()));
    }

    #[test]
    fn committed_content_is_read_back() {
        let store = Store::new();
        for content in [&b""[..], b"x", b"some text", &[7; 100_000]] {
            let (blob, report) = store.add(content);
            assert_eq!(blob, BlobRef::for_content(content, Encoding::Binary));
            assert_eq!((report.written, report.reused), (1, 0));
            assert_eq!(
                report.bytes,
                fs::metadata(store.blobs.path(&blob.checksum))
                    .unwrap()
                    .len()
            );
            assert_eq!(store.blobs.read(&blob).unwrap(), content);
        }
    }

    #[test]
    fn uncommitted_content_leaves_nothing() {
        let store = Store::new();
        let batch = store.blobs.batch();
        let blob = batch.put(b"content", Encoding::Utf8).unwrap();
        assert_eq!(store.files().len(), 1);
        assert!(matches!(
            store.blobs.read(&blob),
            Err(BlobError::Missing { .. })
        ));
        drop(batch);
        assert_eq!(store.files(), Vec::<PathBuf>::new());
    }

    #[test]
    fn untouched_batch_makes_no_directory() {
        let store = Store::new();
        assert_eq!(
            store.blobs.batch().commit().unwrap(),
            CommitReport::default()
        );
        assert!(!store.blobs.directory().exists());
    }

    #[test]
    fn equal_content_from_several_threads_is_written_once() {
        let store = Store::new();
        let batch = store.blobs.batch();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..100 {
                        batch
                            .put(format!("content {number}").as_bytes(), Encoding::Utf8)
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(store.files().len(), 100);
        assert_eq!(batch.commit().unwrap().written, 100);
        assert_eq!(store.blobs.status().unwrap().count, 100);
    }

    #[test]
    fn batches_that_overlap_in_time_may_hold_equal_content() {
        let store = Store::new();
        let batches = [store.blobs.batch(), store.blobs.batch()];
        for batch in &batches {
            batch.put(b"content", Encoding::Utf8).unwrap();
        }
        for batch in batches {
            assert_eq!(batch.commit().unwrap().written, 1);
        }
        assert_eq!(
            store.files(),
            [store.blobs.path(&Checksum::compute(b"content"))]
        );
    }

    #[test]
    fn stored_content_is_not_written_again_but_freshened() {
        let store = Store::new();
        let (blob, _) = store.add(b"content");
        let path = store.blobs.path(&blob.checksum);
        set_age(&path, HOUR);
        assert_eq!(
            store.add(b"content").1,
            CommitReport {
                reused: 1,
                ..CommitReport::default()
            }
        );
        assert!(age(&path) < FRESH);
    }

    #[test]
    fn known_blob_is_reused_unread() {
        let store = Store::new();
        let (blob, _) = store.add(b"content");
        let path = store.blobs.path(&blob.checksum);
        set_age(&path, HOUR);
        let batch = store.blobs.batch();
        assert!(batch.reuse(&blob, batch.file_length(&blob)).unwrap());
        assert_eq!(
            batch.file_length(&blob),
            Some(fs::metadata(&path).unwrap().len())
        );
        assert!(batch.reuse(&blob, batch.file_length(&blob)).unwrap());
        assert!(
            !batch
                .reuse(&BlobRef::for_content(b"other", Encoding::Utf8), None)
                .unwrap()
        );
        assert!(age(&path) < FRESH);
        assert_eq!(
            batch.commit().unwrap(),
            CommitReport {
                reused: 1,
                ..CommitReport::default()
            }
        );
    }

    #[test]
    fn torn_file_is_replaced() {
        let store = Store::new();
        let content = "some text that is long enough to be torn ".repeat(100);
        let (blob, _) = store.add(content.as_bytes());
        let path = store.blobs.path(&blob.checksum);
        let whole = fs::read(&path).unwrap();
        let mut zeroed = whole.clone();
        zeroed[20..].fill(0);
        let length = Some(whole.len() as u64);
        let torn = [
            (&b""[..], length),
            (&whole[..5], length),
            (&whole[..whole.len() - 1], length),
            (&zeroed, None),
        ];
        for (torn, length) in torn {
            fs::write(&path, torn).unwrap();
            assert!(!store.blobs.batch().reuse(&blob, length).unwrap());
            assert_eq!(store.add(content.as_bytes()).1.written, 1);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn failed_write_prevents_the_commit() {
        let store = Store::new();
        fs::create_dir_all(store.blobs.directory()).unwrap();
        let shard = store
            .blobs
            .path(&Checksum::compute(b"content"))
            .parent()
            .unwrap()
            .to_owned();
        fs::write(&shard, "in the way").unwrap();

        let batch = store.blobs.batch();
        let error = batch.put(b"content", Encoding::Utf8).unwrap_err();
        assert!(
            error.to_string().contains(shard.to_str().unwrap()),
            "{error}"
        );
        assert!(matches!(batch.commit(), Err(BlobError::Incomplete { .. })));
    }

    #[test]
    fn damaged_blob_is_written_again_where_its_content_is_at_hand() {
        let store = Store::new();
        let content: Vec<u8> = (0..9_000_u32)
            .flat_map(|number| (number * 7919).to_le_bytes())
            .collect();
        let (blob, _) = store.add(&content);
        let path = store.blobs.path(&blob.checksum);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&path, bytes).unwrap();
        assert!(matches!(
            store.blobs.read(&blob),
            Err(BlobError::Corrupt { .. })
        ));
        let (_, report) = store.add(&content);
        assert_eq!((report.written, report.reused), (1, 0));
        assert_eq!(store.blobs.read(&blob).unwrap(), content);
    }

    #[test]
    fn blobs_that_can_not_have_their_names_leave_nothing() {
        for blocked in [None, Some(3), Some(MANY)] {
            let store = Store::new();
            let batch = store.blobs.batch();
            let blobs: Vec<_> = (0..=MANY)
                .map(|number| {
                    batch
                        .put(number.to_string().as_bytes(), Encoding::Utf8)
                        .unwrap()
                })
                .collect();
            let blocked = blocked.map(|index: usize| store.blobs.path(&blobs[index].checksum));
            if let Some(path) = &blocked {
                fs::create_dir(path).unwrap();
            }
            match (batch.commit(), &blocked) {
                (Ok(report), None) => assert_eq!(report.written, blobs.len()),
                (Err(error), Some(path)) => {
                    assert_eq!(error.to_string(), format!("create {}", path.display()));
                    fs::remove_dir(path).unwrap();
                }
                (result, _) => panic!("{result:?}"),
            }
            let named: Vec<_> = blobs
                .iter()
                .filter(|blob| store.blobs.path(&blob.checksum).exists())
                .collect();
            assert_eq!(named.len(), store.files().len(), "nothing has another name");
            assert!(named.iter().all(|blob| store.blobs.read(blob).is_ok()));
            assert_eq!(named.len() == blobs.len(), blocked.is_none());
        }
    }

    #[test]
    fn store_that_cannot_be_made_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let blobs = Blobs::open(file.path().join("blobs"));
        let error = blobs.batch().put(b"content", Encoding::Utf8).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("open {}", blobs.directory().display())
        );
    }
}
