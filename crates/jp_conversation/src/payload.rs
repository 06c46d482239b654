//! Moves an event's content to the blob store. Small texts stay inline.

use jp_resource::{BlobRef, Encoding, Payload, ResourceContent, Snapshot};
use jp_tool::{Media, StoredBlock};
use serde_json::Value;

use crate::{Event, EventKind};

/// Tool text below this length, and formatted text up to it, stays inline. Smaller blobs would cost more than
/// they save.
pub const INLINE_BYTES: usize = 256;

impl Event {
    /// Moves inline content to a blob store with `put` and leaves references.
    ///
    /// Resource content and media always move. Text blocks move from [`INLINE_BYTES`] on, formatted text above
    /// it.
    pub fn store_payloads<E>(
        &mut self,
        mut put: impl FnMut(&[u8], Encoding) -> Result<BlobRef, E>,
    ) -> Result<(), E> {
        let put = &mut put;
        match &mut self.kind {
            EventKind::ChatRequest(request) => store_snapshots(&mut request.resources, put),
            EventKind::ConfigDelta(delta) => store_snapshots(&mut delta.resources, put),
            EventKind::ToolCallResponse(response) => response
                .content
                .iter_mut()
                .try_for_each(|block| store_block(block, put)),
            _ => Ok(()),
        }
    }

    /// Returns all stored payloads of the event, including those that models don't receive.
    #[must_use]
    pub fn blobs(&self) -> Vec<BlobRef> {
        match &self.kind {
            EventKind::ChatRequest(request) => {
                request.resources.iter().flat_map(snapshot_blobs).collect()
            }
            EventKind::ConfigDelta(delta) => {
                delta.resources.iter().flat_map(snapshot_blobs).collect()
            }
            EventKind::ToolCallResponse(response) => {
                response.content.iter().flat_map(block_blobs).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn block_blobs(block: &StoredBlock) -> Vec<BlobRef> {
    match block {
        StoredBlock::Text { text, .. } => Vec::from_iter(text.blob()),
        StoredBlock::Resource { resource, .. } => snapshot_blobs(resource),
        StoredBlock::Image(media) | StoredBlock::Audio(media) => Vec::from_iter(media.data.blob()),
        StoredBlock::Question { .. } => Vec::new(),
        StoredBlock::Unknown(block) => {
            let mut blobs = Vec::new();
            block
                .json()
                .values()
                .for_each(|value| blobs_in(value, &mut blobs));
            blobs
        }
    }
}

fn snapshot_blobs(snapshot: &Snapshot) -> Vec<BlobRef> {
    let formatted = snapshot.formatted.as_ref().and_then(Payload::blob);
    snapshot
        .content
        .blob()
        .into_iter()
        .chain(formatted)
        .collect()
}

/// Finds the stored payloads that JSON names, `{"$blob", "size"}`, at any depth and in any field.
pub fn blobs_in(value: &Value, blobs: &mut Vec<BlobRef>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| blobs_in(value, blobs)),
        Value::Object(object) => {
            let checksum = object
                .get("$blob")
                .and_then(Value::as_str)
                .and_then(|hex| hex.parse().ok());
            let size = object.get("size").and_then(Value::as_u64);
            // The encoding is unknown here. It doesn't matter, because blobs are found by checksum.
            blobs.extend(checksum.zip(size).map(|(checksum, size)| BlobRef {
                checksum,
                size,
                encoding: Encoding::Binary,
            }));
            object.values().for_each(|value| blobs_in(value, blobs));
        }
        _ => {}
    }
}

type Put<'a, E> = &'a mut dyn FnMut(&[u8], Encoding) -> Result<BlobRef, E>;

fn store_snapshots<E>(snapshots: &mut [Snapshot], put: Put<'_, E>) -> Result<(), E> {
    snapshots
        .iter_mut()
        .try_for_each(|snapshot| store_snapshot(snapshot, put))
}

fn store_snapshot<E>(snapshot: &mut Snapshot, put: Put<'_, E>) -> Result<(), E> {
    // Content of any size moves, because snapshots are compared by their blobs.
    if let Payload::Inline(content) = &snapshot.content {
        snapshot.content =
            Payload::<ResourceContent>::Stored(put(content.as_bytes(), content.encoding())?);
    }
    snapshot.formatted.as_mut().map_or(Ok(()), |formatted| {
        store_text(formatted, INLINE_BYTES + 1, put)
    })
}

fn store_block<E>(block: &mut StoredBlock, put: Put<'_, E>) -> Result<(), E> {
    match block {
        StoredBlock::Text { text, .. } => store_text(text, INLINE_BYTES, put),
        StoredBlock::Resource { resource, .. } => store_snapshot(resource, put),
        StoredBlock::Image(media) | StoredBlock::Audio(media) => store_media(media, put),
        StoredBlock::Question { .. } | StoredBlock::Unknown(_) => Ok(()),
    }
}

fn store_text<E>(text: &mut Payload<String>, from_bytes: usize, put: Put<'_, E>) -> Result<(), E> {
    if let Payload::Inline(inline) = text
        && inline.len() >= from_bytes
    {
        *text = Payload::Stored(put(inline.as_bytes(), Encoding::Utf8)?);
    }
    Ok(())
}

fn store_media<E>(media: &mut Media<Payload<Vec<u8>>>, put: Put<'_, E>) -> Result<(), E> {
    if let Payload::Inline(bytes) = &media.data {
        media.data = Payload::Stored(put(bytes, Encoding::Binary)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn stored(json: &str) -> (String, Vec<usize>) {
        let mut event = Event::from_json(json).unwrap();
        let mut sizes = Vec::new();
        let put = |bytes: &[u8], encoding| {
            sizes.push(bytes.len());
            Ok::<_, Infallible>(BlobRef::for_content(bytes, encoding))
        };
        event.store_payloads(put).unwrap();
        (event.to_json().unwrap(), sizes)
    }

    #[test]
    fn large_tool_text_moves_to_the_store() {
        for (length, moved) in [(255, vec![]), (256, vec![256])] {
            let text = "x".repeat(length);
            let json = format!(
                r#"{{"timestamp":"2026-11-21T12:00:00Z","type":"tool_call_response","id":"1","content":[{{"type":"text","text":"{text}"}}]}}"#
            );
            let (json, sizes) = stored(&json);
            assert_eq!(
                (sizes, json.contains("$blob")),
                (moved.clone(), !moved.is_empty())
            );
        }
    }

    #[test]
    fn blobs_are_found_at_any_depth() {
        let blob = BlobRef::for_content(b"x", Encoding::Binary);
        let mut blobs = Vec::new();
        blobs_in(
            &serde_json::json!({"a": [{"b": {"$blob": blob.checksum, "size": 1}}]}),
            &mut blobs,
        );
        assert_eq!(blobs, [blob]);
    }

    #[test]
    fn stored_payloads_are_those_of_the_content() {
        let json = r#"{"timestamp":"2026-11-21T12:00:00Z","type":"tool_call_response","id":"1","content":[{"type":"resource","resource":{"uri":"a:b","content":{"text":"x"},"formatted":"F"}},{"type":"text","text":"T"}]}"#;
        let [formatted, text] = ["f", "t"].map(|letter| letter.repeat(300));
        let json = json
            .replace('F', &formatted)
            .replace(r#""T""#, &format!("{text:?}"));
        let mut event = Event::from_json(&json).unwrap();
        assert!(event.blobs().is_empty());
        event
            .store_payloads(|bytes, encoding| {
                Ok::<_, Infallible>(BlobRef::for_content(bytes, encoding))
            })
            .unwrap();
        let expected = ["x", &formatted, &text]
            .map(|text| BlobRef::for_content(text.as_bytes(), Encoding::Utf8));
        assert_eq!(event.blobs(), expected);
        let forged = format!(
            r#"{{"timestamp":"2026-11-21T12:00:00Z","type":"tool_call_request","id":"1","name":"f","arguments":{{"$blob":"{}","size":1}}}}"#,
            expected[0].checksum
        );
        assert!(Event::from_json(&forged).unwrap().blobs().is_empty());
    }

    #[test]
    fn resource_content_always_moves() {
        let (json, sizes) = stored(
            r#"{"timestamp":"2026-11-21T12:00:00Z","type":"chat_request","content":"hi","resources":[{"uri":"a:b","content":{"text":""},"formatted":"f"}]}"#,
        );
        assert_eq!(sizes, [0]);
        assert!(
            json.contains(r#""size":0,"encoding":"utf8"},"formatted":"f""#),
            "{json}"
        );
    }
}
