//! Conversations: their events, and the pure functions over them.
//!
//! A [`Stream`] is an append-only list of [`Event`]s. A [`ChatRequest`] carries the person's words and
//! the [`Snapshot`](jp_resource::Snapshot)s attached at that turn, with the [`Declaration`]s that gave
//! them. [`resolution::plan`] decides from the stream which declarations still need resolving.
//! [`view::thread`] makes the messages that a model gets. Everything here is a pure function over values:
//! no disk, no network, no clock, no configuration.
//!
//! ```
//! use jp_conversation::{ChatRequest, Event, EventKind, Stream, view};
//!
//! let mut stream = Stream::default();
//! let now = "2026-11-21T12:00:00Z".parse().unwrap();
//! stream.push(Event::new(now, EventKind::ChatRequest(ChatRequest::new("Why does this fail?"))));
//! let thread = view::thread(&stream);
//! assert_eq!(thread.messages.len(), 1);
//! ```

pub mod attachments;
mod declaration;

mod event;
#[cfg(test)]
mod fixtures;
pub mod held_resources;
mod json;
mod payload;
mod portable;
pub mod refresh;
pub mod resolution;
mod stream;
pub mod transcript;
pub mod view;

pub use declaration::Declaration;
pub use event::{
    ChatRequest, ChatResponse, Compaction, ConfigDelta, Delivered, Event, EventError, EventKind,
    InquiryRequest, InquiryResponse, Notification, ResponseContent, Strip, Superseded,
    ToolCallRequest, ToolCallResponse, Usage, Version, parse_timestamp,
};
pub use json::is_shallow;
pub use payload::{INLINE_BYTES, blobs_in};
pub use stream::{Stream, Turn};
