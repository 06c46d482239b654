use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use jp_conversation::Event;
use jp_resource::BlobRef;

use crate::{
    Batch, BlobError, Blobs, Conversation, ConversationId, Leftovers, Metadata, Places, ReadError,
    WriteError, Writer,
    concurrent_read::Writers,
    conversation::{self, BASE_CONFIG, EVENTS, Form, ReadEvents, fail_if_removed, read_lines},
    directory::{Directory, skip_absent},
    events::parse::ParseError,
    files,
    lock::{self, Lock, TryLock},
    tree::{Tree, split, temporaries},
    writer::Target,
};

/// Conversations and their blobs, below one directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    tree: Tree,
    locks: PathBuf,
    places: Places,
    blobs: Blobs,
}

/// The place of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Its id.
    pub id: ConversationId,
    /// Its directory.
    pub directory: PathBuf,
}

/// The directory for archived conversations of an older version of jp.
const ARCHIVE: &str = ".archive";

/// The entries of a directory of conversations.
#[derive(Debug, Default)]
struct Listed {
    located: Vec<Located>,
    has_archive: bool,
}

impl Located {
    /// Reads the id in the name of an entry; `None` if it isn't a conversation's.
    fn in_directory(directory: &Path, name: &OsStr) -> Option<Self> {
        Some(Self {
            id: ConversationId::from_directory_name(name.to_str()?)?,
            directory: directory.join(name),
        })
    }

    /// Returns true if it is archived. jp only reads archived conversations.
    #[must_use]
    pub fn is_archived(&self) -> bool {
        self.directory
            .parent()
            .is_some_and(|parent| parent.ends_with(ARCHIVE))
    }

    /// Returns the path of its events.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.directory.join(EVENTS)
    }

    /// Returns true if it still exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        fail_if_removed(&self.directory).is_ok()
    }
}

/// An error of listing, finding or removing conversations. Messages finish the sentence "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A directory can't be read, or a file removed.
    #[error("access {path}")]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There is no conversation of that id.
    #[error("find conversation {0}")]
    NotFound(ConversationId),
    /// The content store can't be read, or one of its files can't be removed.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

impl StoreError {
    /// Returns a function that adds `path` to an I/O error.
    fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

impl Store {
    /// Makes a store in a directory of `tree`. Does no I/O.
    ///
    /// `locks` is a directory of the user. `places` belongs to the workspace of the conversations.
    pub(crate) fn new(tree: Tree, directory: PathBuf, locks: PathBuf, places: Places) -> Self {
        let blobs = Blobs::below(tree.clone(), &directory.join("blobs"));
        Self {
            directory,
            tree,
            locks,
            places,
            blobs,
        }
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

    /// Returns all conversations except archived ones, newest first. Opens none of their files.
    pub fn list(&self) -> Result<Vec<Located>, StoreError> {
        Ok(self.list_in(self.conversations())?.located)
    }

    /// Returns the archived conversations, newest first. Opens none of their files.
    pub fn list_archived(&self) -> Result<Vec<Located>, StoreError> {
        Ok(self.list_in(self.conversations().join(ARCHIVE))?.located)
    }

    fn list_in(&self, path: PathBuf) -> Result<Listed, StoreError> {
        let entries = match self
            .tree
            .directory(&path)
            .and_then(|directory| directory.entries())
        {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listed::default()),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        let has_archive = entries.iter().any(|name| name == ARCHIVE);
        let entries = entries.into_iter();
        let mut found: Vec<Located> = entries
            .filter_map(|name| Located::in_directory(&path, &name))
            .collect();
        // Two directories may have the same id after a merge. Then their names decide, for a stable order.
        found.sort_by(|a, b| b.id.cmp(&a.id).then_with(|| a.directory.cmp(&b.directory)));
        Ok(Listed {
            located: found,
            has_archive,
        })
    }

    /// Finds a conversation by its id, including archived ones.
    pub fn find(&self, id: ConversationId) -> Result<Option<Located>, StoreError> {
        let Listed {
            located,
            has_archive,
        } = self.list_in(self.conversations())?;
        let found = located.into_iter().find(|located| located.id == id);
        if found.is_some() || !has_archive {
            return Ok(found);
        }
        Ok(self
            .list_archived()?
            .into_iter()
            .find(|located| located.id == id))
    }

    fn has(&self, id: ConversationId) -> Result<bool, StoreError> {
        self.find(id).map(|found| found.is_some())
    }

    /// Reads a conversation. It needs no lock, and waits a moment if another process writes the end.
    pub fn read(&self, located: &Located) -> Result<Conversation, ReadError> {
        let writers = &self.lock_path(located.id);
        conversation::read(
            &self.tree,
            &located.directory,
            located.id,
            &self.places,
            Writers::Locking(writers),
        )
    }

    /// Tries to take the lock on a conversation.
    pub fn try_lock(&self, id: ConversationId) -> Result<TryLock, StoreError> {
        let path = self.lock_path(id);
        lock::try_lock(&path).map_err(StoreError::io(&path))
    }

    /// Continues a conversation that was read under `lock`.
    #[must_use]
    pub fn writer(&self, conversation: &Conversation, lock: Lock) -> Writer {
        Writer {
            id: conversation.id,
            directory: conversation.directory.clone(),
            tree: self.tree.clone(),
            metadata: conversation.metadata.clone(),
            places: self.places.clone(),
            blobs: self.blobs.clone(),
            target: Target::File(conversation.form),
            _lock: lock,
        }
    }

    /// Starts a conversation with the first free id from `now` on. It is written with its first events.
    ///
    /// The id must be free in `others`, too, because users name conversations only by id.
    pub fn start(
        &self,
        title: Option<&str>,
        now: Timestamp,
        others: &[Store],
    ) -> Result<Writer, StoreError> {
        let mut id = ConversationId::at(now);
        let lock = loop {
            // The process with the lock may be about to create this id, so check only under the lock.
            if let TryLock::Acquired(lock) = self.try_lock(id)?
                && !self.has(id)?
                && !others
                    .iter()
                    .map(|other| other.has(id))
                    .collect::<Result<Vec<_>, _>>()?
                    .contains(&true)
            {
                break lock;
            }
            id = id.next();
        };
        Ok(Writer {
            id,
            directory: self.conversations().join(id.directory_name(title)),
            tree: self.tree.clone(),
            metadata: Metadata::new(title, now),
            places: self.places.clone(),
            blobs: self.blobs.clone(),
            target: Target::New,
            _lock: lock,
        })
    }

    /// Copies the events with these indexes into a new conversation, followed by `added`.
    ///
    /// Unknown fields are copied, too. If it fails, there is no new conversation, with the exception
    /// that [`Pending::finish`](crate::Pending::finish) describes.
    pub fn copy_events(
        &self,
        from: &Located,
        indexes: &[usize],
        mut added: Vec<Event>,
        to: &mut Writer,
    ) -> Result<(), WriteError> {
        let read = self.read_lines(from)?;
        let batch = to.batch();
        let mut lines = Vec::with_capacity(indexes.len() + added.len());
        for line in indexes.iter().filter_map(|index| read.lines.get(*index)) {
            lines.push(to.modernise(line, &batch)?);
        }
        lines.extend(to.lines(&mut added, &batch)?);
        let base_config_path = from.directory.join(BASE_CONFIG);
        let base_config = self
            .tree
            .read_if_present(&base_config_path)
            .map_err(ReadError::io(&base_config_path))?;
        let mut unpublished = to.create(&lines, batch)?;
        if let Some(base_config) = base_config {
            unpublished.add_file(BASE_CONFIG, base_config);
        }
        // The base configuration may be missing because another process removed the conversation.
        fail_if_removed(&from.directory)?;
        unpublished.publish(&to.directory)?;
        to.target = Target::File(Form::Current);
        Ok(())
    }

    /// Starts adding content.
    #[must_use]
    pub fn batch(&self) -> Batch {
        self.blobs.batch()
    }

    /// Removes a conversation. Its content stays until garbage collection.
    pub fn remove(&self, located: &Located, _lock: Lock) -> Result<(), StoreError> {
        self.remove_directory(located)
            .map_err(StoreError::io(&located.directory))
    }

    /// Renames the directory first, so that no process finds a partial conversation.
    fn remove_directory(&self, located: &Located) -> io::Result<()> {
        let (conversations, name) = split(&located.directory)?;
        let conversations = self.tree.directory(conversations)?;
        conversations.refuse_link(name)?;
        let removed = format!("{}removed-{}", files::TEMPORARY, located.id);
        conversations.rename(name, &removed)?;
        match conversations.remove_directory(&removed) {
            // Another process took it for a leftover and removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Removes leftovers of interrupted writers that haven't changed for `age`.
    pub fn remove_leftovers(&self, age: Duration) -> Result<Leftovers, StoreError> {
        let path = self.conversations();
        let mut leftovers = self.blobs.clean_stale_temporaries(age)?;
        let opened = skip_absent(self.tree.directory(&path));
        let Some(conversations) = opened.map_err(StoreError::io(&path))? else {
            return Ok(leftovers);
        };
        for name in conversations.entries().map_err(StoreError::io(&path))? {
            if files::is_temporary(&name) {
                remove_leftover(&conversations, &name, age, &mut leftovers)?;
            } else if let Ok(conversation) = conversations.open_directory(&name) {
                // A replacement for a file of a conversation is written next to it.
                for name in temporaries(&conversation).unwrap_or_default() {
                    remove_leftover(&conversation, &name, age, &mut leftovers)?;
                }
            }
        }
        Ok(leftovers)
    }

    /// Returns all content that a conversation names, including in unknown fields.
    ///
    /// # Errors
    ///
    /// Also fails if an event that may name content can't be parsed, because callers may remove content
    /// that isn't named.
    pub fn blobs_of(&self, located: &Located) -> Result<Vec<BlobRef>, ReadError> {
        let lines = self.read_lines(located)?.lines;
        let mut blobs = Vec::new();
        for (index, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.json.contains("$blob"))
        {
            let value = serde_json::from_str(&line.json).map_err(|error| ReadError::Events {
                path: located.events(),
                source: ParseError::in_event(index, &error),
            })?;
            jp_conversation::blobs_in(&value, &mut blobs);
        }
        Ok(blobs)
    }

    /// Returns the directory of the conversations' directories. It may not exist.
    #[must_use]
    pub fn conversations(&self) -> PathBuf {
        self.directory.join("conversations")
    }

    /// Returns the files of a conversation, sorted, without its content.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn files_of(&self, located: &Located) -> Result<Vec<PathBuf>, StoreError> {
        let names = self
            .tree
            .directory(&located.directory)
            .and_then(|directory| directory.entries());
        let mut names = names.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::NotFound(located.id),
            _ => StoreError::io(&located.directory)(error),
        })?;
        names.retain(|name| !files::is_temporary(name));
        let mut paths: Vec<PathBuf> = names
            .iter()
            .map(|name| located.directory.join(name))
            .collect();
        paths.sort();
        Ok(paths)
    }

    /// Returns the length of a conversation's events file; 0 if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn events_length(&self, located: &Located) -> Result<u64, StoreError> {
        match self.look_at_events(located) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            length => length.map_err(StoreError::io(&located.events())),
        }
    }

    fn look_at_events(&self, located: &Located) -> io::Result<u64> {
        let directory = self.tree.directory(&located.directory)?;
        directory.refuse_link(EVENTS)?;
        Ok(directory.look_at(Path::new(EVENTS))?.len())
    }

    /// Returns the tree of the store's files.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    fn read_lines(&self, located: &Located) -> Result<ReadEvents, ReadError> {
        read_lines(
            &self.tree,
            &located.directory,
            Writers::Locking(&self.lock_path(located.id)),
        )
    }

    fn lock_path(&self, id: ConversationId) -> PathBuf {
        self.locks.join(format!("{id}.lock"))
    }
}

fn remove_leftover(
    directory: &Directory,
    name: &OsStr,
    age: Duration,
    leftovers: &mut Leftovers,
) -> Result<(), StoreError> {
    leftovers
        .remove(directory, name, age)
        .map_err(StoreError::io(&directory.path().join(name)))
}
