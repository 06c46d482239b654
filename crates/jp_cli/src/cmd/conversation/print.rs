//! `jp conversation print`: a conversation as Markdown.

use std::ops::RangeInclusive;

use crate::{
    cmd::resource::{Attached, describe},
    context::Context,
    error::{Code, Failure},
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
) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let all = conversation.stream.turns();
    let wanted = turns.map_or(Ok(1..=all.len()), |text| parse_range(text, all.len()))?;
    let read = |blob: &BlobRef| found.store.blobs().read(blob);
    let mut documents = Vec::new();
    for turn in all.iter().filter(|turn| wanted.contains(&turn.number)) {
        let events = &conversation.stream.events()[turn.events.clone()];
        if context.output.is_json() {
            let events = events
                .iter()
                .filter_map(|event| document(turn.number, event, &read).transpose());
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

/// Reads `N`, `A..B` (inclusive), `A..` or `..B`.
pub(super) fn parse_range(text: &str, last: usize) -> Result<RangeInclusive<usize>, Failure> {
    let number = |text: &str, default: usize| {
        if text.is_empty() {
            Some(default)
        } else {
            text.parse().ok()
        }
    };
    let range = match text.split_once("..") {
        None => number(text, 0).map(|turn| turn..=turn),
        Some((first, end)) => number(first, 1)
            .zip(number(end, last))
            .map(|(first, end)| first..=end),
    };
    let range = range.filter(|range| *range.start() >= 1 && range.start() <= range.end());
    let range = range.ok_or_else(|| {
        Failure::usage(format!(
            "`--turn {text}` is no range of turns: N, A..B, A.. or ..B"
        ))
    })?;
    if *range.start() > last {
        return Err(Failure::new(format!(
            "there is no turn {}: the conversation has {}",
            range.start(),
            size::count(last, "turn")
        )));
    }
    Ok(range)
}

fn document(
    turn: usize,
    event: &Event,
    read: Read<'_, BlobError>,
) -> Result<Option<Value>, Failure> {
    let timestamp = event.timestamp.to_string();
    let document = match &event.kind {
        EventKind::ChatRequest(request) => {
            let resources: Vec<_> = request
                .resources
                .iter()
                .map(|snapshot| describe(&Attached { turn, snapshot }))
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
