//! The contract between tools and jp: content blocks, questions and tool responses.
//!
//! A tool prints one [`ToolResponse`] as JSON. It has typed [`ContentBlock`]s in order (text,
//! resources, questions, images, audio), a flag for failure and, for stateful tools, a [`Status`].
//! The shapes follow MCP's `CallToolResult`; jp's additions are optional. A question is an
//! [`InputRequest`]. [`AnswerType`] writes its schema in the common cases.
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
//! A tool reads its arguments from stdin, as an [`Invocation`]. When its questions are answered, it
//! runs again with the answers. `examples/delete_note.rs` is a complete tool.

mod block;
mod input;
mod invocation;
mod response;
mod template;

pub use block::{BlockError, ContentBlock, Media, StoredBlock, UnknownBlock};
pub use input::{AnswerType, InputRequest};
pub use invocation::{CallContext, Invocation, ToolCall};
pub use response::{ResponseError, Status, ToolError, ToolResponse};
pub use template::template;
