//! What a conversation holds of watched resources, and what the model knows of their sources.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use crate::attachments::stale::Change;
use jiff::Timestamp;
use jp_attachment::mcp_ttl;
use jp_conversation::{ChatRequest, EventKind, Notification, Stream};
use jp_resource::{
    BlobRef, Checksum, Snapshot,
    uri::{PathStyle, file_uri, split_fragment},
};
use jp_tool::StoredBlock;
use jp_turn::{Builtin, FileState, marked_files};

/// A URI, with the MCP server that it is of: two servers, or a server and a file, may use one.
pub(crate) type Key<'a> = (Option<&'a str>, &'a str);

/// What the conversation holds of a resource, and what the model knows.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    /// The newest version that it holds.
    checksum: Checksum,
    pub(crate) size: u64,
    name: Option<&'a str>,
    /// The turn that it came with.
    turn: usize,
    /// What the model knows its source to have; nothing where it is gone.
    known: Option<Checksum>,
    /// Until when the server that gave it takes it for current.
    current_until: Option<Timestamp>,
}

impl<'a> Held<'a> {
    fn of(snapshot: &'a Snapshot, turn: usize, read: Timestamp) -> Self {
        let BlobRef { checksum, size, .. } = snapshot.blob_ref();
        let current_until = mcp_ttl(snapshot).and_then(|ttl| read.checked_add(ttl).ok());
        Self {
            checksum,
            size,
            name: snapshot.name.as_deref(),
            turn,
            known: Some(checksum),
            current_until,
        }
    }

    /// Returns whether the server that gave it takes it for current.
    pub(crate) fn is_current(&self, now: Timestamp) -> bool {
        self.current_until.is_some_and(|until| now < until)
    }

    pub(crate) fn label<'b>(&self, uri: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.name.unwrap_or(uri)
    }

    /// Returns what to tell the model, if it does not know it.
    pub(crate) fn change(&self, uri: &str, now: Option<Checksum>) -> Option<Change> {
        let name = self.name.map(str::to_owned);
        let notification = || Notification {
            uri: uri.to_owned(),
            checksum: self.checksum,
            name,
            now,
        };
        (now != self.known).then(|| Change {
            notification: notification(),
            turn: self.turn,
        })
    }
}

/// Finds what the conversation holds of resources: what was attached, and what jp's own tools returned whole.
///
/// What other tools return is of a file, but nobody knows whether it is all of it, and as it is. A file that the model
/// wrote, moved or deleted is known to it, though it was not shown all of it.
pub(crate) fn held<'a>(
    stream: &'a Stream,
    uris: impl Iterator<Item = &'a str>,
    root: &Path,
) -> HashMap<Key<'a>, Held<'a>> {
    let uris: HashSet<&str> = uris.collect();
    if uris.is_empty() {
        return HashMap::new();
    }
    let mut held: HashMap<Key<'_>, Held<'_>> = HashMap::new();
    // When snapshots were read that a message took later.
    let mut read = HashMap::new();
    let mut calls = HashMap::new();
    let mut turn = 0;
    for event in stream.events() {
        match &event.kind {
            EventKind::ConfigDelta(delta) => {
                let taken = delta
                    .resources
                    .iter()
                    .map(|one| (one.uri.as_str(), one.blob_ref().checksum));
                read.extend(taken.map(|taken| (taken, event.timestamp)));
            }
            EventKind::ChatRequest(request) => {
                turn += 1;
                let resources = request.resources.iter().enumerate();
                for (index, one) in resources.filter(|(_, one)| uris.contains(one.uri.as_str())) {
                    let taken = (one.uri.as_str(), one.blob_ref().checksum);
                    let read = read.remove(&taken).unwrap_or(event.timestamp);
                    held.insert(
                        (server_of(request, index), one.uri.as_str()),
                        Held::of(one, turn, read),
                    );
                }
            }
            EventKind::ToolCallRequest(call) => {
                _ = calls.insert(call.id.as_str(), call.name.as_str());
            }
            EventKind::ToolCallResponse(response) => {
                if let Some(tool) = calls
                    .get(response.id.as_str())
                    .copied()
                    .and_then(Builtin::named)
                {
                    let taken = Taken {
                        turn,
                        read: event.timestamp,
                    };
                    take_in(&mut held, tool, &response.content, taken, root);
                }
            }
            EventKind::Notification(notification) => {
                let its = held.iter_mut().filter(|((_, uri), held)| {
                    *uri == notification.uri && held.checksum == notification.checksum
                });
                its.for_each(|(_, held)| held.known = notification.now);
            }
            _ => {}
        }
    }
    held
}

/// Returns the MCP server that a resource of a request is of.
fn server_of(request: &ChatRequest, index: usize) -> Option<&str> {
    let gave = request
        .delivered
        .iter()
        .find(|delivered| delivered.resources.contains(&index))?;
    gave.declaration.server()
}

/// When something was read.
#[derive(Clone, Copy)]
struct Taken {
    turn: usize,
    read: Timestamp,
}

fn take_in<'a>(
    held: &mut HashMap<Key<'a>, Held<'a>>,
    tool: Builtin,
    content: &'a [StoredBlock],
    taken: Taken,
    root: &Path,
) {
    for block in content {
        take_in_shown(held, block, taken);
        if !tool.is_reader() {
            marked_files(block).for_each(|file| take_in_written(held, file, root));
        }
    }
}

/// Takes in what the model was shown whole.
fn take_in_shown<'a>(held: &mut HashMap<Key<'a>, Held<'a>>, block: &'a StoredBlock, taken: Taken) {
    let StoredBlock::Resource { resource, .. } = block else {
        return;
    };
    let (uri, None) = split_fragment(&resource.uri) else {
        return;
    };
    let mut its: Vec<_> = held
        .iter_mut()
        .filter(|((_, known), _)| *known == uri)
        .map(|(_, held)| held)
        .collect();
    // Of two servers that use the URI, nobody knows which it is.
    if let [held] = &mut its[..] {
        **held = Held {
            name: held.name,
            ..Held::of(resource, taken.turn, taken.read)
        };
    }
}

/// Takes in what the model did to a file of the workspace.
fn take_in_written(held: &mut HashMap<Key<'_>, Held<'_>>, file: FileState, root: &Path) {
    let path = root.join(file.path);
    let Some(written) = path
        .to_str()
        .and_then(|path| file_uri(path, PathStyle::native()).ok())
    else {
        return;
    };
    let its = held
        .iter_mut()
        .filter(|((server, uri), _)| server.is_none() && *uri == written);
    its.for_each(|(_, held)| held.known = file.checksum);
}
