//! A cache for listing conversations without opening their files.

use std::{
    collections::HashMap,
    fs::{self, Metadata as FileMetadata},
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};

use crate::{
    ConversationId, Located, Metadata, Store,
    concurrent_read::{self, Writers},
    conversation::{self, EVENTS, METADATA},
    events::parse::Parsed,
    files, legacy,
};

/// A conversation in a list of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The title.
    pub title: Option<String>,
    /// The number of turns; `None` if its events can't be read.
    pub turns: Option<usize>,
    /// The time of its last use, in RFC 3339.
    pub last_activated_at: Option<String>,
}

/// Summaries by directory. Each is valid while the conversation's files don't change.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    entries: HashMap<String, CachedSummary>,
    is_changed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedSummary {
    state: FileTimes,
    summary: Summary,
}

/// Length and modification time of both files, and the version of the summary format.
type FileTimes = [u64; 5];

/// Version of the summary format; bump it when older summaries would be wrong.
const SUMMARY_VERSION: u64 = 2;

impl Index {
    /// Reads the cache at `path`. A missing or damaged one is empty.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        let entries = fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            path,
            entries: entries.unwrap_or_default(),
            is_changed: false,
        }
    }

    /// Returns the summary of a conversation in `store`. Opens its files only if they have changed.
    pub fn summary(&mut self, store: &Store, located: &Located) -> Summary {
        let key = key(&located.directory, located.id);
        let state = state(&located.directory);
        match self.entries.get(&key) {
            Some(entry) if entry.state == state => entry.summary.clone(),
            _ => {
                let summary = summarise(store, located);
                self.entries.insert(
                    key,
                    CachedSummary {
                        state,
                        summary: summary.clone(),
                    },
                );
                self.is_changed = true;
                summary
            }
        }
    }

    /// Removes all conversations but these, and writes the cache if it has changed.
    pub fn save(mut self, known: &[Located]) -> io::Result<()> {
        if self.entries.len() > known.len() {
            let keys: std::collections::HashSet<_> = known
                .iter()
                .map(|located| key(&located.directory, located.id))
                .collect();
            self.entries.retain(|key, _| keys.contains(key));
            self.is_changed = true;
        }
        if !self.is_changed {
            return Ok(());
        }
        files::replace_cache(&self.path, &serde_json::to_vec(&self.entries)?)
    }
}

/// Returns a key that differs between stores and contains no path.
fn key(directory: &Path, id: ConversationId) -> String {
    let place = jp_resource::Checksum::compute(directory.as_os_str().as_encoded_bytes());
    format!("{id}-{}", place.short())
}

fn state(directory: &Path) -> FileTimes {
    let [events, metadata] =
        [EVENTS, METADATA].map(|name| fs::symlink_metadata(directory.join(name)).ok());
    [
        file_length(events.as_ref()),
        modified_ns(events.as_ref()),
        file_length(metadata.as_ref()),
        modified_ns(metadata.as_ref()),
        SUMMARY_VERSION,
    ]
}

/// Returns a file's length; for a missing file, a length that no file has.
fn file_length(file: Option<&FileMetadata>) -> u64 {
    file.map_or(u64::MAX, FileMetadata::len)
}

/// Returns a file's modification time in nanoseconds since 1970; 0 if it is unknown.
fn modified_ns(file: Option<&FileMetadata>) -> u64 {
    let modified = file.and_then(|file| file.modified().ok());
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

fn summarise(store: &Store, located: &Located) -> Summary {
    let metadata = store.tree().read(&located.directory.join(METADATA)).ok();
    let metadata = metadata
        .and_then(|bytes| Metadata::from_json(&bytes).ok())
        .unwrap_or_default();
    Summary {
        title: metadata.title().map(str::to_owned),
        turns: count_turns(store, located),
        last_activated_at: metadata.last_activated_at().map(|time| time.to_string()),
    }
}

fn count_turns(store: &Store, located: &Located) -> Option<usize> {
    conversation::read_either(&located.directory, |path| {
        concurrent_read::read_events(store.tree(), path, Writers::Unknown, |_, parsed| {
            Ok(count_requests(parsed))
        })
    })
    .ok()
}

/// Each turn begins with one request.
fn count_requests(parsed: &Parsed<'_>) -> usize {
    let events = parsed.events.iter();
    events.filter(|event| legacy::is_request(event)).count()
}
