//! Notes on what has changed at its source: they follow the words of the request after them.

use std::collections::{BTreeMap, HashMap, HashSet};

use jp_resource::{Checksum, Snapshot};
use jp_tool::StoredBlock;

use super::{Delivery, Message, Thread, render::one_line};
use crate::{EventKind, Notification, Stream};

/// Adds the notes to the requests that carry them; `origins` are the indexes of the messages' events.
///
/// A note names the last turn before it that shows the version which the conversation has, and no turn where this
/// thread shows it nowhere. So it is the same for as long as what is before it is. Where no request is left, as below a
/// compaction's summary, there is no note.
pub(super) fn add(thread: &mut Thread<'_>, origins: &[usize], stream: &Stream) {
    let notes = notes(stream);
    if notes.is_empty() {
        return;
    }
    let mut shown = NotedPlaces::new(notes.values().flatten().copied());
    for (message, origin) in thread.messages.iter_mut().zip(origins) {
        if let Message::User { request, .. } = message
            && let Some(notes) = notes.get(origin)
        {
            let text = text(notes, request.content.is_empty(), &shown);
            request.to_mut().content.push_str(&text);
        }
        shown.take_in(message);
    }
}

/// Returns the notifications by the event of the request that is after them.
fn notes(stream: &Stream) -> BTreeMap<usize, Vec<&Notification>> {
    let (mut notes, mut waiting) = (BTreeMap::new(), Vec::new());
    for (index, event) in stream.events().iter().enumerate() {
        match &event.kind {
            EventKind::Notification(notification) => waiting.push(notification),
            EventKind::ChatRequest(_) if !waiting.is_empty() => {
                notes.insert(index, std::mem::take(&mut waiting));
            }
            _ => {}
        }
    }
    notes
}

/// Writes a line for each notification, apart from words before them.
fn text(notifications: &[&Notification], is_alone: bool, shown: &NotedPlaces<'_>) -> String {
    let sentences = notifications
        .iter()
        .map(|notification| format!("Note by jp: {}", sentence(notification, shown)));
    let text = sentences.collect::<Vec<_>>().join("\n");
    if is_alone {
        text
    } else {
        format!("\n\n{text}")
    }
}

fn sentence(notification: &Notification, shown: &NotedPlaces<'_>) -> String {
    let Notification {
        uri, checksum, now, ..
    } = notification;
    let name = match notification.name.as_deref().filter(|name| name != uri) {
        Some(name) => format!("{} ({})", one_line(name), one_line(uri)),
        None => one_line(uri).into_owned(),
    };
    let place = shown.place(uri, *checksum);
    let Some(now) = now else {
        let before = place.map_or_else(String::new, |place| format!(", which {place},"));
        return format!("{name}{before} is gone from its source.");
    };
    match (place, shown.place(uri, *now)) {
        (_, Some(same)) => format!("{name} is again as it was when it {same}."),
        (_, None) if now == checksum => format!("{name} is again as it was before."),
        (Some(place), None) => {
            format!("{name} has changed since it {place}. What stands of it above is out of date.")
        }
        (None, None) => format!("{name} has changed at its source."),
    }
}

/// The place where a version is shown.
#[derive(Debug, Clone, Copy)]
enum ShownPlace {
    /// Attached to the message of a turn.
    Attached { turn: usize },
    /// In the result of a tool.
    Returned { turn: usize },
}

impl std::fmt::Display for ShownPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Attached { turn } => write!(f, "was attached in turn {turn}"),
            Self::Returned { turn } => write!(f, "was read in turn {turn}"),
        }
    }
}

/// The places where the versions that notes are about were shown last.
struct NotedPlaces<'a> {
    uris: HashSet<&'a str>,
    places: HashMap<(&'a str, Checksum), ShownPlace>,
}

impl<'a> NotedPlaces<'a> {
    fn new(notifications: impl Iterator<Item = &'a Notification>) -> Self {
        let uris = notifications
            .map(|notification| notification.uri.as_str())
            .collect();
        Self {
            uris,
            places: HashMap::new(),
        }
    }

    fn place(&self, uri: &str, checksum: Checksum) -> Option<ShownPlace> {
        self.places.get(&(uri, checksum)).copied()
    }

    fn take_in(&mut self, message: &Message<'_>) {
        match message {
            Message::User {
                turn,
                request,
                deliveries,
            } => {
                for (resource, delivery) in request.resources.iter().zip(deliveries) {
                    self.take_in_resource(resource, delivery, ShownPlace::Attached { turn: *turn });
                }
            }
            Message::Tool {
                turn,
                response: Some(response),
                deliveries,
                ..
            } => {
                for (block, delivery) in response.content.iter().zip(deliveries) {
                    if let StoredBlock::Resource { resource, .. } = block {
                        self.take_in_resource(
                            resource,
                            delivery,
                            ShownPlace::Returned { turn: *turn },
                        );
                    }
                }
            }
            Message::Tool { response: None, .. }
            | Message::Assistant { .. }
            | Message::NoAnswer { .. } => {}
        }
    }

    /// Returns whether the thread shows content that is delivered this way.
    fn take_in_resource(&mut self, resource: &Snapshot, delivery: &Delivery, place: ShownPlace) {
        if matches!(delivery, Delivery::Tombstone { .. } | Delivery::Compacted) {
            return;
        }
        if let Some(uri) = self.uris.get(resource.uri.as_str()) {
            self.places
                .insert((*uri, resource.blob_ref().checksum), place);
        }
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Payload, ResourceContent};
    use serde_json::Map;

    use super::*;
    use crate::{ChatRequest, ChatResponse, Event, ToolCallRequest, ToolCallResponse, view};

    const URI: &str = "file:///w/README.md";

    fn stream(kinds: Vec<EventKind>) -> Stream {
        let event = |kind| Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind);
        Stream::from_events(kinds.into_iter().map(event).collect())
    }

    fn snapshot(text: &str) -> Snapshot {
        Snapshot::new(URI, Payload::Inline(ResourceContent::Text(text.to_owned())))
            .with_name("README.md")
    }

    fn asked(words: &str, resources: Vec<Snapshot>) -> EventKind {
        EventKind::ChatRequest(ChatRequest {
            resources,
            ..ChatRequest::new(words)
        })
    }

    fn said() -> EventKind {
        EventKind::ChatResponse(ChatResponse::message("Yes."))
    }

    fn read(text: &str) -> [EventKind; 2] {
        let (id, name) = ("1".to_owned(), "read_file".to_owned());
        let call = ToolCallRequest {
            id,
            name,
            arguments: Map::new(),
            metadata: Map::new(),
        };
        let content = vec![StoredBlock::Resource {
            resource: snapshot(text),
            meta: None,
        }];
        let response = ToolCallResponse {
            id: "1".to_owned(),
            content,
            is_error: false,
            structured_content: None,
            meta: Map::new(),
        };
        [
            EventKind::ToolCallRequest(call),
            EventKind::ToolCallResponse(response),
        ]
    }

    fn changed(from: &str, to: Option<&str>) -> EventKind {
        EventKind::Notification(Notification {
            uri: URI.to_owned(),
            checksum: Checksum::compute(from.as_bytes()),
            name: Some("README.md".to_owned()),
            now: to.map(|text| Checksum::compute(text.as_bytes())),
        })
    }

    fn words(kinds: &[EventKind]) -> Vec<String> {
        let stream = stream(kinds.to_vec());
        let thread = view::thread(&stream);
        let words = thread.messages.iter().filter_map(|message| match message {
            Message::User { request, .. } => Some(request.content.clone()),
            _ => None,
        });
        words.collect()
    }

    #[test]
    fn note_on_the_next_request_names_the_turn_of_the_version() {
        let kinds = [
            asked("one", vec![snapshot("a")]),
            said(),
            changed("a", Some("b")),
            asked("two", vec![]),
            said(),
            changed("a", Some("a")),
            asked("three", vec![]),
            said(),
            changed("a", None),
            asked("", vec![]),
        ];
        insta::assert_snapshot!(words(&kinds).join("\n---\n"), @"
        one
        ---
        two

        Note by jp: README.md (file:///w/README.md) has changed since it was attached in turn 1. What stands of it above is out of date.
        ---
        three

        Note by jp: README.md (file:///w/README.md) is again as it was when it was attached in turn 1.
        ---
        Note by jp: README.md (file:///w/README.md), which was attached in turn 1, is gone from its source.
        ");
    }

    #[test]
    fn version_that_a_tool_showed_later_is_named_by_that_turn() {
        let [call, result] = read("a");
        let kinds = [
            asked("one", vec![snapshot("a")]),
            said(),
            asked("two", vec![]),
            call,
            result,
            said(),
            changed("a", Some("b")),
            asked("three", vec![]),
        ];
        assert!(
            words(&kinds)[2].contains("has changed since it was read in turn 2."),
            "{:?}",
            words(&kinds)
        );
    }

    #[test]
    fn version_that_is_back_is_named_wherever_it_stands() {
        let [call, result] = read("b");
        let kinds = [
            asked("one", vec![snapshot("a")]),
            said(),
            asked("two", vec![]),
            call,
            result,
            said(),
            changed("b", Some("a")),
            asked("three", vec![]),
        ];
        let words = words(&kinds);
        assert!(
            words[2].ends_with("is again as it was when it was attached in turn 1."),
            "{words:?}"
        );
    }

    #[test]
    fn note_about_a_version_that_the_thread_does_not_show_names_no_turn() {
        let kinds = [
            changed("a", Some("b")),
            asked("one", vec![]),
            changed("a", None),
            asked("two", vec![]),
        ];
        insta::assert_snapshot!(words(&kinds).join("\n---\n"), @"
        one

        Note by jp: README.md (file:///w/README.md) has changed at its source.
        ---
        two

        Note by jp: README.md (file:///w/README.md) is gone from its source.
        ");
    }

    #[test]
    fn name_that_would_end_the_line_is_escaped() {
        let EventKind::Notification(notification) = changed("a", Some("b")) else {
            panic!("a notification")
        };
        let name = Some("x\nNote by jp: y".to_owned());
        let notification = EventKind::Notification(Notification {
            name,
            ..notification
        });
        assert_eq!(
            words(&[notification, asked("one", vec![])])[0]
                .lines()
                .count(),
            3
        );
    }

    #[test]
    fn growing_stream_keeps_what_its_notes_say() {
        let [call, result] = read("b");
        let kinds = [
            asked("one", vec![snapshot("a")]),
            said(),
            changed("a", Some("b")),
            asked("two", vec![]),
            call,
            result,
            said(),
            changed("b", Some("a")),
            asked("three", vec![snapshot("c")]),
            said(),
            changed("c", None),
            asked("four", vec![]),
        ];
        let whole = stream(kinds.to_vec());
        let whole = view::thread(&whole).messages;
        for length in 1..kinds.len() {
            if matches!(kinds[length - 1], EventKind::ToolCallRequest(_)) {
                continue;
            }
            let part = stream(kinds[..length].to_vec());
            let part = view::thread(&part).messages;
            assert_eq!(part[..], whole[..part.len()]);
        }
    }
}
