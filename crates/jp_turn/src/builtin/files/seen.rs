//! What a model last saw of files.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
};

use jp_conversation::{EventKind, Stream};
use jp_resource::{Checksum, Snapshot, uri};
use jp_tool::StoredBlock;
use serde_json::{Map, Value, json};

use super::{named, spot};
use crate::Builtin;

/// In the `_meta` of a block: `{path, checksum}`, the file that it is of and the checksum of all of the file's bytes.
///
/// A `checksum` of null says that the tool left no file there; `from` is where the tool moved the file from.
const FILE_MARK: &str = "computer.jp/file";

/// A file of the workspace, as a result of jp's own tools leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The path from the root.
    pub path: String,
    /// The checksum of all of its bytes; nothing where the tool left no file.
    pub checksum: Option<Checksum>,
}

/// The checksums of files as a model last saw them, by their paths from the root.
#[derive(Debug, Default)]
pub(in crate::builtin) struct Seen {
    checksums: HashMap<String, Checksum>,
    /// What a conversation says, the newest first, not taken in yet: most turns never ask.
    told: Vec<Sight>,
}

/// What a conversation says of a file.
#[derive(Debug)]
enum Sight {
    /// A resource was attached.
    Attached { uri: String, checksum: Checksum },
    /// A tool of jp's own left a file so.
    Left(FileState),
}

impl Seen {
    /// Reads what a conversation says: attached files, and the files of jp's own tools; the newest of each counts.
    ///
    /// What other tools print does not: nobody knows whether it is all of a file, and as it is.
    pub(super) fn of(stream: &Stream) -> Self {
        let mut calls = HashSet::new();
        let mut said = Vec::new();
        for event in stream.events() {
            match &event.kind {
                // Some providers count calls from 1 in each turn.
                EventKind::ToolCallRequest(call) => match Builtin::named(&call.name) {
                    Some(_) => _ = calls.insert(&call.id),
                    None => _ = calls.remove(&call.id),
                },
                EventKind::ToolCallResponse(response) if !calls.contains(&response.id) => {}
                kind => said.push(kind),
            }
        }
        let mut told: Vec<Sight> = Vec::new();
        let mut attached = HashSet::new();
        for kind in said.into_iter().rev() {
            match kind {
                EventKind::ChatRequest(request) => {
                    let newest =
                        request.resources.iter().rev().filter(|snapshot| attached.insert(&snapshot.uri));
                    told.extend(newest.filter_map(Sight::of_attached));
                }
                EventKind::ToolCallResponse(response) => {
                    let files: Vec<_> = response.content.iter().flat_map(marked_files).collect();
                    told.extend(files.into_iter().rev().map(Sight::Left));
                }
                _ => {}
            }
        }
        Self { checksums: HashMap::new(), told }
    }

    /// Takes in what the conversation said.
    pub(super) fn take_in_told(&mut self, roots: &[PathBuf]) {
        for sight in std::mem::take(&mut self.told).into_iter().rev() {
            match sight {
                Sight::Attached { uri, checksum } => {
                    self.checksums.extend(path_of(&uri, roots).map(|path| (path, checksum)));
                }
                Sight::Left(file) => self.take_in(file),
            }
        }
    }

    fn take_in(&mut self, FileState { path, checksum }: FileState) {
        _ = match checksum {
            Some(checksum) => self.checksums.insert(path, checksum),
            None => self.forget(&path),
        };
    }

    /// Takes in that a model saw a file.
    pub(in crate::builtin) fn saw(&mut self, path: String, checksum: Checksum) {
        self.checksums.insert(path, checksum);
    }

    /// Takes in that a file is gone; returns its checksum if the model ever saw it.
    pub(in crate::builtin) fn forget(&mut self, path: &str) -> Option<Checksum> {
        self.checksums.remove(path)
    }

    /// Refuses a file that is not as the model last saw it; one that it never saw is as good as any.
    pub(in crate::builtin) fn check(&self, path: &str, checksum: Checksum) -> Result<(), String> {
        match self.checksums.get(path) {
            Some(last) if *last != checksum => {
                Err(format!("{path} has changed since you last saw it; read it again."))
            }
            _ => Ok(()),
        }
    }
}

impl Sight {
    fn of_attached(snapshot: &Snapshot) -> Option<Self> {
        let (uri, checksum) = (&snapshot.uri, snapshot.blob_ref().checksum);
        uri.starts_with("file:").then(|| Self::Attached { uri: uri.clone(), checksum })
    }
}

/// Returns the `_meta` of a block that is of a file.
pub(in crate::builtin) fn mark(path: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(FILE_MARK.to_owned(), json!({"path": path, "checksum": checksum}))])
}

/// Returns the `_meta` of a block that tells that a file is no longer there.
pub(in crate::builtin) fn gone_mark(path: &str) -> Map<String, Value> {
    Map::from_iter([(FILE_MARK.to_owned(), json!({"path": path, "checksum": null}))])
}

/// Returns the `_meta` of a block that tells that a file is at another path now.
pub(in crate::builtin) fn moved_mark(from: &str, to: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(FILE_MARK.to_owned(), json!({"path": to, "checksum": checksum, "from": from}))])
}

/// Returns the path from the root of the file that a URI without a fragment names.
pub(super) fn path_of(uri: &str, roots: &[PathBuf]) -> Option<String> {
    let is_whole_file = uri.starts_with("file:") && uri::split_fragment(uri).1.is_none();
    let names = is_whole_file.then(|| named::names(uri, roots).ok()).flatten()?;
    Some(spot::shown(&names.iter().collect::<PathBuf>()))
}

/// Returns what a block of jp's own tools says of files; what other tools mark so is nothing to go by.
pub fn marked_files(block: &StoredBlock) -> impl Iterator<Item = FileState> {
    let (moved, file) = states(block).unwrap_or_default();
    moved.into_iter().chain(file)
}

/// Returns where a file was before, if it was moved, and the file as it is.
fn states(block: &StoredBlock) -> Option<(Option<FileState>, Option<FileState>)> {
    let (StoredBlock::Text { meta, .. } | StoredBlock::Resource { meta, .. }) = block else { return None };
    let file = meta.as_ref()?.get(FILE_MARK)?;
    let path = |name: &str| file.get(name)?.as_str().map(str::to_owned);
    let checksum = match file.get("checksum")? {
        Value::Null => None,
        written => Some(written.as_str()?.parse().ok()?),
    };
    let moved = path("from").map(|path| FileState { path, checksum: None });
    Some((moved, Some(FileState { path: path("path")?, checksum })))
}
