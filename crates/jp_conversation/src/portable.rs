//! Finds the strings of an event that may contain paths, which are stored relative to the workspace.

use jp_resource::Snapshot;
use jp_tool::StoredBlock;
use serde_json::{Map, Value};

use crate::{Declaration, Delivered, Event, EventKind};

impl Event {
    /// Calls `rewrite` on every string that may contain the workspace's path.
    ///
    /// These are URIs, names of resources, declarations, deltas, metadata and the string values of tool
    /// arguments. Messages, answers, reasoning, tool text and formatted text don't change.
    pub fn rewrite_places(&mut self, mut rewrite: impl FnMut(&mut String)) {
        let rewrite: Rewrite<'_> = &mut rewrite;
        match &mut self.kind {
            EventKind::ChatRequest(request) => {
                request
                    .resources
                    .iter_mut()
                    .for_each(|snapshot| snapshot_places(snapshot, rewrite));
                request
                    .delivered
                    .iter_mut()
                    .for_each(|delivered| delivered_places(delivered, rewrite));
            }
            EventKind::ChatResponse(response) => map_places(&mut response.metadata, rewrite),
            EventKind::ToolCallRequest(request) => {
                map_places(&mut request.arguments, rewrite);
                map_places(&mut request.metadata, rewrite);
            }
            EventKind::ToolCallResponse(response) => {
                response
                    .content
                    .iter_mut()
                    .for_each(|block| block_places(block, rewrite));
                map_places(&mut response.meta, rewrite);
            }
            EventKind::ConfigDelta(delta) => {
                map_places(&mut delta.delta, rewrite);
                delta
                    .resources
                    .iter_mut()
                    .for_each(|snapshot| snapshot_places(snapshot, rewrite));
                delta
                    .delivered
                    .iter_mut()
                    .for_each(|delivered| delivered_places(delivered, rewrite));
            }
            EventKind::Superseded(superseded) => {
                superseded
                    .dropped
                    .iter_mut()
                    .for_each(|version| rewrite(&mut version.uri));
            }
            EventKind::Notification(notification) => {
                rewrite(&mut notification.uri);
                notification.name.iter_mut().for_each(rewrite);
            }
            EventKind::TurnStart
            | EventKind::Compaction(_)
            | EventKind::InquiryRequest(_)
            | EventKind::InquiryResponse(_)
            | EventKind::Usage(_)
            | EventKind::Unknown(_) => {}
        }
    }
}

type Rewrite<'a> = &'a mut dyn FnMut(&mut String);

fn delivered_places(delivered: &mut Delivered, rewrite: Rewrite<'_>) {
    let mut text = delivered.declaration.as_str().to_owned();
    rewrite(&mut text);
    delivered.declaration = Declaration::new(text);
}

fn snapshot_places(snapshot: &mut Snapshot, rewrite: Rewrite<'_>) {
    rewrite(&mut snapshot.uri);
    // The name of a command is its command line, and that of an MCP resource may be a URI.
    snapshot.name.iter_mut().for_each(&mut *rewrite);
    if let Some(meta) = &mut snapshot.meta {
        map_places(meta, rewrite);
    }
}

fn block_places(block: &mut StoredBlock, rewrite: Rewrite<'_>) {
    let meta = match block {
        StoredBlock::Text { meta, .. } => meta,
        StoredBlock::Resource { resource, meta } => {
            snapshot_places(resource, rewrite);
            meta
        }
        StoredBlock::Image(media) | StoredBlock::Audio(media) => &mut media.meta,
        StoredBlock::Question { .. } | StoredBlock::Unknown(_) => return,
    };
    meta.iter_mut().for_each(|meta| map_places(meta, rewrite));
}

fn map_places(map: &mut Map<String, Value>, rewrite: Rewrite<'_>) {
    map.values_mut()
        .for_each(|value| value_places(value, rewrite));
}

fn value_places(value: &mut Value, rewrite: Rewrite<'_>) {
    match value {
        Value::String(text) => rewrite(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| value_places(value, rewrite)),
        Value::Object(map) => map_places(map, rewrite),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::Checksum;

    use super::*;
    use crate::Notification;

    #[test]
    fn name_of_a_changed_command_may_name_a_place() {
        let notification = Notification {
            uri: "cmd://cat?arg=/w/a".to_owned(),
            checksum: Checksum::compute(b""),
            name: Some("cat /w/a".to_owned()),
            now: None,
        };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let mut event = Event::new(now, EventKind::Notification(notification));
        event.rewrite_places(|text| *text = text.replace("/w/", ""));
        let EventKind::Notification(notification) = event.kind else {
            panic!("{event:?}")
        };
        assert_eq!(
            (&*notification.uri, notification.name.as_deref()),
            ("cmd://cat?arg=a", Some("cat a"))
        );
    }
}
