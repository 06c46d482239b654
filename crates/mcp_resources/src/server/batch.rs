//! JSON-RPC batches, which the revision 2025-03-26 has and those after it have no more.

use rmcp::model::ProtocolVersion;
use serde_json::Value;

/// The messages of a batch; nothing if the text is none, or one of no messages.
pub(super) fn messages(text: &[u8]) -> Option<Vec<Value>> {
    let messages: Vec<Value> = serde_json::from_slice(text).ok()?;
    (!messages.is_empty()).then_some(messages)
}

/// Whether a text begins as a batch does.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'[')
}

/// Whether a client that initializes with this message may send batches; nothing if it is another message.
#[cfg(feature = "stdio")]
pub(super) fn initializes(text: &[u8]) -> Option<bool> {
    const METHOD: &[u8] = b"\"initialize\"";
    // Most lines are another message, and are not read twice.
    text.windows(METHOD.len()).any(|window| window == METHOD).then_some(())?;
    let message: Value = serde_json::from_slice(text).ok()?;
    (message["method"] == "initialize").then(|| message["params"]["protocolVersion"] == revision())
}

/// The revision that has batches.
pub(super) fn revision() -> &'static str {
    ProtocolVersion::V_2025_03_26.as_str()
}
