use jp_conversation::view::{Message, Thread};

use super::Dialect;
use crate::{CacheMarks, Request};

/// The messages that end with a cache mark.
///
/// They are the last message of this request, the last of the request before, so that what that one stored is
/// found however many calls lie between, and the person's newest. With the mark on the system prompt they are
/// the four that Anthropic allows.
pub(super) struct ChatMarks {
    are_wanted: bool,
    at: Vec<usize>,
}

impl ChatMarks {
    pub(super) fn new(dialect: Dialect, request: &Request<'_>) -> Self {
        let are_wanted = match dialect {
            Dialect::Generic => false,
            Dialect::OpenRouter => caches_by_marks(request.model),
        };
        Self {
            are_wanted,
            at: places(request.thread),
        }
    }

    /// Returns whether the model's provider wants any, wherever they are.
    pub(super) fn are_wanted(&self) -> bool {
        self.are_wanted
    }

    /// Returns whether the message of this index has one.
    pub(super) fn is_at(&self, index: usize) -> bool {
        self.are_wanted && self.at.contains(&index)
    }
}

/// Returns whether a model that OpenRouter serves caches nothing without marks; the others do by themselves.
fn caches_by_marks(model: &str) -> bool {
    matches!(vendor(model), "anthropic" | "qwen")
}

/// Returns whose model it is that OpenRouter serves.
pub(crate) fn vendor(model: &str) -> &str {
    model
        .trim_start_matches('~')
        .split('/')
        .next()
        .unwrap_or_default()
}

/// Returns a request's cache marks.
pub(crate) fn cache_marks(dialect: Dialect, request: &Request<'_>) -> CacheMarks {
    let ChatMarks {
        are_wanted: true,
        at: mut messages,
    } = ChatMarks::new(dialect, request)
    else {
        return CacheMarks::default();
    };
    messages.sort_unstable();
    messages.dedup();
    CacheMarks {
        head: request.system.is_some_and(|system| !system.is_empty()),
        messages,
    }
}

fn places(thread: &Thread<'_>) -> Vec<usize> {
    let ends = thread
        .cache_hints()
        .into_iter()
        .map(|hint| hint.message)
        .take(2);
    let newest = thread
        .messages
        .iter()
        .rposition(|message| matches!(message, Message::User { .. }));
    ends.chain(newest).collect()
}
