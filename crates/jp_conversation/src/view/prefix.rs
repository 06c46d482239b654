//! Compares the start of a request with the one before it.

use super::{Message, Thread};
use crate::{EventKind, Stream};

/// Returns the number of events in the last request that the model answered; `None` if it answered none.
///
/// A turn with tool calls has several requests, each with the results of earlier calls.
#[must_use]
pub fn last_request(stream: &Stream) -> Option<usize> {
    let events = stream.events();
    let last = events.iter().rposition(|event| {
        matches!(
            event.kind,
            EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_) | EventKind::Usage(_)
        )
    })?;
    // A request is sent after a message of the user, or after the results of calls.
    events[..last]
        .iter()
        .rposition(|event| {
            matches!(
                event.kind,
                EventKind::ChatRequest(_) | EventKind::ToolCallResponse(_)
            )
        })
        .map(|index| index + 1)
}

/// Returns the number of equal blocks at the start of two threads, counted like the rows of
/// [`explain`](super::explain()).
///
/// Blocks are compared in their delivered form. A block that is a reference in one thread and whole in the other ends
/// the prefix.
#[must_use]
pub fn shared_prefix(old: &Thread<'_>, new: &Thread<'_>) -> usize {
    let mut blocks = 0;
    for (old, new) in old.messages.iter().zip(&new.messages) {
        let Shared { equal, is_whole } = shared_blocks(old, new);
        blocks += equal;
        if !is_whole {
            break;
        }
    }
    blocks
}

/// The common start of two messages.
struct Shared {
    /// The number of equal blocks at their start.
    equal: usize,
    /// True if those are all blocks of both.
    is_whole: bool,
}

impl Shared {
    const NOTHING: Self = Self {
        equal: 0,
        is_whole: false,
    };

    fn compare<T: PartialEq>(old: &[T], new: &[T]) -> Self {
        let equal = old
            .iter()
            .zip(new)
            .take_while(|(old, new)| old == new)
            .count();
        Self {
            equal,
            is_whole: equal == old.len() && equal == new.len(),
        }
    }

    /// Adds an equal block before these.
    fn after_one(self) -> Self {
        Self {
            equal: self.equal + 1,
            ..self
        }
    }
}

fn shared_blocks(old: &Message<'_>, new: &Message<'_>) -> Shared {
    match (old, new) {
        (Message::User { request: old, .. }, Message::User { request: new, .. }) => {
            // Some models receive the schema as words, so it counts as part of them.
            if old.content != new.content || old.schema != new.schema {
                return Shared::NOTHING;
            }
            Shared::compare(&old.resources, &new.resources).after_one()
        }
        (Message::Assistant { parts: old, .. }, Message::Assistant { parts: new, .. }) => {
            Shared::compare(old, new)
        }
        (Message::NoAnswer { .. }, Message::NoAnswer { .. }) => Shared {
            equal: 1,
            is_whole: true,
        },
        (
            Message::Tool {
                call: old_call,
                response: old,
                ..
            },
            Message::Tool {
                call: new_call,
                response: new,
                ..
            },
        ) => match (old, new) {
            _ if old_call != new_call => Shared::NOTHING,
            (Some(old), Some(new)) if old.is_error == new.is_error => {
                Shared::compare(&old.content, &new.content)
            }
            (None, None) => Shared {
                equal: 1,
                is_whole: true,
            },
            _ => Shared::NOTHING,
        },
        _ => Shared::NOTHING,
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Payload, Resource, ResourceContent, Snapshot};
    use jp_tool::ContentBlock;
    use serde_json::Map;

    use super::*;
    use crate::{
        ChatRequest, ChatResponse, ToolCallResponse, Usage,
        fixtures::{call, stream},
        view::{explain, thread},
    };

    fn attached(words: &str, texts: &[&str]) -> EventKind {
        let resource = |text: &&str| -> Snapshot {
            Resource::new("file:///a", ResourceContent::Text((*text).to_owned())).into()
        };
        let resources = texts.iter().map(resource).collect();
        EventKind::ChatRequest(ChatRequest {
            resources,
            ..ChatRequest::new(words)
        })
    }

    fn answer(words: &str) -> EventKind {
        EventKind::ChatResponse(ChatResponse::message(words))
    }

    fn result(id: &str, texts: &[&str]) -> EventKind {
        EventKind::ToolCallResponse(ToolCallResponse {
            id: id.to_owned(),
            content: texts
                .iter()
                .map(|text| ContentBlock::text(*text).into())
                .collect(),
            is_error: false,
            structured_content: None,
            meta: Map::new(),
        })
    }

    fn usage() -> EventKind {
        EventKind::Usage(Usage::default())
    }

    #[test]
    fn last_request_ends_before_the_last_answer() {
        let question = || attached("go", &[]);
        let length = |kinds: &[EventKind]| last_request(&stream(kinds));
        assert_eq!(length(&[]), None);
        assert_eq!(length(&[EventKind::TurnStart, question()]), None);
        assert_eq!(length(&[question(), answer("a"), usage()]), Some(1));
        assert_eq!(
            length(&[question(), answer("a"), EventKind::TurnStart, question()]),
            Some(1)
        );
        let round = [
            question(),
            answer("let me see"),
            call("1"),
            usage(),
            result("1", &["x"]),
        ];
        assert_eq!(length(&round), Some(1));
        assert_eq!(
            length(&[&round[..], &[answer("b"), usage(), question()]].concat()),
            Some(5)
        );
    }

    #[test]
    fn growing_thread_shares_the_whole_shorter_one() {
        let kinds = [
            attached("go", &["x", "y"]),
            answer("let me see"),
            call("1"),
            result("1", &["x"]),
            answer("b"),
            attached("and?", &[]),
        ];
        let whole = stream(&kinds);
        for length in [1, 4, 6] {
            let part = stream(&kinds[..length]);
            let rows = explain(&thread(&part))
                .iter()
                .map(|turn| turn.blocks.len())
                .sum::<usize>();
            assert_eq!(
                shared_prefix(&thread(&part), &thread(&whole)),
                rows,
                "{length}"
            );
        }
    }

    #[test]
    fn prefix_ends_before_a_different_block() {
        let shared = |old: &[EventKind], new: &[EventKind]| {
            shared_prefix(&thread(&stream(old)), &thread(&stream(new)))
        };
        let rounds = |text| {
            [
                attached("go", &["x", text]),
                call("1"),
                result("1", &["a", text]),
            ]
        };
        assert_eq!(shared(&rounds("y"), &rounds("z")), 2);
        let [question, called, _] = rounds("y");
        let [_, _, other] = rounds("z");
        assert_eq!(
            shared(&rounds("y"), &[question.clone(), called.clone(), other]),
            5
        );
        assert_eq!(shared(&rounds("y"), &[question, called]), 4);
        assert_eq!(shared(&[attached("go", &[])], &[attached("stop", &[])]), 0);
        assert_eq!(
            shared(
                &[attached("go", &["x"])],
                &[attached("go", &["x", "y"]), answer("b")]
            ),
            2
        );
    }

    #[test]
    fn replaced_snapshot_ends_the_prefix() {
        let kinds = [
            attached("go", &["x", "y"]),
            answer("b"),
            attached("and?", &[]),
        ];
        let stream = stream(&kinds);
        let old = thread(&stream);
        let mut new = thread(&stream);
        let Some(Message::User { request, .. }) = new.messages.first_mut() else {
            panic!("a message of the person")
        };
        request.to_mut().resources[1].formatted =
            Some(Payload::Inline("y is elsewhere".to_owned()));
        assert_eq!(shared_prefix(&old, &new), 2);
    }
}
