//! Chat Completions: what llama.cpp, Ollama under `/v1`, and compatible servers speak.
//!
//! [`encode`] writes a request, [`decoder`] reads the stream that answers it. Only text, reasoning,
//! tool calls and usage come back; a request carries text, and images and PDF where the model takes
//! them. Reasoning is not sent back: the format has no place for it.

mod decode;
mod encode;

pub use self::decode::decoder;
pub use crate::decode::INVALID_ARGUMENTS;
pub use encode::encode;
