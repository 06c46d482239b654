//! Cache breakpoints, where a model has them.

use jp_conversation::view::{CacheHint, Message};

use super::models;
use crate::{CacheMarks, Request};

/// How many messages with resources are marked.
const MARKED_MESSAGES: usize = 2;
/// What ends a part.
pub(super) const END: &str = "}";
/// What ends a part that ends a prefix to be cached.
pub(super) const MARKED_END: &str = r#","prompt_cache_breakpoint":{"mode":"explicit"}}"#;

/// Returns where a request's cache marks are.
pub(crate) fn cache_marks(request: &Request<'_>) -> CacheMarks {
    let Marks {
        system,
        mut messages,
    } = Marks::new(request);
    messages.sort_unstable();
    let has_system = request.system.is_some_and(|system| !system.is_empty());
    CacheMarks {
        head: has_system && system == MARKED_END,
        messages,
    }
}

/// Where the cache marks are.
pub(super) struct Marks {
    /// The end of the system prompt's part.
    pub(super) system: &'static str,
    messages: Vec<usize>,
}

impl Marks {
    pub(super) fn new(request: &Request<'_>) -> Self {
        if !models::has_breakpoints(request.label) {
            return Self {
                system: END,
                messages: Vec::new(),
            };
        }
        let hints = request.thread.cache_hints();
        let messages = &request.thread.messages;
        let has_parts = |hint: &&CacheHint| matches!(messages[hint.message], Message::User { .. });
        let marked = hints
            .iter()
            .filter(|hint| hint.bytes > 0)
            .filter(has_parts)
            .take(MARKED_MESSAGES);
        Self {
            system: MARKED_END,
            messages: marked.map(|hint| hint.message).collect(),
        }
    }

    /// Returns what ends the last part of a message.
    pub(super) fn end(&self, index: usize) -> &'static str {
        if self.messages.contains(&index) {
            MARKED_END
        } else {
            END
        }
    }
}
