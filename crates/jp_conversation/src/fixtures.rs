//! Events for tests.

use jp_tool::StoredBlock;
use serde_json::Map;

use crate::{Event, EventKind, Stream, ToolCallRequest, ToolCallResponse};

/// Makes a stream in which all events have the same time.
pub(crate) fn stream(kinds: impl AsRef<[EventKind]>) -> Stream {
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let events = kinds.as_ref().iter();
    Stream::from_events(events.map(|kind| Event::new(now, kind.clone())).collect())
}

/// Makes a call of the tool `read`.
pub(crate) fn call(id: &str) -> EventKind {
    EventKind::ToolCallRequest(ToolCallRequest {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: Map::new(),
        metadata: Map::new(),
    })
}

/// Makes a successful result.
pub(crate) fn result(id: &str, content: Vec<StoredBlock>) -> EventKind {
    EventKind::ToolCallResponse(ToolCallResponse {
        id: id.to_owned(),
        content,
        is_error: false,
        structured_content: None,
        meta: Map::new(),
    })
}
