use super::{
    Message, Thread,
    cut::shown_bytes,
    size::{resource_bytes, sum},
};

/// The last message before an answer, where an entry in a provider's prompt cache is useful.
///
/// A request reads the entries of earlier ones, so the newest two are the most useful: the end of this request, for
/// the next one, and that of the one before. Formats map them to their own marks, in addition to those on the system
/// prompt and the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// The index of the message.
    pub message: usize,
    /// The bytes of resources and results since the previous answer.
    pub bytes: u64,
}

impl CacheHint {
    /// The number of bytes from which a hint is large: about the shortest prefix that every model caches.
    pub const LARGE: u64 = 16 << 10;

    /// Returns true if so much was sent that an entry is useful even far back in the thread.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.bytes >= Self::LARGE
    }
}

impl Thread<'_> {
    /// Returns the hints of the thread, the newest first.
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

/// Returns the bytes of resources and results in a message; `None` for an answer of the model.
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
    fn hints_are_on_the_last_messages_before_answers() {
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
