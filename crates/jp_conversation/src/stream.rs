use std::ops::Range;

use crate::{ChatRequest, Event, EventKind};

/// A conversation's events, in order. It only grows.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    events: Vec<Event>,
}

/// One turn: from the user's message to the end of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 1.
    pub number: usize,
    /// The indexes of its events in the stream.
    pub events: Range<usize>,
    /// The index of its request.
    pub request: usize,
}

impl Stream {
    /// Wraps stored events.
    #[must_use]
    pub fn from_events(events: Vec<Event>) -> Self {
        Self { events }
    }

    /// Appends an event.
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Returns the events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the turns.
    ///
    /// A turn starts with `turn_start`, or with its request in conversations that lack those.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        let mut announced = None;
        for (index, event) in self.events.iter().enumerate() {
            match event.kind {
                EventKind::TurnStart => announced = Some(index),
                EventKind::ChatRequest(_) => {
                    let start = announced.take().unwrap_or(index);
                    if let Some(last) = turns.last_mut() {
                        last.events.end = start;
                    }
                    let events = start..self.events.len();
                    turns.push(Turn {
                        number: turns.len() + 1,
                        events,
                        request: index,
                    });
                }
                _ => {}
            }
        }
        turns
    }

    /// Returns the requests with their turns' numbers.
    pub fn requests(&self) -> impl Iterator<Item = (usize, &ChatRequest)> {
        let requests = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::ChatRequest(request) => Some(request),
            _ => None,
        });
        requests
            .enumerate()
            .map(|(index, request)| (index + 1, request))
    }

    /// Returns the last request if its answer isn't complete: there is none, it was cut off, or the model hasn't
    /// answered the results of tools.
    #[must_use]
    pub fn unanswered_request(&self) -> Option<&ChatRequest> {
        let (_, request) = self.requests().last()?;
        awaits_answer(&self.events).then_some(request)
    }

    /// Returns the indexes of the events of a fork with the last `turns` turns.
    ///
    /// Changes of configuration of all turns stay, because they have the declarations.
    #[must_use]
    pub fn kept_by_fork(&self, turns: usize) -> Vec<usize> {
        let all = self.turns();
        let first = all
            .len()
            .checked_sub(turns)
            .and_then(|index| all.get(index));
        let start = match first {
            Some(turn) => turn.events.start,
            None if turns == 0 => self.events.len(),
            None => 0,
        };
        self.events
            .iter()
            .enumerate()
            .filter(|(index, event)| {
                *index >= start || matches!(event.kind, EventKind::ConfigDelta(_))
            })
            .map(|(index, _)| index)
            .collect()
    }
}

/// Returns true if a request waits for its answer after these events.
pub(crate) fn awaits_answer(events: &[Event]) -> bool {
    events.iter().rev().find_map(awaits_after).unwrap_or(false)
}

/// Returns true if a request waits for its answer after an event; `None` if the event doesn't change that.
pub(crate) fn awaits_after(event: &Event) -> Option<bool> {
    match &event.kind {
        EventKind::ChatRequest(_)
        | EventKind::ToolCallRequest(_)
        | EventKind::ToolCallResponse(_) => Some(true),
        EventKind::ChatResponse(response) => Some(response.incomplete.is_some()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    use crate::{ChatResponse, ConfigDelta, ToolCallRequest, fixtures::stream};

    fn request(text: &str) -> EventKind {
        EventKind::ChatRequest(ChatRequest::new(text))
    }

    fn answer(text: &str) -> EventKind {
        EventKind::ChatResponse(ChatResponse::message(text))
    }

    fn delta() -> EventKind {
        EventKind::ConfigDelta(ConfigDelta::default())
    }

    #[test]
    fn turns_start_with_turn_start_or_their_request() {
        let stream = stream(vec![
            delta(),
            request("a"),
            answer("b"),
            EventKind::TurnStart,
            request("c"),
        ]);
        assert_eq!(
            stream.turns(),
            [
                Turn {
                    number: 1,
                    events: 1..3,
                    request: 1
                },
                Turn {
                    number: 2,
                    events: 3..5,
                    request: 4
                }
            ]
        );
    }

    #[test]
    fn request_is_unanswered_before_the_answer() {
        let unanswered = |kinds| {
            stream(kinds)
                .unanswered_request()
                .map(|request| request.content.clone())
        };
        assert_eq!(unanswered(vec![]), None);
        assert_eq!(
            unanswered(vec![request("a"), delta()]),
            Some("a".to_owned())
        );
        assert_eq!(unanswered(vec![request("a"), answer("b")]), None);
        assert_eq!(
            unanswered(vec![request("a"), answer("b"), request("c")]),
            Some("c".to_owned())
        );
        let incomplete = Some("connection lost".to_owned());
        let half = EventKind::ChatResponse(ChatResponse {
            incomplete,
            ..ChatResponse::message("b")
        });
        assert_eq!(
            unanswered(vec![request("a"), answer("b"), half.clone()]),
            Some("a".to_owned())
        );
        assert_eq!(unanswered(vec![request("a"), half, answer("b")]), None);
        let call = ToolCallRequest {
            id: "1".into(),
            name: "f".into(),
            arguments: Map::new(),
            metadata: Map::new(),
        };
        let call = || EventKind::ToolCallRequest(call.clone());
        assert_eq!(
            unanswered(vec![request("a"), answer("b"), call()]),
            Some("a".to_owned())
        );
        assert_eq!(unanswered(vec![request("a"), call(), answer("b")]), None);
    }

    #[test]
    fn fork_keeps_all_configuration_with_the_last_turns() {
        let stream = stream(vec![
            delta(),
            request("a"),
            answer("b"),
            delta(),
            request("c"),
            answer("d"),
        ]);
        assert_eq!(stream.kept_by_fork(0), [0, 3]);
        assert_eq!(stream.kept_by_fork(1), [0, 3, 4, 5]);
        assert_eq!(stream.kept_by_fork(2), [0, 1, 2, 3, 4, 5]);
        assert_eq!(stream.kept_by_fork(9), [0, 1, 2, 3, 4, 5]);
    }
}
