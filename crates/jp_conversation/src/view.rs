//! Builds the view of a conversation for a model.
//!
//! [`deliver`] is a pure function of the events and a [`Policy`]. Equal events give equal threads, and the thread
//! of a longer stream starts with that of the shorter one. [`thread`] is the same with everything switched off.

mod candidate;
mod cold;
mod compact;
mod coverage;
mod cut;
mod deliver;
mod delivery;
mod diff;
mod explain;
mod hidden;
mod hints;
mod lines;
mod notice;
mod policy;
mod prefix;
mod render;
mod runs;
mod size;
mod superseded;
mod thread;
mod words;

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
};

pub use candidate::SERVER_MARK;
pub use cold::is_cold;
pub use compact::{Compacted, covered_turns};
pub use cut::{Shown, describe_binary, inline_text, shown_text};
pub use delivery::{Call, Delivery, KnownLines, Place, WhyFull};
pub use explain::{BlockRow, TurnRow, explain, explain_for};
pub use hidden::Hidden;
pub use hints::CacheHint;
pub use lines::Span;
pub use policy::{NoTexts, Policy, SupersededPolicy, Texts};
pub use prefix::{last_request, shared_prefix};
pub use render::{
    END_MARK, lacks_newline, resource_block, resource_label, text_of_missing_answer,
    text_of_missing_result,
};
pub use size::{sum, tokens};
pub use thread::{AnswerPart, Message, Thread};

use self::superseded::Dropped;
use crate::{ChatRequest, ChatResponse, Event, EventKind, Stream, ToolCallResponse, Version};

/// Builds the thread of a stream, with references and diffs instead of content that the model already has.
///
/// The delivery of a block depends only on earlier parts of the same request. `texts` is read only to compare
/// content: that of a file that was delivered before and has changed.
#[must_use]
pub fn deliver<'a>(stream: &'a Stream, policy: &Policy, texts: &mut dyn Texts) -> Thread<'a> {
    let always = match policy.superseded {
        SupersededPolicy::Always => find_superseded(stream, policy, texts),
        SupersededPolicy::WhenCold | SupersededPolicy::Keep => Vec::new(),
    };
    let (mut messages, events) = messages(stream);
    let dropped = Dropped::new(stream.events(), always, &messages, &events, policy);
    deliver::deliver_resources(&mut messages, &events, &dropped, policy, texts);
    let mut thread = Thread { messages };
    notice::add(&mut thread, &events, stream);
    thread
}

/// Returns the versions that newer ones have replaced, if leaving them out saves as much as the policy requires.
///
/// A newer version replaces an older one if all of it is visible. A version stays if a remaining one builds on
/// it. If only outdated versions build on it, it goes together with them. If you record the versions in a
/// `superseded` event, later requests leave them out.
#[must_use]
pub fn find_superseded(stream: &Stream, policy: &Policy, texts: &mut dyn Texts) -> Vec<Version> {
    if policy.superseded == SupersededPolicy::Keep {
        return Vec::new();
    }
    let recorded = Policy {
        superseded: SupersededPolicy::WhenCold,
        ..policy.clone()
    };
    superseded::outdated_versions(&deliver(stream, &recorded, texts).messages, policy)
}

/// Builds the thread of a stream with all content whole, except for parts that its compactions leave out.
///
/// An answer that was cut off belongs to the thread if a request of the user follows it. Until then, the same
/// request can be sent again, and the new answer replaces the old one.
#[must_use]
pub fn thread(stream: &Stream) -> Thread<'_> {
    let (messages, events) = messages(stream);
    let mut thread = Thread { messages };
    notice::add(&mut thread, &events, stream);
    thread
}

/// Builds the messages without notes. Also returns the index of each message's event.
fn messages(stream: &Stream) -> (Vec<Message<'_>>, Vec<usize>) {
    let mut responses = pair_calls(stream.events());
    let mut builder = Builder::default();
    for (index, event) in stream.events().iter().enumerate() {
        builder.event = index;
        match &event.kind {
            EventKind::ChatRequest(request) => builder.request(request),
            EventKind::ChatResponse(response) => builder.part(AnswerPart::Response(response), None),
            EventKind::ToolCallRequest(call) => {
                builder.part(AnswerPart::Call(call), responses.remove(&index));
            }
            EventKind::ToolCallResponse(_) => builder.end_answer(),
            _ => {}
        }
    }
    builder.drop_cut_off();
    builder.end_answer();
    let (mut messages, mut origins) = (builder.messages, builder.events);
    compact::apply(stream.events(), &mut messages, &mut origins);
    (messages, origins)
}

/// Finds the response of each call, by the events' indexes.
///
/// Older conversations use an id several times, so the oldest open call with an id gets the response. A new
/// request closes all calls: a turn that was sent without a result stays without one.
fn pair_calls(events: &[Event]) -> HashMap<usize, (usize, &ToolCallResponse)> {
    let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let mut responses = HashMap::new();
    for (index, event) in events.iter().enumerate() {
        match &event.kind {
            EventKind::ChatRequest(_) => open.clear(),
            EventKind::ToolCallRequest(call) => open.entry(&call.id).or_default().push_back(index),
            EventKind::ToolCallResponse(response) => {
                if let Some(call) = open.get_mut(&*response.id).and_then(VecDeque::pop_front) {
                    responses.insert(call, (index, response));
                }
            }
            _ => {}
        }
    }
    responses
}

#[derive(Default)]
struct Builder<'a> {
    messages: Vec<Message<'a>>,
    /// The index of each message's event; for an answer, of the event that ends it.
    events: Vec<usize>,
    /// The index of the current event.
    event: usize,
    turn: usize,
    /// The number of calls in the turn so far.
    calls: usize,
    /// The parts of the current answer. Each call has its response and the index of the response's event.
    parts: Vec<(AnswerPart<'a>, Option<(usize, &'a ToolCallResponse)>)>,
}

impl<'a> Builder<'a> {
    fn request(&mut self, request: &'a ChatRequest) {
        self.end_answer();
        // The request was interrupted before its answer.
        if let Some(Message::User { turn, .. }) = self.messages.last() {
            let turn = *turn;
            self.push(Message::NoAnswer { turn }, self.event);
        }
        self.turn += 1;
        self.calls = 0;
        let deliveries = vec![Delivery::default(); request.resources.len()];
        let message = Message::User {
            turn: self.turn,
            request: Cow::Borrowed(request),
            deliveries,
        };
        self.push(message, self.event);
    }

    fn push(&mut self, message: Message<'a>, event: usize) {
        self.messages.push(message);
        self.events.push(event);
    }

    fn part(&mut self, part: AnswerPart<'a>, response: Option<(usize, &'a ToolCallResponse)>) {
        self.drop_cut_off();
        self.parts.push((part, response));
    }

    /// Drops an answer that was cut off. No part of the same answer can follow it, so this is called before a part
    /// is added.
    fn drop_cut_off(&mut self) {
        if let Some((
            AnswerPart::Response(ChatResponse {
                incomplete: Some(_),
                ..
            }),
            _,
        )) = self.parts.last()
        {
            self.parts.clear();
        }
    }

    fn end_answer(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let (turn, answer) = (self.turn, std::mem::take(&mut self.parts));
        let parts = answer.iter().map(|(part, _)| *part).collect();
        self.push(Message::Assistant { turn, parts }, self.event);
        for (part, response) in answer {
            if let AnswerPart::Call(call) = part {
                let event = response.map_or(self.event, |(event, _)| event);
                let response = response.map(|(_, response)| hidden::shown_response(response));
                let blocks = response
                    .as_ref()
                    .map_or(0, |response| response.content.len());
                let deliveries = vec![Delivery::default(); blocks];
                self.calls += 1;
                let number = self.calls;
                self.push(
                    Message::Tool {
                        turn,
                        number,
                        call,
                        response,
                        deliveries,
                    },
                    event,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::fixtures::{call, stream};

    fn result(id: &str, structured: i32) -> EventKind {
        EventKind::ToolCallResponse(ToolCallResponse {
            id: id.to_owned(),
            content: vec![],
            is_error: false,
            structured_content: Some(structured.into()),
            meta: Map::new(),
        })
    }

    fn outline(stream: &Stream) -> Vec<String> {
        let line = |message: &Message<'_>| match message {
            Message::User { turn, request, .. } => format!("{turn} user {}", request.content),
            Message::Assistant { turn, parts } => format!("{turn} assistant {}", parts.len()),
            Message::NoAnswer { turn } => format!("{turn} no answer"),
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => {
                let result = response
                    .as_ref()
                    .and_then(|response| response.structured_content.clone());
                format!(
                    "{turn} tool {} {:?}",
                    call.id,
                    result.map(|value| value.to_string())
                )
            }
        };
        thread(stream).messages.iter().map(line).collect()
    }

    #[test]
    fn results_follow_their_calls_in_call_order() {
        let stream = stream(vec![
            EventKind::ChatRequest(ChatRequest::new("go")),
            EventKind::ChatResponse(ChatResponse::message("let me look")),
            call("1"),
            call("2"),
            result("2", 20),
            result("1", 10),
            EventKind::ChatResponse(ChatResponse::message("done")),
        ]);
        assert_eq!(
            outline(&stream),
            [
                "1 user go",
                "1 assistant 3",
                "1 tool 1 Some(\"10\")",
                "1 tool 2 Some(\"20\")",
                "1 assistant 1"
            ]
        );
    }

    #[test]
    fn repeated_ids_pair_each_with_its_own_result() {
        let stream = stream(vec![call("1"), result("1", 10), call("1"), result("1", 20)]);
        assert_eq!(
            outline(&stream),
            [
                "0 assistant 1",
                "0 tool 1 Some(\"10\")",
                "0 assistant 1",
                "0 tool 1 Some(\"20\")"
            ]
        );
    }

    #[test]
    fn unanswered_request_is_closed_before_the_next() {
        let request = || EventKind::ChatRequest(ChatRequest::new("go"));
        let stream = stream(vec![request(), request()]);
        assert_eq!(outline(&stream), ["1 user go", "1 no answer", "2 user go"]);
    }

    #[test]
    fn cut_off_answer_stays_only_before_a_request() {
        let request = || EventKind::ChatRequest(ChatRequest::new("go"));
        let half = || {
            let incomplete = Some("connection lost".to_owned());
            EventKind::ChatResponse(ChatResponse {
                incomplete,
                ..ChatResponse::message("ha")
            })
        };
        let thought = || EventKind::ChatResponse(ChatResponse::reasoning("hm"));
        let whole = || EventKind::ChatResponse(ChatResponse::message("half"));
        assert_eq!(
            outline(&stream(vec![request(), thought(), half()])),
            ["1 user go"]
        );
        assert_eq!(
            outline(&stream(vec![request(), thought(), half(), request()])),
            ["1 user go", "1 assistant 2", "2 user go"]
        );
        assert_eq!(
            outline(&stream(vec![request(), thought(), half(), half(), whole()])),
            ["1 user go", "1 assistant 1"]
        );
        assert_eq!(
            outline(&stream(vec![
                request(),
                half(),
                call("1"),
                result("1", 1),
                half(),
                whole()
            ])),
            [
                "1 user go",
                "1 assistant 1",
                "1 tool 1 Some(\"1\")",
                "1 assistant 1"
            ]
        );
    }

    #[test]
    fn late_result_does_not_change_a_turn_that_was_sent() {
        let request = || EventKind::ChatRequest(ChatRequest::new("go"));
        let stream = stream(vec![
            request(),
            call("1"),
            request(),
            call("1"),
            result("1", 10),
        ]);
        let outline = outline(&stream);
        assert_eq!(
            (&*outline[2], &*outline[5]),
            ("1 tool 1 None", "2 tool 1 Some(\"10\")")
        );
    }

    #[test]
    fn interrupted_call_has_no_dangling_end() {
        let request = || EventKind::ChatRequest(ChatRequest::new("go"));
        let stream = stream(vec![request(), call("1"), request()]);
        assert_eq!(
            outline(&stream),
            ["1 user go", "1 assistant 1", "1 tool 1 None", "2 user go"]
        );
    }

    #[test]
    fn growing_stream_keeps_its_thread_as_a_prefix() {
        let kinds = vec![
            EventKind::ChatRequest(ChatRequest::new("a")),
            call("1"),
            result("1", 1),
            EventKind::ChatResponse(ChatResponse::message("b")),
            EventKind::ChatRequest(ChatRequest::new("c")),
        ];
        let whole = stream(kinds.clone());
        let whole = thread(&whole).messages;
        for length in [1, 3, 4] {
            let part = stream(&kinds[..length]);
            let part = thread(&part).messages;
            assert_eq!(part[..], whole[..part.len()]);
        }
    }
}
