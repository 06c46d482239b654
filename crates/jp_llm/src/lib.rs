//! Talks to language models: encodes a view of a conversation as a provider's request, sends it,
//! and decodes the stream that comes back.
//!
//! The data flows one way. A [`Request`] names the model and the
//! [`Thread`](jp_conversation::view::Thread) it gets; [`Format::body`] writes its JSON into a
//! [`Body`], loading one stored payload at a time ([`Contents`]) or leaving room for texts that are read
//! while it is sent ([`Later`]), and says in [`Note`]s what the model can't be shown. A [`Client`] sends the body to an [`Endpoint`], as often as [`retry`] allows, and
//! hands out the answer as [`StreamEvent`]s while they arrive. [`discover`] finds a server on this
//! machine, and [`models`] says what a model takes.
//!
//! A module a wire format: the Messages API ([`anthropic`]), OpenAI's Responses ([`openai`]), Google Gemini
//! ([`gemini`]), Ollama's own ([`ollama`]), and Chat Completions ([`chat`]), which llama.cpp, OpenRouter and
//! most servers speak. Nothing here prints, asks, runs tools or reads the environment.
//!
//! ```
//! use jp_conversation::view::Thread;
//! use jp_llm::{BaseUrl, Capabilities, Client, Contents, Endpoint, Error, Request, StreamEvent};
//!
//! async fn answer(thread: &Thread<'_>, contents: &mut dyn Contents) -> Result<String, Error> {
//!     let endpoint = Endpoint::new("llamacpp", BaseUrl::parse("http://127.0.0.1:8080")?, "qwen3");
//!     let capabilities = Capabilities { images: true, ..Capabilities::default() };
//!     let request = Request { capabilities, ..Request::new("llamacpp/qwen3", thread) };
//!     let (body, _notes) = endpoint.format.body(&request, contents)?;
//!
//!     let client = Client::new(endpoint)?;
//!     let mut response = client.send(&body, &mut |_retry| {}).await?;
//!     let mut answer = String::new();
//!     while let Some(event) = response.next().await? {
//!         if let StreamEvent::Text(text) = event {
//!             answer.push_str(&text);
//!         }
//!     }
//!     Ok(answer)
//! }
//! ```

pub mod anthropic;
mod base_url;
mod body;
mod cache;
mod calls;
pub mod chat;
mod client;
mod decode;
mod defuse;
pub mod discover;
mod endpoint;
mod error;
mod error_text;
mod event;
#[cfg(test)]
mod fixtures;
mod flat;
mod format;
pub mod gemini;
mod http;
mod json;
mod later;
pub mod models;
pub mod ollama;
pub mod openai;
mod parts;
mod refusal;
mod request;
pub mod retry;
mod secret;
mod shown;
pub mod sse;
mod xml;

pub use base_url::BaseUrl;
pub use body::Body;
pub use cache::CacheMarks;
pub use calls::INVALID_ARGUMENTS;
pub use client::{Client, Response};
pub use decode::Decoder;
pub use endpoint::Endpoint;
pub use error::{Error, Fault, Server};
pub use event::{FinishReason, StreamEvent};
pub use format::Format;
pub use later::{Later, Loaded, Measure, TextSource};
pub use parts::ERROR_LINE;
pub use refusal::Refusal;
pub use request::{Capabilities, Contents, Note, Request, Tool};
pub use retry::RetryNotice;
pub use secret::Secret;
