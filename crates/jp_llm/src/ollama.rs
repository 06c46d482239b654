//! Ollama's own `/api/chat`.
//!
//! [`encode`] writes a request, [`decoder`] reads the lines that answer it. A message is one string with
//! images beside it: resources follow the person's words as XML, and the place of an image says which it is.
//! Results of tools are text. Reasoning goes back as `thinking` to the model that made it, as the API asks
//! of who lets a model call tools ("Thinking", "Tool calling" in Ollama's documentation).
//!
//! The length of the context is the server's setting (`OLLAMA_CONTEXT_LENGTH`), or `num_ctx` with
//! [`Request::context`](crate::Request::context). The server cuts longer requests without saying so.

mod decode;
mod encode;

pub use decode::decoder;
pub use encode::encode;
pub(crate) use encode::sends_back;
