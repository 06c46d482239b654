//! The versions that a conversation holds of its resources, and where each is from.

use std::collections::{BTreeMap, HashMap};

use crate::cmd::resource::{Attached, describe};
use jp_conversation::{EventKind, Stream, attachments::deliveries};
use jp_resource::Snapshot;
use jp_tool::StoredBlock;
use jp_turn::Builtin;
use serde_json::{Value, json};

/// A version of a resource.
pub(super) struct ResourceVersion<'a> {
    /// The turn that it came with; 0 where no message has taken it yet.
    pub(super) turn: usize,
    pub(super) snapshot: &'a Snapshot,
    /// Which version of its URI it is; 1 is the oldest.
    pub(super) number: usize,
    origin: Origin<'a>,
}

/// The origin of a version.
enum Origin<'a> {
    /// It was attached, by this declaration where that is recorded.
    Attachment {
        declaration: Option<&'a str>,
        server: Option<&'a str>,
    },
    /// The model refreshed it with this call.
    Refresh { call: &'a str },
}

/// Returns the versions of every resource, oldest first: what was attached, and what `refresh_resource` read of that.
pub(super) fn versions(stream: &Stream) -> Vec<ResourceVersion<'_>> {
    let mut refreshed = refreshed(stream);
    let mut versions = Vec::new();
    for (turn, resources, delivered) in deliveries(stream) {
        for (index, snapshot) in resources.iter().enumerate() {
            let gave = delivered
                .iter()
                .find(|delivered| delivered.resources.contains(&index));
            let declaration = gave.map(|delivered| delivered.declaration.as_str());
            let server = gave.and_then(|delivered| delivered.declaration.server());
            versions.push((
                turn,
                snapshot,
                Origin::Attachment {
                    declaration,
                    server,
                },
            ));
        }
        let refreshed = refreshed.remove(&turn).unwrap_or_default().into_iter();
        versions
            .extend(refreshed.map(|(call, snapshot)| (turn, snapshot, Origin::Refresh { call })));
    }
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut numbered = Vec::with_capacity(versions.len());
    for (turn, snapshot, origin) in versions {
        let number = numbers.entry(&snapshot.uri).or_default();
        *number += 1;
        numbered.push(ResourceVersion {
            turn,
            snapshot,
            number: *number,
            origin,
        });
    }
    numbered
}

/// Returns what `refresh_resource` read in each turn, with the ids of its calls.
fn refreshed(stream: &Stream) -> BTreeMap<usize, Vec<(&str, &Snapshot)>> {
    let mut refreshed: BTreeMap<usize, Vec<(&str, &Snapshot)>> = BTreeMap::new();
    let mut calls: HashMap<&str, &str> = HashMap::new();
    let mut turn = 0;
    for event in stream.events() {
        match &event.kind {
            EventKind::ChatRequest(_) => turn += 1,
            EventKind::ToolCallRequest(call) => _ = calls.insert(&call.id, &call.name),
            EventKind::ToolCallResponse(response) => {
                let tool = calls.get(response.id.as_str());
                if tool.is_some_and(|tool| *tool == Builtin::RefreshResource.name()) {
                    let resources = response.content.iter().filter_map(|block| match block {
                        StoredBlock::Resource { resource, .. } => {
                            Some((response.id.as_str(), resource))
                        }
                        _ => None,
                    });
                    refreshed.entry(turn).or_default().extend(resources);
                }
            }
            _ => {}
        }
    }
    refreshed
}

impl ResourceVersion<'_> {
    /// Returns its JSON for `--format json`.
    pub(super) fn to_json(&self) -> Value {
        let mut row = describe(&Attached {
            turn: self.turn,
            snapshot: self.snapshot,
        });
        row["version"] = self.number.into();
        row["origin"] = self.origin.to_json();
        row
    }
}

impl Origin<'_> {
    fn to_json(&self) -> Value {
        let (kind, fields) = match self {
            Self::Attachment {
                declaration,
                server,
            } => (
                "attachment",
                [("declaration", *declaration), ("server", *server)],
            ),
            Self::Refresh { call } => (
                "refresh",
                [
                    ("tool", Some(Builtin::RefreshResource.name())),
                    ("call", Some(*call)),
                ],
            ),
        };
        let mut origin = json!({"kind": kind});
        for (name, value) in fields {
            if let Some(value) = value {
                origin[name] = value.into();
            }
        }
        origin
    }
}
