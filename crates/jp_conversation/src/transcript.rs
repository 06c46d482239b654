//! Writes a conversation as Markdown.

use jp_resource::{BlobRef, Payload, Snapshot};
use jp_tool::StoredBlock;

use crate::{Event, EventKind, ResponseContent, ToolCallResponse};

/// Reads stored content.
pub type Read<'a, E> = &'a dyn Fn(&BlobRef) -> Result<Vec<u8>, E>;

/// Returns the events of a turn in reading order: each call is followed by its questions and its
/// result, even if other calls ran at the same time.
#[must_use]
pub fn order(events: &[Event]) -> Vec<&Event> {
    let mut is_placed = vec![false; events.len()];
    let mut ordered = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        if std::mem::replace(&mut is_placed[index], true) {
            continue;
        }
        ordered.push(event);
        let EventKind::ToolCallRequest(call) = &event.kind else {
            continue;
        };
        for (later, event) in events.iter().enumerate().skip(index + 1) {
            if is_placed[later] || !belongs_to(&event.kind, &call.id) {
                continue;
            }
            is_placed[later] = true;
            ordered.push(event);
            // Some providers use an id twice: the first result is that of the first call.
            if matches!(event.kind, EventKind::ToolCallResponse(_)) {
                break;
            }
        }
    }
    ordered
}

/// Returns true if an event is the result of the call with this id, one of its questions or an answer.
fn belongs_to(kind: &EventKind, id: &str) -> bool {
    let is_question = |inquiry: &str| {
        inquiry
            .strip_prefix(id)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    match kind {
        EventKind::ToolCallResponse(response) => response.id == id,
        EventKind::InquiryRequest(inquiry) => is_question(&inquiry.id),
        EventKind::InquiryResponse(inquiry) => is_question(&inquiry.id),
        _ => false,
    }
}

/// Writes an event of the turn with this number. Returns an empty text for events without words.
///
/// # Errors
///
/// Those of reading the result of a tool.
pub fn event<E>(turn: usize, event: &Event, read: Read<'_, E>) -> Result<String, E> {
    Ok(match &event.kind {
        EventKind::ChatRequest(request) => {
            let mut text = format!("## Turn {turn}\n\n{}\n\n", request.content.trim_end());
            request
                .resources
                .iter()
                .for_each(|snapshot| text += &attachment_line(snapshot));
            if !request.resources.is_empty() {
                text.push('\n');
            }
            text
        }
        EventKind::ChatResponse(response) => {
            let mut text = match &response.content {
                ResponseContent::Message(message) => format!("{}\n\n", message.trim_end()),
                ResponseContent::Reasoning(reasoning) => {
                    let quoted = reasoning.trim().lines().map(|line| format!("> {line}\n"));
                    quoted.collect::<String>() + "\n"
                }
            };
            if let Some(reason) = &response.incomplete {
                text += &format!("*(incomplete: {reason})*\n\n");
            }
            text
        }
        EventKind::ToolCallRequest(call) => {
            let arguments =
                serde_json::to_string_pretty(&call.arguments).expect("its keys are strings");
            format!(
                "### Tool call: {}\n\n```json\n{arguments}\n```\n\n",
                call.name
            )
        }
        EventKind::ToolCallResponse(response) => {
            let heading = if response.is_error {
                "Tool error"
            } else {
                "Tool result"
            };
            format!(
                "### {heading}\n\n{}\n\n",
                result(response, read)?.trim_end()
            )
        }
        EventKind::InquiryRequest(inquiry) => {
            format!("### Question: {}\n\n", inquiry.question.text)
        }
        EventKind::InquiryResponse(inquiry) => format!("Answer: `{}`\n\n", inquiry.answer),
        _ => String::new(),
    })
}

fn attachment_line(snapshot: &Snapshot) -> String {
    let bytes = size(snapshot.blob_ref().size);
    format!(
        "- attached: {} ({bytes}) <{}>\n",
        snapshot.label(),
        snapshot.uri
    )
}

/// Writes a tool's result in the form that a model receives.
///
/// # Errors
///
/// Those of reading.
pub fn result<E>(response: &ToolCallResponse, read: Read<'_, E>) -> Result<String, E> {
    let texts: Result<Vec<_>, E> = response
        .content
        .iter()
        .map(|content| block(content, read))
        .collect();
    Ok(texts?.join("\n"))
}

fn block<E>(block: &StoredBlock, read: Read<'_, E>) -> Result<String, E> {
    Ok(match block {
        StoredBlock::Text { text, .. } => text_of(text, read)?,
        StoredBlock::Resource { resource, .. } => match &resource.formatted {
            Some(formatted) => text_of(formatted, read)?,
            None => {
                let bytes = match &resource.content {
                    Payload::Inline(content) => content.as_bytes().to_vec(),
                    Payload::Stored(blob) => read(blob)?,
                };
                match String::from_utf8(bytes) {
                    Ok(content) => crate::view::resource_block(resource, &content),
                    Err(error) => format!("[{}: {} bytes]", resource.uri, error.as_bytes().len()),
                }
            }
        },
        StoredBlock::Image(media) | StoredBlock::Audio(media) => format!("[{}]", media.mime_type),
        StoredBlock::Question { question } => question.text.clone(),
        StoredBlock::Unknown(block) => block.note(),
    })
}

/// Reads an inline or stored text.
///
/// # Errors
///
/// Those of reading.
fn text_of<E>(text: &Payload<String>, read: Read<'_, E>) -> Result<String, E> {
    match text {
        Payload::Inline(text) => Ok(text.clone()),
        Payload::Stored(blob) => Ok(String::from_utf8_lossy(&read(blob)?).into_owned()),
    }
}

/// Writes a number of bytes: `512 B`, `1.5 KB`, `10.0 MB` (decimal units).
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_a_call_follow_it() {
        let names = |kinds: &[(&str, &str)]| {
            let event = |(kind, id): &(&str, &str)| {
                let json = match *kind {
                    "tool_call_request" => {
                        serde_json::json!({"type": kind, "id": id, "name": "t", "arguments": {}})
                    }
                    "tool_call_response" => {
                        serde_json::json!({"type": kind, "id": id, "content": []})
                    }
                    "inquiry_response" => {
                        serde_json::json!({"type": kind, "id": id, "answer": true})
                    }
                    _ => serde_json::json!({"type": "chat_response", "message": id}),
                };
                let mut json = json;
                json["timestamp"] = "2026-11-21T12:00:00Z".into();
                Event::from_json(&json.to_string()).unwrap()
            };
            let events: Vec<_> = kinds.iter().map(event).collect();
            let ordered = order(&events);
            let place = |event: &&Event| {
                events
                    .iter()
                    .position(|other| std::ptr::eq(other, *event))
                    .unwrap()
            };
            ordered.iter().map(place).collect::<Vec<_>>()
        };
        let (call, result, answer) = (
            "tool_call_request",
            "tool_call_response",
            "inquiry_response",
        );
        assert_eq!(
            names(&[
                (call, "1"),
                (call, "2"),
                (answer, "2.q"),
                (result, "2"),
                (answer, "1.q"),
                (result, "1"),
                ("said", "x")
            ]),
            [0, 4, 5, 1, 2, 3, 6]
        );
        assert_eq!(
            names(&[(call, ""), (call, ""), (result, ""), (result, "")]),
            [0, 2, 1, 3]
        );
        assert_eq!(
            names(&[(result, "none"), ("said", "x"), (call, "1")]),
            [0, 1, 2]
        );
    }

    #[test]
    fn size_has_a_unit() {
        assert_eq!(
            [0, 999, 1000, 1_500_000, 999_999].map(size),
            ["0 B", "999 B", "1.0 KB", "1.5 MB", "1.0 MB"]
        );
    }
}
