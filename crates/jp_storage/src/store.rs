use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use jp_conversation::Event;
use jp_resource::BlobRef;

use crate::{
    Batch, BlobError, Blobs, Conversation, ConversationId, Leftovers, Metadata, Places, ReadError,
    WriteError, Writer,
    conversation::{self, Form, read_lines},
    events::parse::ParseError,
    files,
    lock::{self, Lock, TryLock},
    writer::Target,
};

/// Conversations and their blobs, below one directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    locks: PathBuf,
    places: Places,
    blobs: Blobs,
}

/// Where a conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Its id.
    pub id: ConversationId,
    /// Its directory.
    pub directory: PathBuf,
}

impl Located {
    /// Returns the file that its events are in.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.directory.join(conversation::EVENTS)
    }
}

/// The conversations can't be listed, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A directory can't be read, or a file removed.
    #[error("access {path}")]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no conversation of that id.
    #[error("find conversation {0}")]
    NotFound(ConversationId),
    /// The content store can't be read, or a file of it not removed.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

impl Store {
    /// Names a store; nothing is read or made.
    ///
    /// `locks` is a directory of the user's own, `places` of the workspace the conversations are about.
    #[must_use]
    pub fn new(directory: PathBuf, locks: PathBuf, places: Places) -> Self {
        let blobs = Blobs::open(directory.join("blobs"));
        Self { directory, locks, places, blobs }
    }

    /// Returns the content store.
    #[must_use]
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Returns the directory that holds everything.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns all conversations, newest first; opens no file of theirs.
    pub fn list(&self) -> Result<Vec<Located>, StoreError> {
        let path = self.conversations();
        let error = |source| StoreError::Io { path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(error(source)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(error)?;
            if let Some(id) = entry.file_name().to_str().and_then(ConversationId::of_directory) {
                found.push(Located { id, directory: entry.path() });
            }
        }
        found.sort_by(|a, b| b.id.cmp(&a.id).then_with(|| a.directory.cmp(&b.directory)));
        Ok(found)
    }

    /// Finds a conversation by its id.
    pub fn find(&self, id: ConversationId) -> Result<Option<Located>, StoreError> {
        Ok(self.list()?.into_iter().find(|located| located.id == id))
    }

    fn has(&self, id: ConversationId) -> Result<bool, StoreError> {
        self.find(id).map(|found| found.is_some())
    }

    /// Reads a conversation; needs no lock.
    pub fn read(&self, located: &Located) -> Result<Conversation, ReadError> {
        conversation::read(&located.directory, located.id, &self.places)
    }

    /// Tries to take the lock on a conversation.
    pub fn try_lock(&self, id: ConversationId) -> Result<TryLock, StoreError> {
        let path = self.lock_path(id);
        lock::try_lock(&path).map_err(|source| StoreError::Io { path, source })
    }

    /// Continues a conversation that was read under `lock`.
    #[must_use]
    pub fn writer(&self, conversation: &Conversation, lock: Lock) -> Writer {
        Writer {
            id: conversation.id,
            directory: conversation.directory.clone(),
            metadata: conversation.metadata.clone(),
            places: self.places.clone(),
            blobs: self.blobs.clone(),
            target: Target::File(conversation.form),
            _lock: lock,
        }
    }

    /// Starts a conversation with the first free id from `now` on; it comes to disk with its first events.
    ///
    /// `others` are stores whose ids must not be used again either: people name conversations by id alone.
    pub fn start(&self, title: Option<&str>, now: Timestamp, others: &[Store]) -> Result<Writer, StoreError> {
        let mut id = ConversationId::at(now);
        let lock = loop {
            // Whoever holds the lock of an id may be about to make it: look only when it is ours.
            if let TryLock::Acquired(lock) = self.try_lock(id)?
                && !self.has(id)?
                && !others.iter().map(|other| other.has(id)).collect::<Result<Vec<_>, _>>()?.contains(&true)
            {
                break lock;
            }
            id = id.next();
        };
        Ok(Writer {
            id,
            directory: self.conversations().join(id.directory_name(title)),
            metadata: Metadata::new(title, now),
            places: self.places.clone(),
            blobs: self.blobs.clone(),
            target: Target::New,
            _lock: lock,
        })
    }

    /// Copies the events with these indexes, and after them `added`, into a conversation just started: all or none, but
    /// for what [`Pending::finish`](crate::Pending::finish) says of a new conversation.
    ///
    /// They are copied as they stand in the file, with fields that this version does not know.
    pub fn copy_events(
        &self,
        from: &Located,
        indexes: &[usize],
        mut added: Vec<Event>,
        to: &mut Writer,
    ) -> Result<(), WriteError> {
        let read = read_lines(&from.directory)?;
        let batch = to.batch();
        let mut lines = Vec::with_capacity(indexes.len() + added.len());
        for line in indexes.iter().filter_map(|index| read.lines.get(*index)) {
            lines.push(to.modernise(line, &batch)?);
        }
        lines.extend(to.lines(&mut added, &batch)?);
        let unpublished = to.create(&lines, batch)?;
        conversation::copy_base_config(&from.directory, unpublished.staged.path())
            .map_err(|source| WriteError::Io { path: to.directory.clone(), source })?;
        unpublished.publish(&to.directory)?;
        to.target = Target::File(Form::Current);
        Ok(())
    }

    /// Starts adding content.
    #[must_use]
    pub fn batch(&self) -> Batch {
        self.blobs.batch()
    }

    /// Removes a conversation; its content stays until it is collected.
    pub fn remove(&self, located: &Located, _lock: Lock) -> Result<(), StoreError> {
        let error = |source| StoreError::Io { path: located.directory.clone(), source };
        let removed = self.conversations().join(format!("{}removed-{}", files::TEMPORARY, located.id));
        fs::rename(&located.directory, &removed).map_err(error)?;
        fs::remove_dir_all(&removed).map_err(error)
    }

    /// Removes what writers left that were interrupted, if it has not changed for `age`.
    pub fn remove_leftovers(&self, age: Duration) -> Result<Leftovers, StoreError> {
        let path = self.conversations();
        let error = |source| StoreError::Io { path: path.clone(), source };
        let mut leftovers = self.blobs.clean_stale_temporaries(age)?;
        // A link may have come with a clone and lead anywhere.
        if !files::is_own_directory(&path) {
            return Ok(leftovers);
        }
        for entry in fs::read_dir(&path).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let temporaries: Vec<PathBuf> = if files::is_temporary(&path) {
                vec![path]
            } else if files::is_own_directory(&path) {
                // What replaces a file of a conversation stands beside it.
                let inside = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
                inside.filter(|path| files::is_temporary(path)).collect()
            } else {
                Vec::new()
            };
            for path in temporaries {
                leftovers.remove(&path, age).map_err(|source| StoreError::Io { path, source })?;
            }
        }
        Ok(leftovers)
    }

    /// Returns the content that a conversation names anywhere, in fields that nobody knows too.
    ///
    /// # Errors
    ///
    /// Fails, too, where an event that may name some can't be read: what is not known to be needed may be removed.
    pub fn blobs_of(&self, located: &Located) -> Result<Vec<BlobRef>, ReadError> {
        let lines = read_lines(&located.directory)?.lines;
        let mut blobs = Vec::new();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.json.contains("$blob")) {
            let value = serde_json::from_str(&line.json).map_err(|error| ReadError::Events {
                path: located.events(),
                source: ParseError::in_event(index, &error),
            })?;
            jp_conversation::blobs_in(&value, &mut blobs);
        }
        Ok(blobs)
    }

    /// Returns the directory that has one for each conversation; it may not be there yet.
    #[must_use]
    pub fn conversations(&self) -> PathBuf {
        self.directory.join("conversations")
    }

    /// Returns the files that a conversation consists of, but for its content, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn files_of(&self, located: &Located) -> Result<Vec<PathBuf>, StoreError> {
        let error = |source| StoreError::Io { path: located.directory.clone(), source };
        let entries = fs::read_dir(&located.directory).map_err(error)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>().map_err(error)?;
        paths.retain(|path| !files::is_temporary(path));
        paths.sort();
        Ok(paths)
    }

    fn lock_path(&self, id: ConversationId) -> PathBuf {
        self.locks.join(format!("{id}.lock"))
    }
}
