//! The snapshots of a conversation, in the form that all commands share with `--format json`.

use jp_conversation::{Stream, attachments::deliveries};
use jp_resource::Snapshot;
use serde_json::{Value, json};

/// A snapshot and the turn that sent it; 0 if no message has sent it yet.
pub(crate) struct TurnSnapshot<'a> {
    pub(crate) turn: usize,
    pub(crate) snapshot: &'a Snapshot,
}

impl TurnSnapshot<'_> {
    pub(crate) fn to_json(&self) -> Value {
        let blob = self.snapshot.blob_ref();
        json!({
            "uri": self.snapshot.uri,
            "name": self.snapshot.name,
            "mimeType": self.snapshot.mime_type,
            "turn": (self.turn > 0).then_some(self.turn),
            "checksum": blob.checksum,
            "size": blob.size,
        })
    }
}

/// Lists the attached snapshots of a stream, oldest first.
pub(crate) fn list_snapshots(stream: &Stream) -> impl Iterator<Item = TurnSnapshot<'_>> {
    let snapshots = deliveries(stream).into_iter();
    snapshots.flat_map(|(turn, resources, _)| {
        resources
            .iter()
            .map(move |snapshot| TurnSnapshot { turn, snapshot })
    })
}
