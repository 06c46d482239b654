//! What a conversation holds of watched resources, and what the model knows of their sources.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use jp_conversation::{EventKind, Notification, Stream};
use jp_resource::{
    BlobRef, Checksum, Snapshot,
    uri::{PathStyle, file_uri, split_fragment},
};
use jp_tool::StoredBlock;
use jp_turn::{Builtin, FileState, marked_files};

use super::Change;

/// What the conversation holds of a resource, and what the model knows.
#[derive(Debug)]
pub(super) struct Held<'a> {
    /// The newest version that it holds.
    checksum: Checksum,
    pub(super) size: u64,
    name: Option<&'a str>,
    /// The turn that it came with.
    turn: usize,
    /// What the model knows its source to have; nothing where it is gone.
    known: Option<Checksum>,
}

impl<'a> Held<'a> {
    fn of(snapshot: &'a Snapshot, turn: usize) -> Self {
        let BlobRef { checksum, size, .. } = snapshot.blob_ref();
        Self { checksum, size, name: snapshot.name.as_deref(), turn, known: Some(checksum) }
    }

    pub(super) fn label<'b>(&self, uri: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.name.unwrap_or(uri)
    }

    /// Returns what to tell the model, if it does not know it.
    pub(super) fn change(&self, uri: &str, now: Option<Checksum>) -> Option<Change> {
        let name = self.name.map(str::to_owned);
        let notification = || Notification { uri: uri.to_owned(), checksum: self.checksum, name, now };
        (now != self.known).then(|| Change { notification: notification(), turn: self.turn })
    }
}

/// Finds what the conversation holds of resources: what was attached, and what jp's own tools returned whole.
///
/// What other tools return is of a file, but nobody knows whether it is all of it, and as it is. A file that the model
/// wrote, moved or deleted is known to it, though it was not shown all of it.
pub(super) fn held<'a>(
    stream: &'a Stream,
    uris: impl Iterator<Item = &'a str>,
    root: &Path,
) -> HashMap<&'a str, Held<'a>> {
    let uris: HashSet<&str> = uris.collect();
    if uris.is_empty() {
        return HashMap::new();
    }
    let mut held: HashMap<&str, Held<'_>> = HashMap::new();
    let mut calls = HashMap::new();
    let mut turn = 0;
    for event in stream.events() {
        match &event.kind {
            EventKind::ChatRequest(request) => {
                turn += 1;
                let resources = request.resources.iter().filter(|one| uris.contains(one.uri.as_str()));
                held.extend(resources.map(|one| (one.uri.as_str(), Held::of(one, turn))));
            }
            EventKind::ToolCallRequest(call) => {
                _ = calls.insert(call.id.as_str(), call.name.as_str());
            }
            EventKind::ToolCallResponse(response) => {
                if let Some(tool) = calls.get(response.id.as_str()).copied().and_then(Builtin::named) {
                    take_in(&mut held, tool, &response.content, turn, root);
                }
            }
            EventKind::Notification(notification) => {
                if let Some(held) = held.get_mut(notification.uri.as_str()) {
                    held.known = notification.now;
                }
            }
            _ => {}
        }
    }
    held
}

fn take_in<'a>(
    held: &mut HashMap<&'a str, Held<'a>>,
    tool: Builtin,
    content: &'a [StoredBlock],
    turn: usize,
    root: &Path,
) {
    for block in content {
        take_in_shown(held, block, turn);
        if !tool.is_reader() {
            marked_files(block).for_each(|file| take_in_written(held, file, root));
        }
    }
}

/// Takes in what the model was shown whole.
fn take_in_shown<'a>(held: &mut HashMap<&'a str, Held<'a>>, block: &'a StoredBlock, turn: usize) {
    let StoredBlock::Resource { resource, .. } = block else { return };
    if let (uri, None) = split_fragment(&resource.uri)
        && let Some(held) = held.get_mut(uri)
    {
        *held = Held { name: held.name, ..Held::of(resource, turn) };
    }
}

/// Takes in what the model did to a file of the workspace.
fn take_in_written(held: &mut HashMap<&str, Held<'_>>, file: FileState, root: &Path) {
    let path = root.join(file.path);
    let uri = path.to_str().and_then(|path| file_uri(path, PathStyle::native()).ok());
    if let Some(held) = uri.and_then(|uri| held.get_mut(uri.as_str())) {
        held.known = file.checksum;
    }
}
