//! Merges layers of configuration into typed values with their origins.
//!
//! Later layers override earlier ones: the workspace's file, the user's file, the conversation's
//! history, the environment, `-c` arguments, flags. Tables are merged; lists and scalars are replaced.
//! The result is a typed [`Config`] and, for every key, the [`Layer`] that set it. So an error can name
//! the file to edit, and `jp config show` can explain each value.
//!
//! In reading order: [`Layers`] collects the layers, [`Layer`] names one, [`Assignment`] is one `-c`
//! argument, [`Resolved`] is the outcome with its [`Config`] and [`Origins`], [`Key`] addresses a value
//! in it. [`AttachmentDeclaration`] and [`ByteSize`] are the two values with their own syntax.
//!
//! The crate also reads the forms of older versions of jp. It reports and ignores unknown keys in files
//! and conversations; on the command line and in the environment they are errors. It does no I/O: it
//! takes text and values.
//!
//! ```
//! use jp_config::{Assignment, Layer, Layers};
//!
//! let mut layers = Layers::new();
//! let file = Layer::Workspace { path: ".jp/config.toml".into() };
//! layers.add_toml(file.clone(), "[assistant.model]\nid = 'anthropic/claude-sonnet-5'")?;
//! let argument = "conversation.attachment.max_bytes=2MB";
//! layers.add_assignment(Layer::Argument { text: argument.into() }, &Assignment::parse(argument)?)?;
//!
//! let resolved = layers.resolve()?;
//! assert_eq!(resolved.config.assistant.model.id.as_deref(), Some("anthropic/claude-sonnet-5"));
//! assert_eq!(resolved.config.conversation.attachment.max_bytes.bytes(), 2_000_000);
//! assert_eq!(resolved.origin("assistant.model.id"), &file);
//! # Ok::<(), jp_config::Error>(())
//! ```

mod assignment;
mod attachment;
mod config;
mod error;
mod key;
mod layer;
mod layers;
mod older;
mod origins;
mod read;
mod resolved;
mod secret;
#[cfg(test)]
mod settings_page;
mod size;
mod text;
mod tools;
mod tree;

pub use assignment::Assignment;
pub use attachment::{AttachmentDeclaration, AttachmentTable, Refresh};
pub use config::{
    Assistant, AttachmentSettings, CommandSetting, Config, Conversation, Deduplication,
    LlmProvider, McpKind, McpServer, Model, Providers, Secrets, Superseded, SupersededPolicy,
};
pub use error::{Cause, Error};
pub use key::Key;
pub use layer::Layer;
pub use layers::Layers;
pub use origins::Origins;
pub use resolved::{Entry, Resolved};
pub use secret::{is_secret_name, without_secrets};
pub use size::{ByteSize, ParseByteSizeError};
pub use tools::{Action, QuestionSettings, QuestionTarget, RunMode, ToolSettings};
