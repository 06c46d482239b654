//! Counts what requests carry, plainly and through delivery.
//!
//! Bytes are those of the text a model is shown. A request was sent before each answer, with all that stands before the
//! answer. What it has at its start that the request before it had too is read from the provider's prompt cache; the
//! rest is written to it. Streams hold nothing that changes what was sent before it (`Superseded`, `Compaction`): those are
//! decisions of the run, and readers leave them out. So views only grow at their end, and one pass over the last view
//! gives all requests.

use std::{
    borrow::Cow,
    ops::{Add, AddAssign},
};

use jp_conversation::{
    ResponseContent, Stream, ToolCallResponse,
    view::{
        self, AnswerPart, Delivery, Message, NoTexts, Policy, SupersededPolicy, Thread, WhyFull,
        resource_block, shown_text, text_of_missing_answer, text_of_missing_result,
    },
};
use jp_resource::{Payload, ResourceContent, Snapshot};
use jp_tool::StoredBlock;

/// What reading from the cache and writing to it cost, in hundredths of what a byte costs that is in none.
const READ: u64 = 10;
const WRITE: u64 = 125;

/// A conversation, plainly and through delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Everything whole.
    pub plain: Cost,
    /// References to the same content alone.
    pub exact: Cost,
    /// The default policy: references, lines and diffs.
    pub delivered: Cost,
    /// How the default policy delivers tool output.
    pub shares: Shares,
    /// Requests of a person.
    pub turns: u64,
    /// Requests to the model.
    pub requests: u64,
}

/// What the requests of a conversation cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of tool output, each once.
    pub tool_bytes: u64,
    /// Bytes of all requests in hundredths, by what the cache makes them cost.
    pub weighted: u64,
}

/// Tool output by how it is delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// As a reference to the same content.
    pub exact: Share,
    /// As a reference to lines.
    pub range: Share,
    /// As a diff.
    pub diff: Share,
    /// Whole, though it is a resource.
    pub full: Share,
    /// Whole, as it is no resource.
    pub text: Share,
    /// As a line that tells of its absence.
    pub left_out: Share,
}

/// Blocks of tool output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// How many.
    pub blocks: u64,
    /// Their bytes, as they are sent plainly.
    pub bytes: u64,
}

/// Measures a conversation.
#[must_use]
pub fn measure(stream: &Stream) -> Measured {
    let plain = view::thread(stream);
    let exact = view::deliver(stream, &exact_policy(), &mut NoTexts);
    let delivered = view::deliver(stream, &Policy::default(), &mut NoTexts);
    let is_request = |message: &&Message<'_>| matches!(message, Message::Assistant { .. });
    Measured {
        plain: cost(&plain),
        exact: cost(&exact),
        delivered: cost(&delivered),
        shares: shares(&plain, &delivered),
        turns: stream.requests().count() as u64,
        requests: plain.messages.iter().filter(is_request).count() as u64,
    }
}

/// Returns the policy that delivers the same content, and nothing else, as a reference.
fn exact_policy() -> Policy {
    Policy {
        ranges: false,
        diffs: false,
        superseded: SupersededPolicy::Keep,
        ..Policy::default()
    }
}

fn cost(thread: &Thread<'_>) -> Cost {
    let (mut cost, mut before, mut cached) = (Cost::default(), 0, 0);
    for message in &thread.messages {
        if let Message::Assistant { .. } = message {
            cost.weighted += READ * cached + WRITE * (before - cached);
            cached = before;
        }
        before += message_bytes(message);
        if let Message::Tool {
            response: Some(response),
            ..
        } = message
        {
            cost.tool_bytes += result_bytes(response);
        }
    }
    cost
}

fn shares(plain: &Thread<'_>, delivered: &Thread<'_>) -> Shares {
    let mut shares = Shares::default();
    for (plain, delivered) in plain.messages.iter().zip(&delivered.messages) {
        if let (
            Message::Tool {
                response: Some(response),
                ..
            },
            Message::Tool { deliveries, .. },
        ) = (plain, delivered)
        {
            for (block, delivery) in response.content.iter().zip(deliveries) {
                *shares.of(delivery) += Share {
                    blocks: 1,
                    bytes: block_bytes(block),
                };
            }
        }
    }
    shares
}

fn message_bytes(message: &Message<'_>) -> u64 {
    match message {
        Message::User { request, .. } => {
            request.content.len() as u64 + request.resources.iter().map(snapshot_bytes).sum::<u64>()
        }
        Message::Assistant { parts, .. } => parts.iter().map(part_bytes).sum(),
        Message::NoAnswer { .. } => text_of_missing_answer().len() as u64,
        Message::Tool {
            response: Some(response),
            ..
        } => result_bytes(response),
        Message::Tool { response: None, .. } => text_of_missing_result().len() as u64,
    }
}

fn part_bytes(part: &AnswerPart<'_>) -> u64 {
    let bytes = match part {
        AnswerPart::Response(response) => match &response.content {
            ResponseContent::Reasoning(text) | ResponseContent::Message(text) => text.len(),
        },
        AnswerPart::Call(call) => {
            call.name.len() + serde_json::to_string(&call.arguments).map_or(0, |json| json.len())
        }
    };
    bytes as u64
}

fn result_bytes(response: &ToolCallResponse) -> u64 {
    response.content.iter().map(block_bytes).sum()
}

/// Returns how long a block of a result is as a model is shown it; content that is not here counts as it is.
fn block_bytes(block: &StoredBlock) -> u64 {
    match block {
        StoredBlock::Text {
            text: Payload::Inline(text),
            ..
        } => shown_text(block, Cow::Borrowed(&**text)).len() as u64,
        StoredBlock::Text {
            text: Payload::Stored(blob),
            ..
        } => blob.size,
        StoredBlock::Resource { resource, .. } => match shown(resource) {
            Shown::Text(text) => {
                resource_block(resource, &shown_text(block, Cow::Borrowed(text))).len() as u64
            }
            Shown::Bytes(bytes) => bytes,
        },
        StoredBlock::Image(media) | StoredBlock::Audio(media) => match &media.data {
            Payload::Inline(bytes) => bytes.len() as u64,
            Payload::Stored(blob) => blob.size,
        },
        StoredBlock::Question { question } => question.text.len() as u64,
        StoredBlock::Unknown(block) => block.note().len() as u64,
    }
}

fn snapshot_bytes(snapshot: &Snapshot) -> u64 {
    match shown(snapshot) {
        Shown::Text(text) => resource_block(snapshot, text).len() as u64,
        Shown::Bytes(bytes) => bytes,
    }
}

/// What a model is shown of a resource.
enum Shown<'a> {
    Text(&'a str),
    /// So many bytes that are no text, or not here.
    Bytes(u64),
}

fn shown(snapshot: &Snapshot) -> Shown<'_> {
    match (&snapshot.formatted, &snapshot.content) {
        (Some(Payload::Inline(text)), _) | (None, Payload::Inline(ResourceContent::Text(text))) => {
            Shown::Text(text)
        }
        (None, Payload::Inline(ResourceContent::Blob(bytes))) => Shown::Bytes(bytes.len() as u64),
        (Some(Payload::Stored(blob)), _) | (None, Payload::Stored(blob)) => Shown::Bytes(blob.size),
    }
}

impl Shares {
    fn of(&mut self, delivery: &Delivery) -> &mut Share {
        match delivery {
            Delivery::Reference { .. } => &mut self.exact,
            Delivery::Lines { .. } => &mut self.range,
            Delivery::Diff { .. } => &mut self.diff,
            Delivery::Full(WhyFull::NoResource) => &mut self.text,
            Delivery::Full(_) => &mut self.full,
            Delivery::Tombstone { .. } | Delivery::Compacted => &mut self.left_out,
        }
    }

    /// Returns the shares with their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Share); 6] {
        [
            ("exact", self.exact),
            ("range", self.range),
            ("diff", self.diff),
            ("full", self.full),
            ("text", self.text),
            ("left_out", self.left_out),
        ]
    }
}

impl AddAssign for Measured {
    fn add_assign(&mut self, other: Self) {
        self.plain += other.plain;
        self.exact += other.exact;
        self.delivered += other.delivered;
        self.shares += other.shares;
        self.turns += other.turns;
        self.requests += other.requests;
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.tool_bytes += other.tool_bytes;
        self.weighted += other.weighted;
    }
}

impl AddAssign for Shares {
    fn add_assign(&mut self, other: Self) {
        self.exact += other.exact;
        self.range += other.range;
        self.diff += other.diff;
        self.full += other.full;
        self.text += other.text;
        self.left_out += other.left_out;
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Add for Share {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use jp_conversation::{ChatRequest, ChatResponse, Event, EventKind, ToolCallRequest};
    use jp_tool::ContentBlock;
    use serde_json::Map;

    use super::*;
    use crate::recover::Excerpt;

    fn event(kind: EventKind) -> Event {
        Event::new(Default::default(), kind)
    }

    fn read(id: &str, text: &str) -> [EventKind; 2] {
        let excerpt = Excerpt {
            path: "a.rs".to_owned(),
            lines: None,
            text: text.to_owned(),
        };
        let block = excerpt.into_block("/p").unwrap();
        let note = ContentBlock::text("a note").into();
        [
            EventKind::ToolCallRequest(ToolCallRequest {
                id: id.to_owned(),
                name: "read".to_owned(),
                arguments: Map::new(),
                metadata: Map::new(),
            }),
            EventKind::ToolCallResponse(ToolCallResponse {
                id: id.to_owned(),
                content: vec![block, note],
                is_error: false,
                structured_content: None,
                meta: Map::new(),
            }),
        ]
    }

    fn answer(words: &str) -> EventKind {
        EventKind::ChatResponse(ChatResponse::message(words))
    }

    fn request(words: &str) -> EventKind {
        EventKind::ChatRequest(ChatRequest::new(words))
    }

    /// Reads of one file: twice the same, then changed, with answers and another turn between them.
    fn sample() -> Vec<Event> {
        let text: String = (1..=60)
            .map(|n| format!("line {n} of the file\n"))
            .collect();
        let changed = text.replace("line 30 ", "another line ");
        let mut kinds = vec![request("go"), answer("I look.")];
        kinds.extend(read("1", &text));
        kinds.extend(read("2", &text));
        kinds.push(answer("So it is."));
        kinds.push(request("and now?"));
        kinds.extend(read("3", &changed));
        kinds.push(answer("Otherwise."));
        kinds.into_iter().map(event).collect()
    }

    /// Returns how many events there were before each answer.
    fn lengths_before_answers(events: &[Event]) -> Vec<usize> {
        let is_answer = |event: &Event| {
            matches!(
                event.kind,
                EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_)
            )
        };
        let starts =
            |at: &usize| is_answer(&events[*at]) && (*at == 0 || !is_answer(&events[at - 1]));
        (0..events.len()).filter(starts).collect()
    }

    /// Builds the view for each request of its own and compares it with the one before.
    fn cost_of_each_request(events: &[Event], view: impl Fn(&Stream) -> Vec<(u64, String)>) -> u64 {
        let bytes =
            |messages: &[(u64, String)]| messages.iter().map(|(bytes, _)| bytes).sum::<u64>();
        let (mut cost, mut last) = (0, Vec::new());
        for length in lengths_before_answers(events) {
            let request = view(&Stream::from_events(events[..length].to_vec()));
            let same = request
                .iter()
                .zip(&last)
                .take_while(|(a, b)| a == b)
                .count();
            assert_eq!(same, last.len(), "a request starts with the one before it");
            cost += READ * bytes(&request[..same]) + WRITE * bytes(&request[same..]);
            last = request;
        }
        cost
    }

    fn outline(thread: &Thread<'_>) -> Vec<(u64, String)> {
        thread
            .messages
            .iter()
            .map(|message| (message_bytes(message), format!("{message:?}")))
            .collect()
    }

    #[test]
    fn one_pass_costs_what_all_requests_cost() {
        let events = sample();
        let stream = Stream::from_events(events.clone());
        let measured = measure(&stream);
        assert_eq!(
            measured.plain.weighted,
            cost_of_each_request(&events, |s| outline(&view::thread(s)))
        );
        for (policy, measured) in [
            (exact_policy(), measured.exact),
            (Policy::default(), measured.delivered),
        ] {
            let each = cost_of_each_request(&events, |s| {
                outline(&view::deliver(s, &policy, &mut NoTexts))
            });
            assert_eq!(measured.weighted, each, "{policy:?}");
        }
        assert_eq!((measured.turns, measured.requests), (2, 5));
    }

    #[test]
    fn tool_output_counts_once_as_it_is_shown() {
        let events: Vec<Event> = [request("go")]
            .into_iter()
            .chain(read("1", "x\n"))
            .map(event)
            .collect();
        let measured = measure(&Stream::from_events(events));
        assert_eq!(
            measured.plain.tool_bytes,
            ("```rs (a.rs)\nx\n```\n".len() + "a note".len()) as u64
        );
        let total: u64 = measured
            .shares
            .named()
            .iter()
            .map(|(_, share)| share.bytes)
            .sum();
        assert_eq!(total, measured.plain.tool_bytes);
    }

    #[test]
    fn delivery_never_costs_more_than_sending_everything() {
        let measured = measure(&Stream::from_events(sample()));
        let Measured {
            plain,
            exact,
            delivered,
            ..
        } = measured;
        assert!(delivered.tool_bytes <= exact.tool_bytes && exact.tool_bytes <= plain.tool_bytes);
        assert!(delivered.weighted <= exact.weighted && exact.weighted <= plain.weighted);
    }
}
