//! Adds notes about changed sources. They follow the words of the next request.

use std::collections::{BTreeMap, HashMap, HashSet};

use jp_resource::{Checksum, Snapshot};
use jp_tool::StoredBlock;

use super::{Delivery, Message, Thread, render::one_line};
use crate::{EventKind, Notification, Stream};

/// Adds the notes to their requests. `origins` has the index of each message's event.
///
/// A note names the last turn before it that shows the conversation's version. If the thread doesn't show it, the note
/// names no turn. So a note only depends on the messages before it. If its request is missing, as below a
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
        shown.add_message(message);
    }
}

/// Returns the notifications by the index of the next request's event.
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

/// Writes a line for each notification. If words precede them, an empty line comes first.
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
        return format!("{name}{before} no longer exists at its source.");
    };
    match (place, shown.place(uri, *now)) {
        (_, Some(same)) => format!("{name} is back to the version that {same}."),
        (_, None) if now == checksum => format!("{name} is back to an earlier version."),
        (Some(place), None) => {
            format!("{name} has changed since it {place}. The content above is out of date.")
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

/// The last places of the versions that notes are about.
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

    fn add_message(&mut self, message: &Message<'_>) {
        match message {
            Message::User {
                turn,
                request,
                deliveries,
            } => {
                for (resource, delivery) in request.resources.iter().zip(deliveries) {
                    self.add_resource(resource, delivery, ShownPlace::Attached { turn: *turn });
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
                        self.add_resource(resource, delivery, ShownPlace::Returned { turn: *turn });
                    }
                }
            }
            Message::Tool { response: None, .. }
            | Message::Assistant { .. }
            | Message::NoAnswer { .. } => {}
        }
    }

    /// Adds the place of a resource, unless its delivery doesn't show it.
    fn add_resource(&mut self, resource: &Snapshot, delivery: &Delivery, place: ShownPlace) {
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

    use super::*;
    use crate::{
        ChatRequest, ChatResponse,
        fixtures::{call, result, stream},
        view,
    };

    const URI: &str = "file:///w/README.md";

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
        let block = StoredBlock::Resource {
            resource: snapshot(text),
            meta: None,
        };
        [call("1"), result("1", vec![block])]
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
        let stream = stream(kinds);
        let thread = view::thread(&stream);
        let words = thread.messages.iter().filter_map(|message| match message {
            Message::User { request, .. } => Some(request.content.clone()),
            _ => None,
        });
        words.collect()
    }

    /// Returns the words of a conversation that attaches "a", reads `from`, and learns of the change to `to`.
    fn words_after_a_read(from: &str, to: &str) -> Vec<String> {
        let [call, result] = read(from);
        words(&[
            asked("one", vec![snapshot("a")]),
            said(),
            asked("two", vec![]),
            call,
            result,
            said(),
            changed(from, Some(to)),
            asked("three", vec![]),
        ])
    }

    #[test]
    fn note_names_the_turn_of_the_version() {
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

        Note by jp: README.md (file:///w/README.md) has changed since it was attached in turn 1. The content above is out of date.
        ---
        three

        Note by jp: README.md (file:///w/README.md) is back to the version that was attached in turn 1.
        ---
        Note by jp: README.md (file:///w/README.md), which was attached in turn 1, no longer exists at its source.
        ");
    }

    #[test]
    fn note_names_the_turn_of_a_later_result() {
        let words = words_after_a_read("a", "b");
        assert!(
            words[2].contains("has changed since it was read in turn 2."),
            "{words:?}"
        );
    }

    #[test]
    fn note_names_the_turn_of_a_restored_version() {
        let words = words_after_a_read("b", "a");
        assert!(
            words[2].ends_with("is back to the version that was attached in turn 1."),
            "{words:?}"
        );
    }

    #[test]
    fn note_about_an_invisible_version_names_no_turn() {
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

        Note by jp: README.md (file:///w/README.md) no longer exists at its source.
        ");
    }

    #[test]
    fn newline_in_a_name_is_escaped() {
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
    fn growing_stream_keeps_its_notes() {
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
        let whole = stream(&kinds);
        let whole = view::thread(&whole).messages;
        for length in 1..kinds.len() {
            if matches!(kinds[length - 1], EventKind::ToolCallRequest(_)) {
                continue;
            }
            let part = stream(&kinds[..length]);
            let part = view::thread(&part).messages;
            assert_eq!(part[..], whole[..part.len()]);
        }
    }
}
