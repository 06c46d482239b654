//! JSON-RPC batches, which only the revision 2025-03-26 has.

use rmcp::model::ProtocolVersion;
use serde_json::value::RawValue;

/// The most messages in a batch. Each is answered separately, so a long batch saves nothing.
const MAX_MESSAGES: usize = 100;

/// Splits a batch into its messages, which may be any JSON and any number.
pub(super) fn messages(text: &[u8]) -> serde_json::Result<Vec<&RawValue>> {
    serde_json::from_slice(text)
}

/// Returns whether a batch may have so many messages.
pub(super) fn is_sound(count: usize) -> bool {
    (1..=MAX_MESSAGES).contains(&count)
}

/// Returns whether a text begins like a batch.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Returns the revision that has batches.
pub(super) fn revision() -> &'static str {
    ProtocolVersion::V_2025_03_26.as_str()
}
