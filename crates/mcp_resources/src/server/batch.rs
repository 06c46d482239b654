//! JSON-RPC batches, which the revision 2025-03-26 has and those after it have no more.

use rmcp::model::ProtocolVersion;
use serde_json::value::RawValue;

/// How many messages a batch may have.
const MAX_MESSAGES: usize = 100;

/// The messages of a batch, which may be any JSON and any number.
pub(super) fn messages(text: &[u8]) -> serde_json::Result<Vec<&RawValue>> {
    serde_json::from_slice(text)
}

/// Whether a batch may have so many messages.
pub(super) fn is_sound(count: usize) -> bool {
    (1..=MAX_MESSAGES).contains(&count)
}

/// Whether a text begins as a batch does.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// The revision that has batches.
pub(super) fn revision() -> &'static str {
    ProtocolVersion::V_2025_03_26.as_str()
}
