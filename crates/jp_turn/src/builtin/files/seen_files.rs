//! The files as a model saw them last.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
};

use jp_conversation::{ChatRequest, EventKind, Stream, ToolCallResponse};
use jp_resource::{Checksum, Payload, ResourceContent, Snapshot, uri};
use jp_tool::StoredBlock;
use serde_json::{Map, Value, json};

use super::{path_names, spot};
use crate::builtin::kind::Builtin;

/// The key in the `_meta` of a block: `{path, checksum}`, the block's file and the checksum of the
/// whole file.
///
/// A `checksum` of null means that the file is gone. `from` is the old path of a moved file.
const FILE_MARK: &str = "computer.jp/file";

/// The state of a workspace's file after a call of a builtin tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The path from the root.
    pub path: String,
    /// The checksum of all its bytes; `None` if the file is gone.
    pub checksum: Option<Checksum>,
}

/// The extent of a file's content that a conversation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// Some of it. It is all if the conversation held all of this content before.
    Part,
    /// The changed part. It is all if the conversation held all of the content before the change.
    Change,
}

/// A file as a model last saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenFile {
    /// The checksum of all its bytes.
    pub(crate) checksum: Checksum,
    /// True if the conversation holds all of them.
    is_whole: bool,
}

/// The files as a model last saw them, by their paths from the root.
#[derive(Debug, Default)]
pub(crate) struct SeenFiles {
    files: HashMap<String, SeenFile>,
    /// The sights of a conversation that are not applied yet, newest first. Most turns never need
    /// them.
    sights: Vec<Sight>,
}

/// A mention of a file in a conversation.
#[derive(Debug)]
enum Sight {
    /// A resource was attached.
    Attached { uri: String, checksum: Checksum },
    /// A builtin tool left a file in this state.
    Left {
        file: FileState,
        extent: Extent,
        from: Option<String>,
    },
}

impl SeenFiles {
    /// Collects the attached files and the files of builtin tools in a conversation. The newest
    /// sight of each counts.
    ///
    /// Output of other tools does not count, because it may be only a part of a file or a changed
    /// form.
    pub(super) fn from_stream(stream: &Stream) -> Self {
        let mut sights: Vec<Sight> = Vec::new();
        let mut attached = HashSet::new();
        for mention in find_mentions(stream).into_iter().rev() {
            match mention {
                Mention::Request(request) => {
                    let newest = request
                        .resources
                        .iter()
                        .rev()
                        .filter(|snapshot| attached.insert(&snapshot.uri));
                    sights.extend(newest.filter_map(Sight::from_snapshot));
                }
                Mention::Result(response, builtin) => {
                    let blocks = response.content.iter().rev();
                    sights.extend(blocks.filter_map(|block| Sight::from_block(block, builtin)));
                }
            }
        }
        Self {
            files: HashMap::new(),
            sights,
        }
    }

    /// Applies the collected sights.
    pub(super) fn apply_sights(&mut self, roots: &[PathBuf]) {
        for sight in std::mem::take(&mut self.sights).into_iter().rev() {
            match sight {
                Sight::Attached { uri, checksum } => {
                    if let Some(path) = path_from_uri(&uri, roots) {
                        self.record(path, checksum, Extent::Whole);
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
                            self.record_move(path, SeenFile { checksum, ..moved })
                        }
                        (Some(checksum), None) => self.record(path, checksum, extent),
                        (None, _) => _ = self.forget(&path),
                    }
                }
            }
        }
    }

    /// Records that a model saw a file.
    pub(crate) fn record(&mut self, path: String, checksum: Checksum, extent: Extent) {
        let before = self.files.get(&path).filter(|before| before.is_whole);
        let is_whole = match extent {
            Extent::Whole => true,
            Extent::Part => before.is_some_and(|before| before.checksum == checksum),
            Extent::Change => before.is_some(),
        };
        self.files.insert(path, SeenFile { checksum, is_whole });
    }

    /// Records that a file is at a path now.
    pub(crate) fn record_move(&mut self, to: String, file: SeenFile) {
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

    /// Refuses a file that changed since the model saw it. A file that it never saw is accepted.
    pub(crate) fn check(&self, path: &str, checksum: Checksum) -> Result<(), String> {
        match self.files.get(path) {
            Some(last) if last.checksum != checksum => Err(format!(
                "{path} has changed since you last saw it. Read it again."
            )),
            _ => Ok(()),
        }
    }
}

/// An event that may mention files.
enum Mention<'a> {
    Request(&'a ChatRequest),
    /// The result of a builtin tool.
    Result(&'a ToolCallResponse, Builtin),
}

fn find_mentions(stream: &Stream) -> Vec<Mention<'_>> {
    let mut calls = HashMap::new();
    let mut mentions = Vec::new();
    for event in stream.events() {
        match &event.kind {
            EventKind::ChatRequest(request) => mentions.push(Mention::Request(request)),
            // Some providers count calls from 1 in each turn, so a later call may reuse the id.
            EventKind::ToolCallRequest(call) => match Builtin::from_name(&call.name) {
                Some(builtin) => _ = calls.insert(&call.id, builtin),
                None => _ = calls.remove(&call.id),
            },
            EventKind::ToolCallResponse(response) => {
                let builtin = calls.get(&response.id);
                mentions.extend(builtin.map(|builtin| Mention::Result(response, *builtin)));
            }
            _ => {}
        }
    }
    mentions
}

impl Sight {
    fn from_snapshot(snapshot: &Snapshot) -> Option<Self> {
        let (uri, checksum) = (&snapshot.uri, snapshot.blob_ref().checksum);
        uri.starts_with("file:").then(|| Self::Attached {
            uri: uri.clone(),
            checksum,
        })
    }

    /// Returns the file state that a block of a builtin tool carries.
    fn from_block(block: &StoredBlock, builtin: Builtin) -> Option<Self> {
        let Marked { file, from } = read_mark(block)?;
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

/// Returns the `_meta` of a block about a file.
pub(crate) fn mark(path: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(
        FILE_MARK.to_owned(),
        json!({"path": path, "checksum": checksum}),
    )])
}

/// Returns the `_meta` of a block about a file that is gone.
pub(crate) fn gone_mark(path: &str) -> Map<String, Value> {
    Map::from_iter([(
        FILE_MARK.to_owned(),
        json!({"path": path, "checksum": null}),
    )])
}

/// Returns the `_meta` of a block about a moved file.
pub(crate) fn moved_mark(from: &str, to: &str, checksum: Checksum) -> Map<String, Value> {
    Map::from_iter([(
        FILE_MARK.to_owned(),
        json!({"path": to, "checksum": checksum, "from": from}),
    )])
}

/// Returns the path from the root of the file that a URI without a fragment names.
pub(super) fn path_from_uri(uri: &str, roots: &[PathBuf]) -> Option<String> {
    let is_whole_file = uri.starts_with("file:") && uri::split_fragment(uri).1.is_none();
    let names = is_whole_file
        .then(|| path_names::parse(uri, roots).ok())
        .flatten()?;
    Some(spot::display_path(&names.iter().collect::<PathBuf>()))
}

/// Returns the file states in a block of a builtin tool. Don't trust marks of other tools.
pub fn marked_files(block: &StoredBlock) -> impl Iterator<Item = FileState> {
    let marked = read_mark(block);
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
    /// The old path of a moved file.
    from: Option<String>,
}

fn read_mark(block: &StoredBlock) -> Option<Marked> {
    let (StoredBlock::Text { meta, .. } | StoredBlock::Resource { meta, .. }) = block else {
        return None;
    };
    let file = meta.as_ref()?.get(FILE_MARK)?;
    let checksum = match file.get("checksum")? {
        Value::Null => None,
        written => Some(written.as_str()?.parse().ok()?),
    };
    Some(Marked {
        file: FileState {
            path: file.get("path")?.as_str()?.to_owned(),
            checksum,
        },
        from: file.get("from").and_then(Value::as_str).map(str::to_owned),
    })
}
