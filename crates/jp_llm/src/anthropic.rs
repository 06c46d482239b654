//! The Messages API (`anthropic-version: 2023-06-01`).
//!
//! [`encode`] writes a request, [`decoder`] reads the stream that answers it. Attached resources are
//! documents with a title, in messages and in the results of tools; images and PDF stay what they are.
//! Reasoning comes back with a signature and is sent again word for word to the model that made it.

mod blocks;
mod decode;
mod encode;
mod marks;
mod schema;

pub(crate) use blocks::sends_back;
pub use decode::decoder;
pub(crate) use encode::cache_marks;
pub use encode::{DEFAULT_MAX_TOKENS, encode};

/// The version of the API, a header of every request.
pub(crate) const VERSION: &str = "2023-06-01";

/// The metadata key under which the signature of a piece of reasoning stands.
///
/// Words with a signature are followed by signed reasoning whose text the provider kept.
pub const SIGNATURE: &str = "signature";

/// The metadata key under which encrypted reasoning stands, which belongs after the part that has it.
pub const REDACTED_THINKING: &str = "redacted_thinking";
