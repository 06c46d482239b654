//! Attachments: what is declared, what may be resolved, and what came of it.

pub mod advice;
pub mod approval;
pub mod declarations;
mod progress;
pub mod resolve;
pub mod stale;
pub mod store;
pub mod template;
