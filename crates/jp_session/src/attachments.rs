//! Attachments: their declarations, the approval that they need, and how jp resolves them.

pub mod advice;
pub mod approval;
pub mod declarations;
mod progress;
pub mod resolve;
pub mod source_changes;
pub mod store;
pub mod template;
