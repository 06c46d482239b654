use super::{
    Message, Thread,
    cut::shown_bytes,
    size::{resource_bytes, sum},
};

/// The end of what was sent between two answers: a place where a provider's prompt cache is worth an entry.
///
/// A request reads what an earlier one wrote, so the newest two are worth most: the end of this request, for the next,
/// and that of the one before. Formats map them to marks of their own, beside those on the system prompt and the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// Index of the message.
    pub message: usize,
    /// Bytes of resources and results that were sent since the answer before.
    pub bytes: u64,
}

impl CacheHint {
    /// From how many bytes on it is large: about the shortest prefix that every model caches.
    pub const LARGE: u64 = 16 << 10;

    /// Returns whether so much was sent that it is worth an entry however far back it is.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.bytes >= Self::LARGE
    }
}

impl Thread<'_> {
    /// Returns where a prompt cache is worth an entry, the newest first.
    #[must_use]
    pub fn cache_hints(&self) -> Vec<CacheHint> {
        let mut hints: Vec<CacheHint> = Vec::new();
        let mut follows_answer = true;
        for (index, message) in self.messages.iter().enumerate() {
            let Some(bytes) = sent_bytes(message) else {
                follows_answer = true;
                continue;
            };
            match hints.last_mut().filter(|_| !follows_answer) {
                Some(hint) => {
                    *hint = CacheHint {
                        message: index,
                        bytes: hint.bytes.saturating_add(bytes),
                    }
                }
                None => hints.push(CacheHint {
                    message: index,
                    bytes,
                }),
            }
            follows_answer = false;
        }
        hints.reverse();
        hints
    }
}

/// Returns how many bytes of resources and results a message carries; `None` for one of the model.
fn sent_bytes(message: &Message<'_>) -> Option<u64> {
    match message {
        Message::User { request, .. } => Some(sum(request.resources.iter().map(resource_bytes))),
        Message::Tool { response, .. } => {
            let blocks = response.iter().flat_map(|response| &response.content);
            Some(sum(blocks.map(shown_bytes)))
        }
        Message::Assistant { .. } | Message::NoAnswer { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use jp_resource::{Resource, ResourceContent};
    use serde_json::Map;

    use super::*;
    use crate::{ChatRequest, ChatResponse, ToolCallRequest, view::AnswerPart};

    #[test]
    fn hints_are_at_the_ends_of_what_was_sent_between_answers() {
        let large = Resource::new(
            "a:b",
            ResourceContent::Text("x".repeat(CacheHint::LARGE as usize)),
        );
        let attached = ChatRequest {
            resources: vec![large.into()],
            ..ChatRequest::new("See")
        };
        let plain = ChatRequest::new("And?");
        let answer = ChatResponse::message("Yes.");
        let call = ToolCallRequest {
            id: "1".to_owned(),
            name: "read".to_owned(),
            arguments: Map::new(),
            metadata: Map::new(),
        };
        let tool = || Message::Tool {
            turn: 1,
            number: 1,
            call: &call,
            response: None,
            deliveries: vec![],
        };
        let said = || Message::Assistant {
            turn: 1,
            parts: vec![AnswerPart::Response(&answer)],
        };
        let user = |turn, request| Message::User {
            turn,
            request: Cow::Borrowed(request),
            deliveries: vec![],
        };
        let messages = vec![
            user(1, &attached),
            said(),
            tool(),
            tool(),
            user(2, &attached),
            Message::NoAnswer { turn: 2 },
            user(3, &plain),
        ];
        let hints = Thread { messages }.cache_hints();
        let places: Vec<_> = hints
            .iter()
            .map(|hint| (hint.message, hint.is_large()))
            .collect();
        assert_eq!(places, [(6, false), (4, true), (0, true)]);
        assert!(Thread::default().cache_hints().is_empty());
    }
}
