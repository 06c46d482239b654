use std::{
    io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use jp_conversation::Event;
use serde_json::Value;

use crate::{
    Batch, BlobError, Blobs, ConversationId, Metadata, Places, ReadError,
    concurrent_read::Writers,
    conversation::{EVENTS, Form, Line, METADATA, read_lines},
    events::append,
    files,
    lock::Lock,
    tree::{StagedDirectory, Tree, split},
};

/// Appends to a conversation. Its lock excludes other writers.
#[derive(Debug)]
pub struct Writer {
    pub(crate) id: ConversationId,
    pub(crate) directory: PathBuf,
    pub(crate) tree: Tree,
    pub(crate) metadata: Metadata,
    pub(crate) places: Places,
    pub(crate) blobs: Blobs,
    pub(crate) target: Target,
    pub(crate) _lock: Lock,
}

/// The state on disk before the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// There is no directory. A new conversation is written with its first events.
    New,
    /// There is a file in this form.
    File(Form),
}

/// An error of writing events. Messages finish the sentence "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or directory could not be written.
    #[error("write {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content of the events could not be stored.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The existing events could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An event could not be turned into JSON.
    #[error("write an event as JSON")]
    Json(#[from] serde_json::Error),
}

/// A write that isn't durable yet. Without [`finish`](Self::finish) it may be lost; a new conversation is
/// always lost, because only `finish` writes it.
#[derive(Debug)]
#[must_use]
pub struct Pending {
    directory: PathBuf,
    work: Work,
}

/// The work that makes written events durable.
#[derive(Debug)]
pub(crate) enum Work {
    /// The events are durable.
    None,
    /// Syncs the file.
    Sync(append::Appended),
    /// Replaces the metadata.
    Metadata(Tree, Vec<u8>),
    /// Renames metadata that can't be read, and writes new metadata.
    DamagedMetadata(Tree, Vec<u8>),
    /// Writes a new conversation. It gets its name after its content and files are on disk.
    Publish(Box<Unpublished>),
}

/// A new conversation in a directory with a temporary name, which no reader finds.
#[derive(Debug)]
pub(crate) struct Unpublished {
    staged: StagedDirectory,
    files: Vec<(&'static str, Vec<u8>)>,
    batch: Batch,
    /// True if syncing the content's file system also syncs the conversation.
    is_one_file_system: bool,
}

impl WriteError {
    /// Returns a function that adds `path` to an I/O error.
    fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

impl Pending {
    pub(crate) fn new(directory: &Path, work: Work) -> Self {
        Self {
            directory: directory.to_owned(),
            work,
        }
    }

    /// Waits until the events are durable.
    ///
    /// If it fails, none of them is in the file. The exception is a new conversation whose name can't be
    /// made durable: it exists, whole, but a loss of power may remove it.
    pub fn finish(self) -> Result<(), WriteError> {
        let done = match self.work {
            Work::None => Ok(()),
            Work::Sync(appended) => appended.sync(),
            Work::Metadata(tree, json) => tree
                .replace_soon(&self.directory.join(METADATA), &json)
                .map(drop),
            Work::DamagedMetadata(tree, json) => {
                replace_damaged_metadata(&tree, &self.directory, &json)
            }
            Work::Publish(unpublished) => return unpublished.publish(&self.directory),
        };
        done.map_err(|source| WriteError::Io {
            path: self.directory,
            source,
        })
    }
}

impl Unpublished {
    /// Adds a file to the conversation.
    pub(crate) fn add_file(&mut self, name: &'static str, bytes: Vec<u8>) {
        self.files.push((name, bytes));
    }

    pub(crate) fn publish(self, directory: &Path) -> Result<(), WriteError> {
        let failed = WriteError::io(directory);
        let Self {
            staged,
            files,
            batch,
            is_one_file_system,
        } = self;
        let written = files.iter().map(|(name, bytes)| staged.write(name, bytes));
        let written: Vec<_> = written.collect::<io::Result<_>>().map_err(&failed)?;
        // The content goes first: an event on disk must not name content that isn't. Committing it syncs
        // the whole file system, with the new files if they are on the same one.
        let is_synced = batch.commit()?.written > 0 && is_one_file_system;
        if !is_synced {
            written
                .iter()
                .try_for_each(std::fs::File::sync_all)
                .map_err(&failed)?;
            staged.sync().map_err(&failed)?;
        }
        split(directory)
            .and_then(|(_, name)| staged.publish(name))
            .map_err(failed)
    }
}

impl Writer {
    /// Returns the conversation's id.
    #[must_use]
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// Starts adding content to the conversation's store.
    #[must_use]
    pub fn batch(&self) -> Batch {
        self.blobs.batch()
    }

    /// Appends events. Returns them with references instead of content.
    ///
    /// `batch` has the content that is already stored; the rest is added to it. All content is durable
    /// before the events, and the events are durable on return. If it fails, none of them is in the
    /// file, with the exception that [`Pending::finish`] describes.
    pub fn append(&mut self, events: Vec<Event>, batch: Batch) -> Result<Vec<Event>, WriteError> {
        let (events, pending) = self.write(events, batch)?;
        pending.finish()?;
        Ok(events)
    }

    /// Appends events like [`append`](Self::append), but doesn't wait for the disk. The caller can do
    /// other work before [`Pending::finish`].
    pub fn write(
        &mut self,
        mut events: Vec<Event>,
        batch: Batch,
    ) -> Result<(Vec<Event>, Pending), WriteError> {
        self.tree.close_to_others();
        let lines = self.lines(&mut events, &batch)?;
        let work = match self.target {
            Target::New => Work::Publish(Box::new(self.create(&lines, batch)?)),
            Target::File(Form::Older | Form::Torn) => {
                self.rewrite(lines, batch)?;
                Work::None
            }
            Target::File(Form::Current) => {
                batch.commit()?;
                let path = self.directory.join(EVENTS);
                let appended = self
                    .tree
                    .open_for_update(&path)
                    .and_then(|file| append::append(file, &lines));
                Work::Sync(appended.map_err(|source| WriteError::Io { path, source })?)
            }
        };
        self.target = Target::File(Form::Current);
        Ok((events, Pending::new(&self.directory, work)))
    }

    /// Records `now` as the time of the conversation's last use, when the returned work is finished.
    pub fn activate(&mut self, now: Timestamp) -> Pending {
        self.metadata.activate(now);
        let work = match std::mem::take(&mut self.metadata.is_damaged) {
            true => Work::DamagedMetadata,
            false => Work::Metadata,
        };
        Pending::new(
            &self.directory,
            work(self.tree.clone(), self.metadata.to_json()),
        )
    }

    /// Moves the events' content to the batch. Returns their lines for the file.
    pub(crate) fn lines(
        &self,
        events: &mut [Event],
        batch: &Batch,
    ) -> Result<Vec<String>, WriteError> {
        for event in &mut *events {
            event.store_payloads(|bytes, encoding| batch.put(bytes, encoding))?;
        }
        Ok(events
            .iter()
            .map(|event| self.line(event))
            .collect::<Result<_, _>>()?)
    }

    fn line(&self, event: &Event) -> serde_json::Result<String> {
        let mut event = event.clone();
        event.rewrite_places(|place| self.places.write(place));
        event.to_json()
    }

    /// Makes a directory with a temporary name for a new conversation. [`Pending::finish`] writes the
    /// content, then the files, and gives it its name.
    ///
    /// Until then, the store of the batch and its clones can read the content.
    pub(crate) fn create(&self, lines: &[String], batch: Batch) -> Result<Unpublished, WriteError> {
        let error = WriteError::io(&self.directory);
        let parent = self
            .directory
            .parent()
            .ok_or_else(|| error(io::Error::other("no parent directory")))?;
        let staged = StagedDirectory::create(&self.tree, parent).map_err(&error)?;
        let is_one_file_system = files::share_file_system(parent, self.blobs.directory());
        batch.offer();
        let events = append::whole_file(lines).into_bytes();
        let files = vec![(EVENTS, events), (METADATA, self.metadata.to_json())];
        Ok(Unpublished {
            staged,
            files,
            batch,
            is_one_file_system,
        })
    }

    /// Rewrites a conversation in an older format or with a torn end, with the new events, in one step.
    /// The lost part of a torn end goes to another file.
    fn rewrite(&self, new: Vec<String>, batch: Batch) -> Result<(), WriteError> {
        let read = read_lines(&self.tree, &self.directory, Writers::Unknown)?;
        let mut lines = Vec::with_capacity(read.lines.len() + new.len());
        for line in &read.lines {
            lines.push(self.modernise(line, &batch)?);
        }
        lines.extend(new);
        batch.commit()?;
        // After the commit: a retry of a failed commit would write another copy.
        if let Some(torn) = &read.torn {
            self.write_aside(torn)?;
        }
        let path = self.directory.join(EVENTS);
        self.tree
            .replace(&path, append::whole_file(&lines).as_bytes())
            .map_err(WriteError::io(&path))
    }

    /// Moves an older event's content to the blob store and keeps its unknown fields. Events of the
    /// current format stay unchanged.
    pub(crate) fn modernise(&self, line: &Line, batch: &Batch) -> Result<String, WriteError> {
        if !line.is_converted {
            return Ok(line.json.clone());
        }
        let mut event = Event::from_json(&line.json)
            .map_err(|error| serde_json::Error::io(io::Error::other(error)))?;
        if line.has_places {
            event.rewrite_places(|place| self.places.read(place));
        }
        event.store_payloads(|bytes, encoding| batch.put(bytes, encoding))?;
        let mut written: Value = serde_json::from_str(&self.line(&event)?)?;
        let original: Value = serde_json::from_str(&line.json)?;
        if let (Some(written), Value::Object(original)) = (written.as_object_mut(), original) {
            for (key, value) in original {
                written.entry(key).or_insert(value);
            }
        }
        Ok(written.to_string())
    }

    /// Writes a torn end to a new file next to the events.
    fn write_aside(&self, tail: &[u8]) -> Result<(), WriteError> {
        let path = free_name(&self.directory, &format!("{EVENTS}.torn"));
        self.tree
            .replace(&path, tail)
            .map_err(WriteError::io(&path))
    }
}

/// Replaces metadata that can't be read. Renames the file, because it can't be copied either.
fn replace_damaged_metadata(tree: &Tree, directory: &Path, json: &[u8]) -> io::Result<()> {
    let path = directory.join(METADATA);
    tree.rename(&path, &free_name(directory, &format!("{METADATA}.damaged")))?;
    tree.replace_soon(&path, json).map(drop)
}

/// Returns the first of the paths `START-1`, `START-2` and so on that is free.
fn free_name(directory: &Path, start: &str) -> PathBuf {
    let mut names = (1..).map(|number| directory.join(format!("{start}-{number}")));
    names
        .find(|path| path.symlink_metadata().is_err())
        .expect("there are more numbers than files")
}
