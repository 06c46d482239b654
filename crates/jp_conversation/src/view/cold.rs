//! Guesses from the events if a provider's prompt cache still has the last request.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{Event, EventKind, Stream};

/// Returns true if the cache of the last request is useless at `now`, so that a request with another prefix costs
/// nothing more.
///
/// That is the case if no answer came within `lifetime` before `now`, if the last usage is of another model than
/// `model` (`provider/name`), or if a compaction follows the last answer. Without an answer there is no cache that
/// could have expired.
#[must_use]
pub fn is_cold(stream: &Stream, now: Timestamp, model: &str, lifetime: Duration) -> bool {
    let events = stream.events();
    let Some(last) = events.iter().rposition(is_of_an_answer) else {
        return false;
    };
    let since = &events[last + 1..];
    let age = now.duration_since(events[last].timestamp);
    // A lifetime that is too long for jiff never ends.
    let is_over = SignedDuration::try_from(lifetime).is_ok_and(|lifetime| age >= lifetime);
    is_over
        || last_model(stream).is_some_and(|last| last != model)
        || since
            .iter()
            .any(|event| matches!(event.kind, EventKind::Compaction(_)))
}

/// Returns the model of the newest usage.
fn last_model(stream: &Stream) -> Option<&str> {
    stream
        .events()
        .iter()
        .rev()
        .find_map(|event| match &event.kind {
            EventKind::Usage(usage) => Some(usage.model.as_str()),
            _ => None,
        })
}

fn is_of_an_answer(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_) | EventKind::Usage(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatRequest, ChatResponse, Compaction, Usage};

    /// Makes a stream of kinds, each so many minutes after the one before.
    fn stream(kinds: &[(i64, EventKind)]) -> Stream {
        let mut now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let event = |(minutes, kind): &(i64, EventKind)| {
            now += SignedDuration::from_mins(*minutes);
            Event::new(now, kind.clone())
        };
        Stream::from_events(kinds.iter().map(event).collect())
    }

    #[test]
    fn cache_becomes_cold() {
        let request = || EventKind::ChatRequest(ChatRequest::new("go"));
        let answer = || EventKind::ChatResponse(ChatResponse::message("yes"));
        let usage = |model: &str| {
            EventKind::Usage(Usage {
                model: model.to_owned(),
                ..Usage::default()
            })
        };
        let compaction = || EventKind::Compaction(Compaction::default());
        type Row = (&'static str, Vec<(i64, EventKind)>, i64, bool);
        let table: [Row; 9] = [
            ("nothing was asked yet", vec![], 600, false),
            ("nothing was answered yet", vec![(0, request())], 600, false),
            (
                "just answered",
                vec![(0, request()), (1, answer()), (0, usage("a/b"))],
                4,
                false,
            ),
            (
                "its lifetime is over",
                vec![(0, request()), (1, answer()), (0, usage("a/b"))],
                5,
                true,
            ),
            (
                "no figures, within its lifetime",
                vec![(0, request()), (1, answer())],
                4,
                false,
            ),
            (
                "no figures, its lifetime over",
                vec![(0, request()), (1, answer())],
                5,
                true,
            ),
            (
                "another model",
                vec![(0, request()), (1, answer()), (0, usage("a/c"))],
                0,
                true,
            ),
            (
                "compacted since",
                vec![(0, request()), (1, usage("a/b")), (0, compaction())],
                0,
                true,
            ),
            (
                "compacted before the last answer",
                vec![
                    (0, request()),
                    (1, usage("a/b")),
                    (0, compaction()),
                    (0, request()),
                    (1, usage("a/b")),
                ],
                0,
                false,
            ),
        ];
        for (name, kinds, minutes, expected) in table {
            let stream = stream(&kinds);
            let start = "2026-11-21T12:00:00Z".parse().unwrap();
            let last = stream
                .events()
                .last()
                .map_or(start, |event| event.timestamp);
            let now = last + SignedDuration::from_mins(minutes);
            assert_eq!(
                is_cold(&stream, now, "a/b", Duration::from_secs(300)),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn cache_stays_warm_if_the_clock_is_set_back() {
        let usage = EventKind::Usage(Usage {
            model: "a/b".to_owned(),
            ..Usage::default()
        });
        let stream = stream(&[(0, usage)]);
        let before = "2026-11-20T12:00:00Z".parse().unwrap();
        assert!(!is_cold(&stream, before, "a/b", Duration::from_secs(300)));
    }
}
