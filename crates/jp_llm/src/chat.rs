//! Chat Completions: what llama.cpp, Ollama under `/v1`, and compatible servers speak.
//!
//! [`encode`] writes a request, [`Decoder`] reads the stream that answers it. Only text, reasoning,
//! tool calls and usage come back; a request carries text, and images and PDF where the model takes
//! them. Reasoning is not sent back: the format has no place for it.

mod decode;
mod encode;

pub use decode::{Decoder, INVALID_ARGUMENTS};
pub use encode::encode;

/// Where requests go, below the server's root.
pub(crate) const PATH: &str = "v1/chat/completions";
