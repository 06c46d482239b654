//! What a model last saw of files.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
};

use jp_conversation::{EventKind, Stream};
use jp_resource::{Checksum, Payload, ResourceContent, Snapshot, uri};
use jp_tool::StoredBlock;
use serde_json::{Map, Value, json};

use super::{named, spot};
use crate::builtin::kind::Builtin;

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

/// How much of a file's content a conversation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// Some of it; all, if it held all of this content before.
    Part,
    /// What was changed; all, if it held all of the content that was there before.
    Change,
}

/// A file as a model last saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenFile {
    /// Of all of the file's bytes.
    pub(crate) checksum: Checksum,
    /// Whether the conversation holds all of them.
    is_whole: bool,
}

/// The files as a model last saw them, by their paths from the root.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    files: HashMap<String, SeenFile>,
    /// What a conversation says, the newest first, not taken in yet: most turns never ask.
    told: Vec<Sight>,
}

/// What a conversation says of a file.
#[derive(Debug)]
enum Sight {
    /// A resource was attached.
    Attached { uri: String, checksum: Checksum },
    /// A tool of jp's own left a file so.
    Left {
        file: FileState,
        extent: Extent,
        from: Option<String>,
    },
}

impl Seen {
    /// Reads what a conversation says: attached files, and the files of jp's own tools; the newest of each counts.
    ///
    /// What other tools print does not: nobody knows whether it is all of a file, and as it is.
    pub(super) fn of(stream: &Stream) -> Self {
        let mut calls = HashMap::new();
        let mut said = Vec::new();
        for event in stream.events() {
            match &event.kind {
                // Some providers count calls from 1 in each turn.
                EventKind::ToolCallRequest(call) => match Builtin::named(&call.name) {
                    Some(builtin) => _ = calls.insert(&call.id, builtin),
                    None => _ = calls.remove(&call.id),
                },
                EventKind::ToolCallResponse(response) => {
                    said.extend(
                        calls
                            .get(&response.id)
                            .map(|builtin| (&event.kind, Some(*builtin))),
                    );
                }
                kind => said.push((kind, None)),
            }
        }
        let mut told: Vec<Sight> = Vec::new();
        let mut attached = HashSet::new();
        for said in said.into_iter().rev() {
            match said {
                (EventKind::ChatRequest(request), _) => {
                    let newest = request
                        .resources
                        .iter()
                        .rev()
                        .filter(|snapshot| attached.insert(&snapshot.uri));
                    told.extend(newest.filter_map(Sight::of_attached));
                }
                (EventKind::ToolCallResponse(response), Some(builtin)) => {
                    let blocks = response.content.iter().rev();
                    told.extend(blocks.filter_map(|block| Sight::of_block(block, builtin)));
                }
                _ => {}
            }
        }
        Self {
            files: HashMap::new(),
            told,
        }
    }

    /// Takes in what the conversation said.
    pub(super) fn take_in_told(&mut self, roots: &[PathBuf]) {
        for sight in std::mem::take(&mut self.told).into_iter().rev() {
            match sight {
                Sight::Attached { uri, checksum } => {
                    if let Some(path) = path_of(&uri, roots) {
                        self.saw(path, checksum, Extent::Whole);
                    }
                }
                Sight::Left {
                    file: FileState { path, checksum },
                    extent,
                    from,
                } => {
                    let moved = from.and_then(|from| self.forget(&from));
                    match (checksum, moved) {
                        (Some(checksum), Some(moved)) => {
                            self.moved(path, SeenFile { checksum, ..moved })
                        }
                        (Some(checksum), None) => self.saw(path, checksum, extent),
                        (None, _) => _ = self.forget(&path),
                    }
                }
            }
        }
    }

    /// Records that a model saw a file.
    pub(crate) fn saw(&mut self, path: String, checksum: Checksum, extent: Extent) {
        let before = self.files.get(&path).filter(|before| before.is_whole);
        let is_whole = match extent {
            Extent::Whole => true,
            Extent::Part => before.is_some_and(|before| before.checksum == checksum),
            Extent::Change => before.is_some(),
        };
        self.files.insert(path, SeenFile { checksum, is_whole });
    }

    /// Records that a file is at a path now.
    pub(crate) fn moved(&mut self, to: String, file: SeenFile) {
        self.files.insert(to, file);
    }

    /// Records that a file is gone; returns its last state that the model saw, if any.
    pub(crate) fn forget(&mut self, path: &str) -> Option<SeenFile> {
        self.files.remove(path)
    }

    /// Returns whether the conversation holds all of a file's content.
    pub(crate) fn holds_all_of(&self, path: &str, checksum: Checksum) -> bool {
        self.files
            .get(path)
            .is_some_and(|seen| seen.is_whole && seen.checksum == checksum)
    }

    /// Refuses a file that is not as the model last saw it; one that it never saw is as good as any.
    pub(crate) fn check(&self, path: &str, checksum: Checksum) -> Result<(), String> {
        match self.files.get(path) {
            Some(last) if last.checksum != checksum => Err(format!(
                "{path} has changed since you last saw it; read it again."
            )),
            _ => Ok(()),
        }
    }
}

impl Sight {
    fn of_attached(snapshot: &Snapshot) -> Option<Self> {
        let (uri, checksum) = (&snapshot.uri, snapshot.blob_ref().checksum);
        uri.starts_with("file:").then(|| Self::Attached {
            uri: uri.clone(),
            checksum,
        })
    }

    /// Returns the file state that a block of a builtin tool carries.
    fn of_block(block: &StoredBlock, builtin: Builtin) -> Option<Self> {
        let Marked { file, from } = marked(block)?;
        let extent = match (builtin, block) {
            (Builtin::CreateFile, _) => Extent::Whole,
            (Builtin::EditFile, _) => Extent::Change,
            (_, StoredBlock::Resource { resource, .. })
                if file.checksum == Some(checksum_of(&resource.content)) =>
            {
                Extent::Whole
            }
            _ => Extent::Part,
        };
        Some(Self::Left { file, extent, from })
    }
}

fn checksum_of(content: &Payload<ResourceContent>) -> Checksum {
    match content {
        Payload::Inline(content) => Checksum::compute(content.as_bytes()),
        Payload::Stored(blob) => blob.checksum,
    }
}

/// Returns the `_meta` of a block that is of a file.
pub(crate) fn mark(path: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(
        FILE_MARK.to_owned(),
        json!({"path": path, "checksum": checksum}),
    )])
}

/// Returns the `_meta` of a block that tells that a file is no longer there.
pub(crate) fn gone_mark(path: &str) -> Map<String, Value> {
    Map::from_iter([(
        FILE_MARK.to_owned(),
        json!({"path": path, "checksum": null}),
    )])
}

/// Returns the `_meta` of a block that tells that a file is at another path now.
pub(crate) fn moved_mark(from: &str, to: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(
        FILE_MARK.to_owned(),
        json!({"path": to, "checksum": checksum, "from": from}),
    )])
}

/// Returns the path from the root of the file that a URI without a fragment names.
pub(super) fn path_of(uri: &str, roots: &[PathBuf]) -> Option<String> {
    let is_whole_file = uri.starts_with("file:") && uri::split_fragment(uri).1.is_none();
    let names = is_whole_file
        .then(|| named::names(uri, roots).ok())
        .flatten()?;
    Some(spot::shown(&names.iter().collect::<PathBuf>()))
}

/// Returns what a block of jp's own tools says of files; what other tools mark so is nothing to go by.
pub fn marked_files(block: &StoredBlock) -> impl Iterator<Item = FileState> {
    let marked = marked(block);
    marked.into_iter().flat_map(|Marked { file, from }| {
        let moved = from.map(|path| FileState {
            path,
            checksum: None,
        });
        moved.into_iter().chain([file])
    })
}

/// The file state that a block carries.
struct Marked {
    file: FileState,
    /// Where it was before, if it was moved.
    from: Option<String>,
}

fn marked(block: &StoredBlock) -> Option<Marked> {
    let (StoredBlock::Text { meta, .. } | StoredBlock::Resource { meta, .. }) = block else {
        return None;
    };
    let file = meta.as_ref()?.get(FILE_MARK)?;
    let path = |name: &str| file.get(name)?.as_str().map(str::to_owned);
    let checksum = match file.get("checksum")? {
        Value::Null => None,
        written => Some(written.as_str()?.parse().ok()?),
    };
    Some(Marked {
        file: FileState {
            path: path("path")?,
            checksum,
        },
        from: path("from"),
    })
}
