use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
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

/// New content for a store.
///
/// [`put`](Self::put) writes files with temporary names; several threads may call it.
/// [`commit`](Self::commit) makes them durable and gives them their names. Drop without a commit removes
/// them. A batch needs about 100 bytes for each blob, and the compressed bytes of the file that is being
/// written.
#[derive(Debug)]
pub struct Batch {
    blobs: Blobs,
    directory: OnceLock<Directory>,
    /// Distinguishes the temporary names of this batch.
    id: u64,
    state: Mutex<BatchState>,
}

/// The result of committing a [`Batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitReport {
    /// The number of new blobs.
    pub written: usize,
    /// The number of blobs that the store had.
    pub reused: usize,
    /// The length of the new files.
    pub bytes: u64,
}

/// The number of blobs from which a second thread renames half of them. For fewer, starting it costs more
/// than it saves.
const MANY: usize = 512;

/// The state of a blob in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobStage {
    /// It is being written.
    Begun,
    /// It is complete and has its temporary name. `length` is that of the file.
    Staged { length: u64 },
    /// It is in the store.
    Settled { length: u64 },
}

#[derive(Debug, Default)]
struct BatchState {
    entries: HashMap<Checksum, BlobStage>,
    failed: bool,
    /// The checked directories of the store, which aren't links.
    own_shards: HashSet<String>,
    /// True if the name of a reused blob is so new that it may not be on disk.
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
    /// Adds `content` and returns its reference.
    ///
    /// Content in the batch or the store isn't written again. Its file's modification time is updated,
    /// so that garbage collection spares it.
    pub fn put(&self, content: &[u8], encoding: Encoding) -> Result<BlobRef, BlobError> {
        let blob = BlobRef::for_content(content, encoding);
        if self.begin(&blob) {
            self.store(&blob, content)
                .inspect_err(|_| self.state().failed = true)?;
        }
        Ok(blob)
    }

    /// Returns the length of a blob's file if the batch has it.
    pub fn file_length(&self, blob: &BlobRef) -> Option<u64> {
        self.state()
            .entries
            .get(&blob.checksum)
            .and_then(|entry| entry.length())
    }

    /// Adds resource content and returns its reference.
    pub fn put_content(&self, content: &ResourceContent) -> Result<BlobRef, BlobError> {
        self.put(content.as_bytes(), content.encoding())
    }

    /// Returns true if the batch or the store has `blob`, and protects it from garbage collection.
    ///
    /// Use it if the checksum is known without reading the content. If it returns false, the caller must
    /// [`put`](Self::put) the content. If the file is new and has `file_length`, it isn't opened.
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

    /// Reads and verifies content of the batch or its store.
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

    /// Lets the store of this batch and its clones read the batch's content until it is committed or
    /// dropped.
    pub(crate) fn offer(&self) {
        self.blobs.lock_offered().push(self.id);
    }

    /// Makes all content durable and gives it its names, so that events can name it.
    ///
    /// One sync of the file system writes the content to disk before it has a name. The names are durable
    /// before anything that is written and synced later. ext4 and XFS ensure that by the order of their
    /// journal; other file systems need a second sync. If nothing was written, nothing is synced. If it
    /// fails, some blobs may already have their names; they are complete.
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

    /// Registers `blob`. Returns true if the caller must store it.
    fn begin(&self, blob: &BlobRef) -> bool {
        match self.state().entries.entry(blob.checksum) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(BlobStage::Begun);
                true
            }
        }
    }

    fn store(&self, blob: &BlobRef, content: &[u8]) -> Result<(), BlobError> {
        // A damaged file is written again, because the content is available here.
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

    /// Returns the metadata of `blob`'s file if the store has it whole, and updates its modification time.
    ///
    /// A file that this user can't update counts as missing. Writing it again makes the user its owner.
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

    /// Returns true if a blob's directory exists and isn't a link. Asks the system once for each.
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

    /// Writes a blob's file with its temporary name.
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

    /// Renames all staged blobs. If there are many, a second thread renames half of them.
    fn rename_all(&self, state: &mut BatchState) -> Result<(), BlobError> {
        let mut entries: Vec<_> = state.entries.iter_mut().collect();
        // In this order, each directory is checked once, and the two threads use different ones.
        entries.sort_unstable_by_key(|(checksum, _)| **checksum);
        if entries.len() >= MANY {
            let half = entries.len() / 2;
            let (here, there) = entries.split_at_mut(half);
            thread::scope(|scope| {
                let other = thread::Builder::new().spawn_scoped(scope, || self.rename(there));
                self.rename(here)?;
                // If the system refuses the thread, the call below does its work.
                let Ok(other) = other else { return Ok(()) };
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
        }
        self.rename(&mut entries)
    }

    /// Renames the staged blobs of these entries, which are sorted.
    ///
    /// Checks each directory for a link once, because opening it would take three calls. Behind a link that
    /// appears later, there is no file with the batch's random name, so nothing is renamed there.
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

    /// Does nothing, because each file was synced when it was written.
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

    /// Opens the store's directory once. Makes it if it is missing.
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

/// Removes a blob's file with its temporary name.
fn remove_temporary(store: &Directory, checksum: &Checksum, batch: u64) -> io::Result<()> {
    let name = temporary_name(checksum, batch);
    let file = Path::new(&name).file_name().unwrap_or_default();
    store
        .open_directory(shard_name(checksum))?
        .remove_file(file)
}

/// The age below which modification times aren't updated. Garbage collection spares files for an hour, so
/// much less is enough.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// The time after which a name is surely on disk. Writers sync soon after renaming.
const NAMING: Duration = Duration::from_secs(60);

/// Returns the metadata of a file if it is new and has the length that it was written with.
///
/// A damaged file of the right length counts as whole, but only while it is [`FRESH`].
fn stat_fresh(path: &Path, length: u64) -> Option<Metadata> {
    let metadata = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let is_fresh = metadata
        .modified()
        .is_ok_and(|modified| is_within(modified, FRESH));
    (metadata.len() == length && is_fresh).then_some(metadata)
}

/// Updates a file's modification time if it looks whole, and returns its metadata.
///
/// A crash of jp or git leaves a file that is short or has zeroes at its end. The size at the end is
/// therefore a sufficient check.
fn keep_file(file: &File, metadata: Metadata, size: u64) -> io::Result<Option<Metadata>> {
    let length = metadata.len();
    let is_whole =
        gzip::is_plausible(length, size) && read_stated_size(file, length)? == size as u32;
    if !is_whole {
        return Ok(None);
    }
    if !is_within(metadata.modified()?, FRESH) {
        file.set_modified(SystemTime::now())?;
    }
    Ok(Some(metadata))
}

/// Returns true if a file's name is so new that it may not be on disk.
fn is_recent(metadata: &Metadata) -> bool {
    naming_time(metadata).is_ok_and(|time| is_within(time, NAMING))
}

fn is_within(time: SystemTime, age: Duration) -> bool {
    time.elapsed().is_ok_and(|elapsed| elapsed < age)
}

/// Returns an upper bound for the time when a file got its name: the last change of its metadata.
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
    fn damaged_blob_is_written_again() {
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
    fn failed_rename_leaves_nothing() {
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
