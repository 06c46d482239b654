//! The contract between tools and jp: content blocks, questions and tool responses.
//!
//! A tool prints one [`ToolResponse`] as JSON: typed [`ContentBlock`]s in order (text, resources,
//! questions, images, audio), whether it failed, and, for tools that stay alive, a [`Status`]. The
//! shapes follow MCP's `CallToolResult`; what jp adds is optional. A question is an
//! [`InputRequest`], whose schema [`AnswerType`] writes for the common cases.
//!
//! ```
//! use jp_tool::{AnswerType, ContentBlock, InputRequest, ToolResponse};
//!
//! let response = ToolResponse::new([
//!     ContentBlock::text("Two files would change."),
//!     ContentBlock::question(InputRequest::new("confirm", "Apply?", AnswerType::Boolean).with_default(true)),
//! ]);
//! println!("{}", serde_json::to_string(&response).unwrap());
//! ```
//!
//! It reads its arguments from stdin, as an [`Invocation`]. Once its questions are answered it runs again, with the
//! answers. `examples/delete_note.rs` is a whole tool.

mod block;
mod input;
mod invocation;
mod response;
mod template;

pub use block::{BlockError, ContentBlock, Media, StoredBlock, UnknownBlock};
pub use input::{AnswerType, InputRequest};
pub use invocation::{Called, Invocation, Surroundings};
pub use response::{ResponseError, Status, ToolError, ToolResponse};
pub use template::template;
