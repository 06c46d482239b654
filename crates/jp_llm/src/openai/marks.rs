//! Cache breakpoints, where a model has them.

use jp_conversation::view::{CacheHint, Message};

use super::models;
use crate::{CacheMarks, Request};

/// Messages with resources that are marked. The API takes three marks beside its own: these and the system prompt's.
const MARKED_MESSAGES: usize = 2;

/// Returns a request's cache marks.
pub(crate) fn cache_marks(request: &Request<'_>) -> CacheMarks {
    let Breakpoints {
        after_system,
        mut messages,
    } = Breakpoints::new(request);
    messages.sort_unstable();
    let has_system = request.system.is_some_and(|system| !system.is_empty());
    CacheMarks {
        head: has_system && after_system,
        messages,
    }
}

/// The places after which the prefix is cached.
pub(super) struct Breakpoints {
    /// True if one is after the system prompt, if there is a prompt.
    pub(super) after_system: bool,
    messages: Vec<usize>,
}

impl Breakpoints {
    pub(super) fn new(request: &Request<'_>) -> Self {
        if !models::has_breakpoints(request.label) {
            return Self {
                after_system: false,
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
            after_system: true,
            messages: marked.map(|hint| hint.message).collect(),
        }
    }

    /// Returns whether one is at the end of the message with this index.
    pub(super) fn is_after(&self, index: usize) -> bool {
        self.messages.contains(&index)
    }
}
