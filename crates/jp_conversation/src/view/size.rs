//! Sizes of content, in bytes and in tokens.

use jp_resource::{Payload, ResourceContent, Snapshot};
use jp_tool::StoredBlock;

/// Returns the approximate number of tokens in `bytes` of text. Providers count differently.
#[must_use]
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Returns a saturating sum, because stored sizes may be wrong.
#[must_use]
pub fn sum(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

pub(super) fn resource_bytes(resource: &Snapshot) -> u64 {
    match &resource.formatted {
        Some(formatted) => payload_bytes(formatted, String::len),
        None => content_bytes(resource),
    }
}

/// Returns the length of the raw content, ignoring formatted text.
pub(super) fn content_bytes(resource: &Snapshot) -> u64 {
    payload_bytes(&resource.content, |content: &ResourceContent| {
        content.as_bytes().len()
    })
}

/// Returns the length of a block, including parts that are cut.
pub(super) fn whole_bytes(block: &StoredBlock) -> u64 {
    match block {
        StoredBlock::Text { text, .. } => payload_bytes(text, String::len),
        StoredBlock::Resource { resource, .. } => resource_bytes(resource),
        StoredBlock::Image(media) | StoredBlock::Audio(media) => {
            payload_bytes(&media.data, Vec::len)
        }
        StoredBlock::Question { question } => question.text.len() as u64,
        StoredBlock::Unknown(block) => block.note().len() as u64,
    }
}

fn payload_bytes<T>(payload: &Payload<T>, length: impl Fn(&T) -> usize) -> u64 {
    match payload {
        Payload::Inline(value) => length(value) as u64,
        Payload::Stored(blob) => blob.size,
    }
}
