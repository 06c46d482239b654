//! Counts the bytes of a conversation's requests, without delivery and with it.
//!
//! The bytes are those of the text that the model receives. Before each answer, a request was sent
//! with everything before the answer. The provider reads the part that the previous request also
//! had from its prompt cache, and writes the rest to it.
//!
//! The streams contain no event that changes earlier messages (`Superseded`, `Compaction`), because
//! the readers leave out such decisions of the recorded run. A view therefore only grows at its
//! end, and one pass over the last view gives all requests.

use std::{borrow::Cow, ops::AddAssign};

use jp_conversation::{
    ResponseContent, Stream, ToolCallResponse,
    view::{
        self, AnswerPart, Delivery, Message, NoTexts, Policy, SupersededPolicy, Thread, WhyFull,
        resource_block, shown_text, text_of_missing_answer, text_of_missing_result,
    },
};
use jp_resource::{Payload, ResourceContent, Snapshot};
use jp_tool::StoredBlock;

/// The price of a byte read from the prompt cache, in hundredths of an uncached byte. The prices
/// are those of Anthropic's API.
const READ: u64 = 10;
/// The price of a byte written to the prompt cache, in hundredths of an uncached byte.
const WRITE: u64 = 125;

/// The measurement of a conversation, without delivery and with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// The cost if everything is sent whole.
    pub plain: Cost,
    /// The cost if only identical content is replaced with references.
    pub exact: Cost,
    /// The cost under the default policy: references, lines and diffs.
    pub delivered: Cost,
    /// The tool output by its delivery under the default policy.
    pub shares: Shares,
    /// The number of messages of the user.
    pub turns: u64,
    /// The number of requests to the model.
    pub requests: u64,
}

/// The cost of a conversation's requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// The bytes of tool output, each output counted once.
    pub tool_bytes: u64,
    /// The cost of all requests, in hundredths of an uncached byte.
    pub weighted: u64,
}

/// The tool output by its form of delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// References to identical content.
    pub exact: Share,
    /// References to lines.
    pub range: Share,
    /// Diffs.
    pub diff: Share,
    /// Resources that are sent whole.
    pub full: Share,
    /// Blocks that are sent whole because they aren't resources.
    pub text: Share,
    /// Blocks that a short note replaces.
    pub left_out: Share,
}

/// The size of some blocks of tool output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of blocks.
    pub blocks: u64,
    /// Their bytes without delivery.
    pub bytes: u64,
}

/// Measures a conversation.
#[must_use]
pub fn measure(stream: &Stream) -> Measured {
    let plain = view::thread(stream);
    let exact = view::deliver(stream, &exact_policy(), &mut NoTexts);
    let delivered = view::deliver(stream, &Policy::default(), &mut NoTexts);
    // One request was sent before each answer.
    let requests = plain
        .messages
        .iter()
        .filter(|message| matches!(message, Message::Assistant { .. }));
    Measured {
        plain: add_up_cost(&plain),
        exact: add_up_cost(&exact),
        delivered: add_up_cost(&delivered),
        shares: add_up_shares(&plain, &delivered),
        turns: stream.requests().count() as u64,
        requests: requests.count() as u64,
    }
}

/// Returns the policy that replaces only identical content.
fn exact_policy() -> Policy {
    Policy {
        ranges: false,
        diffs: false,
        superseded: SupersededPolicy::Keep,
        ..Policy::default()
    }
}

fn add_up_cost(thread: &Thread<'_>) -> Cost {
    let (mut cost, mut before, mut cached) = (Cost::default(), 0, 0);
    for message in &thread.messages {
        if let Message::Assistant { .. } = message {
            // This answer's request carried all bytes before it. Those of the previous request are
            // in the cache.
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

fn add_up_shares(plain: &Thread<'_>, delivered: &Thread<'_>) -> Shares {
    let mut shares = Shares::default();
    // Delivery changes blocks but neither adds nor removes messages, so both views pair up.
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
                *shares.share_mut(delivery) += Share {
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

/// Returns the length of a result's block in the form that the model receives.
///
/// Content that isn't loaded counts with its stored size.
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
        StoredBlock::Resource { resource, .. } => match shown_form(resource) {
            ShownForm::Text(text) => {
                resource_block(resource, &shown_text(block, Cow::Borrowed(text))).len() as u64
            }
            ShownForm::Bytes(bytes) => bytes,
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
    match shown_form(snapshot) {
        ShownForm::Text(text) => resource_block(snapshot, text).len() as u64,
        ShownForm::Bytes(bytes) => bytes,
    }
}

/// The form of a resource that the model receives.
enum ShownForm<'a> {
    Text(&'a str),
    /// The size of content that is binary or isn't loaded.
    Bytes(u64),
}

fn shown_form(snapshot: &Snapshot) -> ShownForm<'_> {
    match (&snapshot.formatted, &snapshot.content) {
        (Some(Payload::Inline(text)), _) | (None, Payload::Inline(ResourceContent::Text(text))) => {
            ShownForm::Text(text)
        }
        (None, Payload::Inline(ResourceContent::Blob(bytes))) => {
            ShownForm::Bytes(bytes.len() as u64)
        }
        (Some(Payload::Stored(blob)), _) | (None, Payload::Stored(blob)) => {
            ShownForm::Bytes(blob.size)
        }
    }
}

impl Shares {
    /// Returns the share that a block with this delivery belongs to.
    fn share_mut(&mut self, delivery: &Delivery) -> &mut Share {
        match delivery {
            Delivery::Reference { .. } => &mut self.exact,
            Delivery::Lines { .. } => &mut self.range,
            Delivery::Diff { .. } => &mut self.diff,
            Delivery::Full(WhyFull::NoResource) => &mut self.text,
            Delivery::Full(_) => &mut self.full,
            Delivery::Tombstone { .. } | Delivery::Compacted => &mut self.left_out,
        }
    }

    /// Returns the shares with their names in the JSON report.
    #[must_use]
    pub fn with_names(&self) -> [(&'static str, Share); 6] {
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
        self.blocks += other.blocks;
        self.bytes += other.bytes;
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

    fn is_answer(event: &Event) -> bool {
        matches!(
            event.kind,
            EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_)
        )
    }

    /// Returns the number of events before each answer.
    fn lengths_before_answers(events: &[Event]) -> Vec<usize> {
        (0..events.len())
            .filter(|&at| is_answer(&events[at]) && (at == 0 || !is_answer(&events[at - 1])))
            .collect()
    }

    fn bytes(messages: &[(u64, String)]) -> u64 {
        messages.iter().map(|(bytes, _)| bytes).sum()
    }

    /// Builds a view for each request and compares it with the one before.
    fn cost_of_each_request(events: &[Event], view: impl Fn(&Stream) -> Vec<(u64, String)>) -> u64 {
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
            .with_names()
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
