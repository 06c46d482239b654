//! `jp conversation print`: a conversation as Markdown or JSON.

use std::ops::RangeInclusive;

use crate::{
    cmd::resource::snapshots::TurnSnapshot,
    context::Context,
    error::{Code, SessionError},
};
use jp_conversation::{
    Event, EventKind,
    transcript::{self, Read},
};
use jp_resource::BlobRef;
use jp_session::size;
use jp_storage::BlobError;
use serde_json::{Value, json};

pub(super) fn run(
    context: &Context<'_>,
    id: Option<&str>,
    turns: Option<&str>,
) -> Result<Code, SessionError> {
    let found = context.session.select(id)?;
    let conversation = context.session.read(&found)?;
    let all = conversation.stream.turns();
    let wanted = turns.map_or(Ok(1..=all.len()), |text| parse_range(text, all.len()))?;
    let read = |blob: &BlobRef| found.store.blobs().read(blob);
    // JSON is one document, so its turns are collected. Text is written event by event.
    let mut documents = Vec::new();
    for turn in all.iter().filter(|turn| wanted.contains(&turn.number)) {
        let events = &conversation.stream.events()[turn.events.clone()];
        if context.output.is_json() {
            let events = events
                .iter()
                .filter_map(|event| to_json(turn.number, event, &read).transpose());
            documents.push(
                json!({"turn": turn.number, "events": events.collect::<Result<Vec<_>, _>>()?}),
            );
        } else {
            for event in transcript::order(events) {
                context
                    .output
                    .text(&transcript::event(turn.number, event, &read)?)?;
            }
        }
    }
    if context.output.is_json() {
        let title = conversation.metadata.title();
        context.output.json(
            &json!({"id": conversation.id.to_string(), "title": title, "turns": documents}),
        )?;
    }
    Ok(Code::Done)
}

/// Parses `N`, `A..B` (inclusive), `A..` or `..B`. The end may be beyond the last turn, the start may not.
pub(super) fn parse_range(text: &str, last: usize) -> Result<RangeInclusive<usize>, SessionError> {
    let (first, end) = match text.split_once("..") {
        None => (text.parse().ok(), text.parse().ok()),
        Some((first, end)) => (parse_bound(first, 1), parse_bound(end, last)),
    };
    let range = first
        .zip(end)
        .map(|(first, end)| first..=end)
        .filter(|range| *range.start() >= 1 && !range.is_empty())
        .ok_or_else(|| {
            SessionError::usage(format!(
                "`--turn {text}` is not a range of turns: use N, A..B, A.. or ..B"
            ))
        })?;
    if *range.start() > last {
        return Err(SessionError::new(format!(
            "there is no turn {}: the conversation has {}",
            range.start(),
            size::count(last, "turn")
        )));
    }
    Ok(range)
}

/// Parses one side of a range; an empty text stands for `default`.
fn parse_bound(text: &str, default: usize) -> Option<usize> {
    match text {
        "" => Some(default),
        number => number.parse().ok(),
    }
}

/// Describes an event for `--format json`; returns `None` for an event that is not part of the transcript.
fn to_json(
    turn: usize,
    event: &Event,
    read: Read<'_, BlobError>,
) -> Result<Option<Value>, SessionError> {
    let timestamp = event.timestamp.to_string();
    let document = match &event.kind {
        EventKind::ChatRequest(request) => {
            let resources: Vec<_> = request
                .resources
                .iter()
                .map(|snapshot| TurnSnapshot { turn, snapshot }.to_json())
                .collect();
            json!({"type": "chat_request", "timestamp": timestamp, "content": request.content, "resources": resources})
        }
        EventKind::ChatResponse(response) => {
            let mut document = serde_json::to_value(response)?;
            document["type"] = "chat_response".into();
            document["timestamp"] = timestamp.into();
            document
        }
        EventKind::ToolCallRequest(call) => {
            json!({"type": "tool_call_request", "timestamp": timestamp, "id": call.id, "name": call.name, "arguments": call.arguments})
        }
        EventKind::ToolCallResponse(response) => {
            json!({"type": "tool_call_response", "timestamp": timestamp, "id": response.id, "is_error": response.is_error, "text": transcript::result(response, read)?})
        }
        EventKind::InquiryRequest(inquiry) => {
            json!({"type": "inquiry_request", "timestamp": timestamp, "id": inquiry.id, "source": inquiry.source, "question": inquiry.question})
        }
        EventKind::InquiryResponse(inquiry) => {
            json!({"type": "inquiry_response", "timestamp": timestamp, "id": inquiry.id, "answer": inquiry.answer})
        }
        // Configuration, usage and the like are not part of what was said.
        _ => return Ok(None),
    };
    Ok(Some(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_turns_are_inclusive() {
        for (text, range) in [
            ("2", 2..=2),
            ("1..2", 1..=2),
            ("2..", 2..=3),
            ("..2", 1..=2),
            ("3..9", 3..=9),
        ] {
            assert_eq!(parse_range(text, 3).unwrap(), range);
        }
        for text in ["", "0", "2..1", "x", "4"] {
            assert!(parse_range(text, 3).is_err(), "{text}");
        }
    }
}
