//! The versions of a conversation's resources, with their origins.

use std::collections::{BTreeMap, HashMap};

use super::snapshots::TurnSnapshot;
use jp_conversation::{Declaration, EventKind, Stream, ToolCallResponse, attachments::deliveries};
use jp_resource::Snapshot;
use jp_session::size;
use jp_tool::StoredBlock;
use jp_turn::Builtin;
use serde_json::{Value, json};

/// A version of a resource.
pub(super) struct ResourceVersion<'a> {
    /// The turn that sent it; 0 if no message has sent it yet.
    pub(super) turn: usize,
    pub(super) snapshot: &'a Snapshot,
    /// The number among the versions of its URI; 1 is the oldest.
    pub(super) number: usize,
    origin: Origin<'a>,
}

/// The origin of a version.
enum Origin<'a> {
    /// An attachment. Conversations of an older jp don't record the declaration.
    Attachment {
        declaration: Option<&'a Declaration>,
    },
    /// A call of `refresh_resource`.
    Refresh { call: &'a str },
}

/// Lists the versions of all resources, oldest first: the attached snapshots and those of `refresh_resource`.
pub(super) fn list_versions(stream: &Stream) -> Vec<ResourceVersion<'_>> {
    let mut refreshed = list_refreshed(stream);
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut versions = Vec::new();
    for (turn, resources, delivered) in deliveries(stream) {
        let attached = resources.iter().enumerate().map(|(index, snapshot)| {
            let declaration = delivered
                .iter()
                .find(|delivered| delivered.resources.contains(&index))
                .map(|delivered| &delivered.declaration);
            (snapshot, Origin::Attachment { declaration })
        });
        let refreshed = refreshed.remove(&turn).unwrap_or_default().into_iter();
        let refreshed = refreshed.map(|(call, snapshot)| (snapshot, Origin::Refresh { call }));
        // A turn's attachments come before its calls, so they are the older versions.
        for (snapshot, origin) in attached.chain(refreshed) {
            let number = numbers.entry(&snapshot.uri).or_default();
            *number += 1;
            versions.push(ResourceVersion {
                turn,
                snapshot,
                number: *number,
                origin,
            });
        }
    }
    versions
}

/// Lists the snapshots of `refresh_resource` for each turn, with the ids of its calls.
fn list_refreshed(stream: &Stream) -> BTreeMap<usize, Vec<(&str, &Snapshot)>> {
    let mut refreshed: BTreeMap<usize, Vec<(&str, &Snapshot)>> = BTreeMap::new();
    let mut tools: HashMap<&str, &str> = HashMap::new();
    let mut turn = 0;
    for event in stream.events() {
        match &event.kind {
            // Turns count from 1, as everywhere.
            EventKind::ChatRequest(_) => turn += 1,
            EventKind::ToolCallRequest(call) => _ = tools.insert(&call.id, &call.name),
            EventKind::ToolCallResponse(response)
                if tools.get(response.id.as_str()) == Some(&Builtin::RefreshResource.name()) =>
            {
                let id = response.id.as_str();
                let snapshots = list_resources(response).map(|snapshot| (id, snapshot));
                refreshed.entry(turn).or_default().extend(snapshots);
            }
            _ => {}
        }
    }
    refreshed
}

fn list_resources(response: &ToolCallResponse) -> impl Iterator<Item = &Snapshot> {
    response.content.iter().filter_map(|block| match block {
        StoredBlock::Resource { resource, .. } => Some(resource),
        _ => None,
    })
}

impl ResourceVersion<'_> {
    /// Returns the cells of the table. The URI comes last because it is long: in 80 columns the reader still sees the values
    /// that `jp resource show --version` accepts.
    pub(super) fn cells(&self) -> Vec<String> {
        let blob = self.snapshot.blob_ref();
        let turn = match self.turn {
            0 => "not sent yet".to_owned(),
            turn => format!("turn {turn}"),
        };
        vec![
            format!("version {}", self.number),
            turn,
            size::bytes(blob.size),
            blob.checksum.short(),
            self.snapshot.label().to_owned(),
            self.snapshot.uri.clone(),
        ]
    }

    /// Returns its JSON for `--format json`.
    pub(super) fn to_json(&self) -> Value {
        let mut row = TurnSnapshot {
            turn: self.turn,
            snapshot: self.snapshot,
        }
        .to_json();
        row["version"] = self.number.into();
        row["origin"] = self.origin.to_json();
        row
    }
}

impl Origin<'_> {
    fn to_json(&self) -> Value {
        let (kind, fields) = match self {
            Self::Attachment { declaration } => (
                "attachment",
                [
                    ("declaration", declaration.map(Declaration::as_str)),
                    ("server", declaration.and_then(Declaration::server)),
                ],
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
            // An unknown field is left out.
            if let Some(value) = value {
                origin[name] = value.into();
            }
        }
        origin
    }
}
