//! Shortens older turns according to the conversation's `compaction` events. The events don't change.
//!
//! The turns that an event covers depend only on its place in the stream. So a conversation that grows keeps its
//! bytes, and in a fork with fewer turns, the event covers the remaining ones.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use jp_resource::{Checksum, Payload, Snapshot};
use jp_tool::{ContentBlock, StoredBlock};

use super::{AnswerPart, Delivery, Message, cut::shown_bytes, render::one_line};
use crate::{
    ChatRequest, Compaction, Event, EventKind, ResponseContent, Strip,
    stream::{awaits_after, awaits_answer},
};

/// The length in bytes below which text stays, because a line in its place would save too little.
const SMALL: u64 = 200;
/// The most resources in the list below a summary. The list must not become longer than the summary.
const MOST_NAMED: usize = 50;

/// The shortened turns. Each number counts turns from the first on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted<'a> {
    /// The number of turns without their reasoning.
    pub reasoning: usize,
    /// The number of turns without the results of tools.
    pub tools: usize,
    /// The number of turns that a summary replaces.
    pub summarised: usize,
    /// The summary.
    pub summary: &'a str,
}

impl<'a> Compacted<'a> {
    /// Adds up the compactions of a conversation. A reset cancels those before it.
    #[must_use]
    pub fn from_events(events: &'a [Event]) -> Self {
        let mut compacted = Self::default();
        let (mut turns, mut awaits) = (0, false);
        for event in events {
            awaits = awaits_after(event).unwrap_or(awaits);
            match &event.kind {
                EventKind::ChatRequest(_) => turns += 1,
                EventKind::Compaction(compaction) => {
                    if compaction.reset {
                        compacted = Self::default();
                    }
                    compacted.add(
                        compaction,
                        count_covered(turns, compaction.keep_last, awaits),
                    );
                }
                _ => {}
            }
        }
        compacted
    }

    fn add(&mut self, compaction: &'a Compaction, covered: usize) {
        for strip in &compaction.strip {
            let turns = match strip {
                Strip::Reasoning => &mut self.reasoning,
                Strip::Tools => &mut self.tools,
            };
            *turns = covered.max(*turns);
        }
        // A later summary of fewer turns would bring back turns that an earlier one replaced.
        if let Some(summary) = compaction.summary.as_deref().filter(|_| covered > 0)
            && covered >= self.summarised
        {
            (self.summarised, self.summary) = (covered, summary);
        }
    }

    /// Returns true if nothing is shortened.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the number of turns that a compaction at the end of these events covers: all but the last `keep_last`,
/// and never one that waits for its answer.
#[must_use]
pub fn covered_turns(events: &[Event], keep_last: usize) -> usize {
    let turns = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ChatRequest(_)))
        .count();
    count_covered(turns, keep_last, awaits_answer(events))
}

fn count_covered(turns: usize, keep_last: usize, awaits: bool) -> usize {
    let kept = if keep_last == 0 {
        usize::from(awaits)
    } else {
        keep_last
    };
    turns.saturating_sub(kept)
}

/// Shortens the messages of the turns that the compactions cover. `origins` has the index of each message's event.
pub(super) fn apply(events: &[Event], messages: &mut Vec<Message<'_>>, origins: &mut Vec<usize>) {
    let compacted = Compacted::from_events(events);
    if compacted.is_nothing() {
        return;
    }
    // First, because it removes messages that need no shortening then.
    summarise(compacted, messages, origins);
    strip_reasoning(compacted.reasoning, messages);
    let covered = messages
        .iter_mut()
        .filter(|message| (1..=compacted.tools).contains(&message.turn()));
    covered.for_each(strip_results);
}

/// Leaves out the reasoning of the first turns. A placeholder replaces an answer that only had reasoning, because
/// many models require alternating messages.
fn strip_reasoning(turns: usize, messages: &mut Vec<Message<'_>>) {
    for message in messages.iter_mut() {
        let Message::Assistant { turn, parts } = message else {
            continue;
        };
        if !(1..=turns).contains(turn) {
            continue;
        }
        // Calls stay, because their results follow.
        parts.retain(|part| !is_reasoning(part));
        if parts.is_empty() {
            *message = Message::NoAnswer { turn: *turn };
        }
    }
}

fn is_reasoning(part: &AnswerPart<'_>) -> bool {
    matches!(part, AnswerPart::Response(response) if matches!(response.content, ResponseContent::Reasoning(_)))
}

/// Replaces each block of a result with a line, if that is shorter.
fn strip_results(message: &mut Message<'_>) {
    let Message::Tool {
        response: Some(response),
        deliveries,
        ..
    } = message
    else {
        return;
    };
    for index in 0..response.content.len() {
        if let Some(line) = left_out_line(&response.content[index]) {
            response.to_mut().content[index] = ContentBlock::text(line).into();
            if let Some(delivery) = deliveries.get_mut(index) {
                *delivery = Delivery::Compacted;
            }
        }
    }
}

/// Returns the line that replaces a block of a result; `None` if the block isn't longer.
fn left_out_line(block: &StoredBlock) -> Option<String> {
    let bytes = shown_bytes(block);
    let description = match block {
        StoredBlock::Text { text, .. } if bytes >= SMALL => {
            let blob = text.blob().map(|blob| (blob.checksum, blob.size));
            let (checksum, size) = blob.unwrap_or_else(|| inline_blob(text));
            format!(
                "text, {size} bytes; `read_more` with uri \"jp://blob/{checksum}\" shows it again"
            )
        }
        StoredBlock::Resource { resource, .. } => {
            format!(
                "{}; repeat the call to see the current content",
                describe(resource)
            )
        }
        StoredBlock::Image(media) | StoredBlock::Audio(media) => {
            format!(
                "{}, {bytes} bytes; repeating the call may show it again",
                one_line(&media.mime_type)
            )
        }
        StoredBlock::Text { .. } | StoredBlock::Question { .. } | StoredBlock::Unknown(_) => {
            return None;
        }
    };
    let line = format!("[Left out to shorten this conversation: {description}.]\n");
    ((line.len() as u64) < bytes).then_some(line)
}

fn inline_blob(text: &Payload<String>) -> (Checksum, u64) {
    let text = text.inline().map_or("", String::as_str);
    (Checksum::compute(text.as_bytes()), text.len() as u64)
}

/// Describes a resource, including its checksum, so that it differs from its other versions.
fn describe(resource: &Snapshot) -> String {
    let blob = resource.blob_ref();
    let mut text = one_line(&resource.uri).into_owned();
    if let Some(mime_type) = &resource.mime_type {
        _ = write!(text, ", {}", one_line(mime_type));
    }
    _ = write!(
        text,
        ", {} bytes, checksum {}",
        blob.size,
        blob.checksum.short()
    );
    text
}

/// Replaces turns with their summary. It comes before the words of the next request, or is a separate message if
/// there is no next request.
fn summarise(compacted: Compacted<'_>, messages: &mut Vec<Message<'_>>, origins: &mut Vec<usize>) {
    let turns = compacted.summarised;
    if turns == 0 {
        return;
    }
    let kept = messages
        .iter()
        .position(|message| message.turn() > turns)
        .unwrap_or(messages.len());
    let covered: Vec<_> = messages.drain(..kept).collect();
    origins.drain(..kept);
    let text = summary_text(compacted, &covered);
    match messages.first_mut() {
        Some(Message::User { request, .. }) => {
            let request = request.to_mut();
            request.content = format!("{text}\n{}", request.content);
        }
        _ => {
            let request = Cow::Owned(ChatRequest::new(text));
            messages.insert(
                0,
                Message::User {
                    turn: turns,
                    request,
                    deliveries: Vec::new(),
                },
            );
            // The summary has no event. Any index will do, because nothing was delivered before it.
            origins.insert(0, 0);
        }
    }
}

fn summary_text(compacted: Compacted<'_>, covered: &[Message<'_>]) -> String {
    // Turns keep their numbers, because references use them. In a fork they are counted again.
    let turn = compacted.summarised;
    let heading =
        format!("Summary of this conversation up to turn {turn}, which replaces those turns:");
    let mut text = format!("{heading}\n\n{}\n", compacted.summary.trim());
    let resources = newest_versions(covered);
    if resources.is_empty() {
        return text;
    }
    text.push_str("\nResources from those turns. Their content is left out, too; read or request what you need:\n\n");
    for resource in resources.iter().take(MOST_NAMED) {
        let label = resource
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!("{}: ", one_line(name)));
        _ = writeln!(text, "- {label}{}", describe(resource));
    }
    if let Some(more @ 1..) = resources.len().checked_sub(MOST_NAMED) {
        _ = writeln!(text, "- and {more} more");
    }
    text
}

/// Returns the newest version of each attached or returned resource, the newest resource first.
fn newest_versions<'m>(messages: &'m [Message<'_>]) -> Vec<&'m Snapshot> {
    let mut seen = HashMap::new();
    let resources = messages.iter().flat_map(resources);
    resources
        .enumerate()
        .for_each(|(index, resource)| _ = seen.insert(&resource.uri, (index, resource)));
    let mut newest: Vec<_> = seen.into_values().collect();
    newest.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
    newest.into_iter().map(|(_, resource)| resource).collect()
}

fn resources<'m>(message: &'m Message<'_>) -> Vec<&'m Snapshot> {
    match message {
        Message::User { request, .. } => request.resources.iter().collect(),
        Message::Tool {
            response: Some(response),
            ..
        } => response.content.iter().filter_map(block_resource).collect(),
        Message::Assistant { .. }
        | Message::NoAnswer { .. }
        | Message::Tool { response: None, .. } => Vec::new(),
    }
}

fn block_resource(block: &StoredBlock) -> Option<&Snapshot> {
    match block {
        StoredBlock::Resource { resource, .. } => Some(resource),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{BlobRef, Encoding, Resource, ResourceContent};
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;
    use crate::{
        ChatResponse, Stream, ToolCallResponse,
        fixtures::{call, stream},
        view::{Shown, Thread, inline_text, thread},
    };

    fn result(id: &str, content: Vec<StoredBlock>) -> EventKind {
        let (id, is_error, structured_content) = (id.to_owned(), true, None);
        EventKind::ToolCallResponse(ToolCallResponse {
            id,
            content,
            is_error,
            structured_content,
            meta: Map::new(),
        })
    }

    fn text(words: &str) -> StoredBlock {
        ContentBlock::text(words).into()
    }

    fn file(uri: &str, content: &str) -> Snapshot {
        let resource = Resource::<ResourceContent, String>::new(
            uri,
            ResourceContent::Text(content.to_owned()),
        );
        resource.with_mime_type("text/plain").into()
    }

    fn request(words: &str) -> EventKind {
        EventKind::ChatRequest(ChatRequest::new(words))
    }

    fn compaction(keep_last: usize, strip: &[Strip]) -> EventKind {
        EventKind::Compaction(Compaction {
            keep_last,
            strip: strip.to_vec(),
            ..Compaction::default()
        })
    }

    fn summary(keep_last: usize, words: &str) -> EventKind {
        let summary = Some(words.to_owned());
        EventKind::Compaction(Compaction {
            keep_last,
            summary,
            ..Compaction::default()
        })
    }

    fn reset() -> EventKind {
        EventKind::Compaction(Compaction {
            reset: true,
            ..Compaction::default()
        })
    }

    /// A turn with reasoning, a call, its result of 1,000 bytes and an answer.
    fn turn(number: usize) -> Vec<EventKind> {
        vec![
            request(&format!("question {number}")),
            EventKind::ChatResponse(ChatResponse::reasoning("hm")),
            call(&number.to_string()),
            result(
                &number.to_string(),
                vec![text(&"x".repeat(1000)), text("short")],
            ),
            EventKind::ChatResponse(ChatResponse::message(format!("answer {number}"))),
        ]
    }

    fn turns(numbers: std::ops::RangeInclusive<usize>) -> Vec<EventKind> {
        numbers.flat_map(turn).collect()
    }

    /// Writes for each turn `r` where its reasoning is sent and `t` where its result is.
    fn sent(stream: &Stream) -> Vec<String> {
        let thread = thread(stream);
        let mut turns: Vec<String> = Vec::new();
        for message in &thread.messages {
            turns.resize(message.turn().max(turns.len()), String::new());
            let turn = turns.last_mut().unwrap();
            match message {
                Message::Assistant { parts, .. } if parts.iter().any(is_reasoning) => {
                    turn.push('r')
                }
                Message::Tool {
                    response: Some(response),
                    ..
                } if shown_bytes(&response.content[0]) == 1000 => {
                    turn.push('t');
                }
                _ => {}
            }
        }
        turns
    }

    fn words<'t>(thread: &'t Thread<'_>) -> Vec<&'t str> {
        let words = |message: &'t Message<'_>| match message {
            Message::User { request, .. } => Some(request.content.as_str()),
            _ => None,
        };
        thread.messages.iter().filter_map(words).collect()
    }

    #[test]
    fn covered_turns_lack_the_stripped_content() {
        use Strip::{Reasoning, Tools};
        let mut kinds = turns(1..=3);
        kinds.push(compaction(2, &[Reasoning]));
        assert_eq!(sent(&stream(kinds.clone())), ["t", "rt", "rt"]);
        kinds.extend(turn(4));
        assert_eq!(sent(&stream(kinds.clone())), ["t", "rt", "rt", "rt"]);
        kinds.push(compaction(2, &[Tools]));
        kinds.extend(turn(5));
        assert_eq!(sent(&stream(kinds.clone())), ["", "r", "rt", "rt", "rt"]);
        kinds.push(reset());
        assert_eq!(sent(&stream(kinds.clone())), ["rt"; 5]);
        kinds.push(compaction(9, &[Reasoning, Tools]));
        assert_eq!(sent(&stream(kinds.clone())), ["rt"; 5]);
        kinds.push(compaction(0, &[Reasoning, Tools]));
        assert_eq!(sent(&stream(kinds)), [""; 5]);
    }

    #[test]
    fn fork_covers_the_remaining_turns() {
        let mut kinds = turns(1..=4);
        kinds.push(compaction(2, &[Strip::Reasoning]));
        let whole = stream(kinds);
        let fork = |turns| {
            let kept = whole.kept_by_fork(turns);
            Stream::from_events(
                kept.iter()
                    .map(|index| whole.events()[*index].clone())
                    .collect(),
            )
        };
        assert_eq!(sent(&fork(3)), ["t", "rt", "rt"]);
        assert_eq!(sent(&fork(2)), ["rt", "rt"]);
    }

    #[test]
    fn turn_that_waits_for_its_answer_is_not_covered() {
        let mut kinds = turns(1..=1);
        kinds.extend(turn(2).into_iter().take(4));
        assert_eq!(covered_turns(stream(kinds.clone()).events(), 0), 1);
        kinds.push(compaction(0, &[Strip::Reasoning, Strip::Tools]));
        kinds.push(EventKind::ChatResponse(ChatResponse::message("answer 2")));
        assert_eq!(sent(&stream(kinds)), ["", "rt"]);
    }

    #[test]
    fn answer_of_only_reasoning_becomes_a_placeholder() {
        let thought = EventKind::ChatResponse(ChatResponse::reasoning("hm"));
        let stream = stream(vec![
            request("a"),
            thought,
            compaction(0, &[Strip::Reasoning]),
            request("b"),
        ]);
        let thread = thread(&stream);
        assert!(matches!(
            thread.messages[..],
            [
                Message::User { .. },
                Message::NoAnswer { turn: 1 },
                Message::User { .. }
            ]
        ));
    }

    #[test]
    fn line_says_how_to_read_a_left_out_result() {
        let long = "line\n".repeat(200);
        let mut cut = text(&long);
        Shown::mark(Shown::within(&long, 600), &mut cut);
        let stored = StoredBlock::Text {
            text: Payload::Stored(BlobRef::for_content(long.as_bytes(), Encoding::Utf8)),
            annotations: None,
            meta: None,
        };
        let resource = |content: &str| StoredBlock::Resource {
            resource: file("file:///p/a.txt", content),
            meta: None,
        };
        let media = jp_tool::Media {
            data: Payload::Inline(vec![0; 5000]),
            mime_type: "image/png".to_owned(),
            annotations: None,
            meta: None,
        };
        let blocks = vec![
            resource(&long),
            text(&long),
            stored,
            cut,
            StoredBlock::Image(media),
            text(&"y".repeat(199)),
            resource("tiny"),
        ];
        let stream = stream(vec![
            request("a"),
            call("1"),
            result("1", blocks),
            EventKind::ChatResponse(ChatResponse::message("b")),
            compaction(0, &[Strip::Tools]),
        ]);
        let thread = thread(&stream);
        let Message::Tool {
            response: Some(response),
            deliveries,
            ..
        } = &thread.messages[2]
        else {
            panic!("{thread:?}")
        };
        let shown: String = response.content[..5]
            .iter()
            .filter_map(inline_text)
            .collect();
        insta::assert_snapshot!(shown, @r#"
        [Left out to shorten this conversation: file:///p/a.txt, text/plain, 1000 bytes, checksum a9624812017c; repeat the call to see the current content.]
        [Left out to shorten this conversation: text, 1000 bytes; `read_more` with uri "jp://blob/a9624812017c6dd737a0aae88b51e267a80410a42c1f911d480046074230b55d" shows it again.]
        [Left out to shorten this conversation: text, 1000 bytes; `read_more` with uri "jp://blob/a9624812017c6dd737a0aae88b51e267a80410a42c1f911d480046074230b55d" shows it again.]
        [Left out to shorten this conversation: text, 1000 bytes; `read_more` with uri "jp://blob/a9624812017c6dd737a0aae88b51e267a80410a42c1f911d480046074230b55d" shows it again.]
        [Left out to shorten this conversation: image/png, 5000 bytes; repeating the call may show it again.]
        "#);
        let is_compacted = |delivery: &Delivery| *delivery == Delivery::Compacted;
        assert_eq!(
            deliveries.iter().map(is_compacted).collect::<Vec<_>>(),
            [true, true, true, true, true, false, false]
        );
        assert!(response.is_error);
        assert_eq!(
            response.content[5..],
            [text(&"y".repeat(199)), resource("tiny")]
        );
    }

    #[test]
    fn summary_precedes_the_words_of_the_first_kept_request() {
        let attached = |content: &str| {
            EventKind::ChatRequest(ChatRequest {
                resources: vec![
                    file("file:///p/a.txt", content),
                    file("file:///p/b.txt", "b"),
                ],
                ..ChatRequest::new("See.")
            })
        };
        let answer = || EventKind::ChatResponse(ChatResponse::message("Yes."));
        let kinds = vec![
            attached("old"),
            answer(),
            attached("new"),
            answer(),
            summary(0, "All is well.\n"),
        ];
        let pending = stream(kinds.clone());
        let before = thread(&pending);
        assert_eq!(before.messages.len(), 1);
        insta::assert_snapshot!(words(&before)[0], @r"
        Summary of this conversation up to turn 2, which replaces those turns:

        All is well.

        Resources from those turns. Their content is left out, too; read or request what you need:

        - file:///p/b.txt, text/plain, 1 bytes, checksum 3e23e8160039
        - file:///p/a.txt, text/plain, 3 bytes, checksum 11507a0e2f5e
        ");
        let mut grown = kinds.clone();
        grown.push(request("And now?"));
        let grown = stream(grown);
        assert_eq!(
            words(&thread(&grown)),
            [format!("{}\nAnd now?", words(&before)[0])]
        );
    }

    #[test]
    fn many_resources_below_a_summary_are_counted() {
        let resources = (0..60)
            .map(|n| file(&format!("file:///p/{n}"), "x"))
            .collect();
        let kinds = vec![
            EventKind::ChatRequest(ChatRequest {
                resources,
                ..ChatRequest::new("See.")
            }),
            EventKind::ChatResponse(ChatResponse::message("Yes.")),
            summary(0, "Well."),
        ];
        let stream = stream(kinds);
        let thread = thread(&stream);
        let named: Vec<_> = words(&thread)[0]
            .lines()
            .filter(|line| line.starts_with("- "))
            .collect();
        assert_eq!(
            (
                named.len(),
                named[0].starts_with("- file:///p/59,"),
                named[50]
            ),
            (51, true, "- and 10 more")
        );
    }

    #[test]
    fn summary_of_more_turns_replaces_one_of_fewer() {
        let mut kinds = turns(1..=2);
        kinds.push(summary(1, "first"));
        kinds.extend(turns(3..=4));
        let one = stream(kinds.clone());
        assert_eq!(words(&thread(&one)).len(), 3);
        assert!(words(&thread(&one))[0].ends_with("first\n\nquestion 2"));
        kinds.push(summary(1, "second"));
        kinds.push(summary(3, "of fewer"));
        let two = stream(kinds.clone());
        assert_eq!(words(&thread(&two)).len(), 1);
        assert!(
            words(&thread(&two))[0]
                .ends_with("up to turn 3, which replaces those turns:\n\nsecond\n\nquestion 4")
        );
        let kept = two.kept_by_fork(1);
        let fork = Stream::from_events(
            kept.iter()
                .map(|index| two.events()[*index].clone())
                .collect(),
        );
        assert_eq!(words(&thread(&fork)), ["question 4"]);
        kinds.push(reset());
        assert_eq!(words(&thread(&stream(kinds))).len(), 4);
    }

    fn any_kinds() -> impl Strategy<Value = Vec<EventKind>> {
        let strips = prop::sample::subsequence(vec![Strip::Reasoning, Strip::Tools], 0..=2);
        let said = prop_oneof![Just(None), Just(Some("In short.".to_owned()))];
        let compaction = (0usize..4, strips, said, prop::bool::weighted(0.2)).prop_map(
            |(keep_last, strip, summary, reset)| {
                vec![EventKind::Compaction(Compaction {
                    reset,
                    keep_last,
                    strip,
                    summary,
                })]
            },
        );
        let part = prop_oneof![
            4 => (1usize..9).prop_map(turn),
            1 => (1usize..9, 1usize..5).prop_map(|(number, length)| turn(number)[..length].to_vec()),
            2 => compaction,
        ];
        prop::collection::vec(part, 1..12).prop_map(|parts| parts.into_iter().flatten().collect())
    }

    proptest! {
        #[test]
        fn conversation_that_grows_after_a_compaction_keeps_its_prefix(kinds in any_kinds(), more in prop::collection::vec(1usize..9, 1..4)) {
            let mut kinds = kinds;
            if awaits_answer(stream(kinds.clone()).events()) {
                kinds.push(EventKind::ChatResponse(ChatResponse::message("Yes.")));
            }
            let mut grown = kinds.clone();
            grown.extend(more.into_iter().flat_map(turn));
            let (before, after) = (stream(kinds), stream(grown));
            let (before, after) = (thread(&before).messages, thread(&after).messages);
            match (&before[..], &after[0]) {
                ([Message::User { request: pending, .. }], Message::User { request, .. }) => {
                    prop_assert!(pending.content.starts_with("Summary of "));
                    prop_assert!(request.content.starts_with(&pending.content));
                }
                _ => prop_assert_eq!(&before[..], &after[..before.len()]),
            }
        }

        #[test]
        fn nothing_is_sent_that_was_compacted_away(kinds in any_kinds()) {
            let stream = stream(kinds);
            let compacted = Compacted::from_events(stream.events());
            let thread = thread(&stream);
            for message in &thread.messages {
                let has_summary = matches!(message, Message::User { request, .. } if request.content.starts_with("Summary of "));
                prop_assert!(message.turn() > compacted.summarised || has_summary);
                match message {
                    Message::Assistant { turn, parts } => {
                        prop_assert!(!parts.is_empty());
                        prop_assert!(*turn > compacted.reasoning || !parts.iter().any(is_reasoning));
                    }
                    Message::Tool { turn, response: Some(response), .. } if *turn <= compacted.tools => {
                        prop_assert!(response.content.iter().all(|block| shown_bytes(block) < 300));
                    }
                    _ => {}
                }
            }
        }
    }
}
