//! Reads layered configuration into typed values that know where they came from.
//!
//! Configuration comes in layers, and a later one wins: the workspace's file, the user's file, what a
//! conversation stored, the environment, `-c` arguments, flags. Tables merge deep; lists and scalars
//! replace. The result is a typed [`Config`], and for every key the [`Layer`] that set it, so that an
//! error can name the file to edit and `jp config show` can explain each value.
//!
//! In reading order: [`Layers`] collects the layers, [`Layer`] names one, [`Assignment`] is one `-c`
//! argument, [`Resolved`] is the outcome with its [`Config`] and [`Origins`], [`Key`] addresses a value
//! in it. [`AttachmentDeclaration`] and [`ByteSize`] are the two values with a syntax of their own.
//!
//! What older versions of jp wrote is read too; unknown keys of files and conversations are reported
//! and ignored, those of the command line and the environment are errors. The crate reads no file, no
//! environment and no clock: it takes text and values.
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
