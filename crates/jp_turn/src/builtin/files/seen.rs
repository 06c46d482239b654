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

/// In the `_meta` of a block: which file it is of, and the checksum of all of the file's bytes.
pub const FILE_MARK: &str = "computer.jp/file";

/// The checksums of files as a model last saw them, by their paths from the root.
#[derive(Debug, Default)]
pub(in crate::builtin) struct Seen(HashMap<String, Checksum>);

impl Seen {
    /// Reads what a conversation says: attached files, and the files of jp's own tools; the newest of each counts.
    ///
    /// What other tools print does not: nobody knows whether it is all of a file, and as it is.
    pub(super) fn of(stream: &Stream, roots: &[PathBuf]) -> Self {
        let mut seen = Self::default();
        let mut calls = HashSet::new();
        for event in stream.events() {
            match &event.kind {
                EventKind::ChatRequest(request) => {
                    seen.0.extend(request.resources.iter().filter_map(|snapshot| attached(snapshot, roots)));
                }
                // Some providers count calls from 1 in each turn.
                EventKind::ToolCallRequest(call) => match Builtin::named(&call.name) {
                    Some(_) => _ = calls.insert(&call.id),
                    None => _ = calls.remove(&call.id),
                },
                EventKind::ToolCallResponse(response) if calls.contains(&response.id) => {
                    seen.0.extend(response.content.iter().filter_map(marked));
                }
                _ => {}
            }
        }
        seen
    }

    /// Takes in that a model saw a file.
    pub(in crate::builtin) fn saw(&mut self, path: String, checksum: Checksum) {
        self.0.insert(path, checksum);
    }

    /// Takes in that a file is gone; returns its checksum if the model ever saw it.
    pub(in crate::builtin) fn forget(&mut self, path: &str) -> Option<Checksum> {
        self.0.remove(path)
    }

    /// Refuses a file that is not as the model last saw it; one that it never saw is as good as any.
    pub(in crate::builtin) fn check(&self, path: &str, checksum: Checksum) -> Result<(), String> {
        match self.0.get(path) {
            Some(last) if *last != checksum => {
                Err(format!("{path} has changed since you last saw it; read it again."))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the `_meta` of a block that is of a file.
pub(in crate::builtin) fn mark(path: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(FILE_MARK.to_owned(), json!({"path": path, "checksum": checksum}))])
}

fn attached(snapshot: &Snapshot, roots: &[PathBuf]) -> Option<(String, Checksum)> {
    Some((path_of(&snapshot.uri, roots)?, snapshot.blob_ref().checksum))
}

/// Returns the path from the root of the file that a URI without a fragment names.
pub(super) fn path_of(uri: &str, roots: &[PathBuf]) -> Option<String> {
    let is_whole_file = uri.starts_with("file:") && uri::split_fragment(uri).1.is_none();
    let names = is_whole_file.then(|| named::names(uri, roots).ok()).flatten()?;
    Some(spot::shown(&names.iter().collect::<PathBuf>()))
}

fn marked(block: &StoredBlock) -> Option<(String, Checksum)> {
    let (StoredBlock::Text { meta, .. } | StoredBlock::Resource { meta, .. }) = block else { return None };
    let file = meta.as_ref()?.get(FILE_MARK)?;
    let checksum = file.get("checksum")?.as_str()?.parse().ok()?;
    Some((file.get("path")?.as_str()?.to_owned(), checksum))
}
