//! Chat Completions: what llama.cpp, OpenRouter, and compatible servers speak.
//!
//! [`encode`] writes a request, [`decoder`] reads the stream that answers it. Words, reasoning, tool calls
//! and usage come back; a request carries text, and images and PDF if the model takes them.
//!
//! **Results of tools** are text. Images and PDF in them go into a message from the person right after the
//! round's results, each under a line that names its call: it is there as soon as the results are, whether
//! the person says more or not, and stays where it is. A request that follows it directly gets the text of
//! a missing answer before it, since many chat templates want turns. [`Dialect::OpenRouter`] has parts in
//! results, so with [`Capabilities::binary_results`](crate::Capabilities::binary_results) all stays in place.
//!
//! **Reasoning** goes back to OpenRouter alone, as the `reasoning_details` that came with it, on the message
//! it came with. Of the others llama.cpp reads `reasoning_content`, but what becomes of it is the chat
//! template's affair (`supports_preserve_reasoning` in `/props`; some refuse words and reasoning in one
//! message), so none is sent.
//!
//! **Cache marks**: OpenRouter gets the conversation's key, and `cache_control` where the model caches by
//! marks alone: on the system prompt, and on the last text of up to three messages near the end. Those move
//! with the conversation; they are all that keeps one request's messages from being a byte prefix of the
//! next one's. For such models all content but the model's own is written as parts, marked or not.

mod decode;
mod details;
mod encode;
mod head;
mod marks;
mod message;

pub use decode::decoder;
pub use encode::encode;
pub(crate) use encode::sends_back;
pub(crate) use head::ChatTool;
pub(crate) use marks::{cache_marks, vendor};

pub use crate::calls::INVALID_ARGUMENTS;

/// The metadata key of a part of an answer under which OpenRouter's reasoning stands, as it came.
pub(crate) const REASONING_DETAILS: &str = "reasoning_details";

/// A dialect of Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The fields that all servers understand.
    Generic,
    /// Reasoning that goes back, binary content in results, cache marks.
    OpenRouter,
}
