//! What a turn came to.

use jp_conversation::{EventKind, ResponseContent, Usage};
use jp_resource::Snapshot;
use jp_turn::{Outcome, Schema};
use serde_json::Value;

use crate::{
    error::SessionError,
    query::{
        ready_query::{ReadyQuery, newest_request},
        refusal,
    },
    tools::call_outcome::{EndedCall, list_calls},
};

/// A turn that ended.
pub struct Report<'s> {
    turn: FinishedTurn<'s>,
    /// The document that was asked for, if the query had a schema, or why there is no answer.
    pub answered: Result<Option<Value>, SessionError>,
}

/// A turn that ended, whatever it came to.
pub(crate) struct FinishedTurn<'s> {
    pub(crate) asked: ReadyQuery<'s>,
    /// The conversation, if it is kept.
    pub(crate) id: Option<String>,
    /// What the model said in this turn, and what it cost.
    pub(crate) kept: Vec<EventKind>,
    /// The calls that ended in this turn, in the order of their results.
    pub(crate) calls: Vec<EndedCall>,
    /// About how many tokens delivery saved, in all requests of the turn.
    pub(crate) saved_tokens: u64,
}

impl Report<'_> {
    /// Returns the id of the conversation, if it is kept.
    pub fn conversation(&self) -> Option<&str> {
        self.turn.id.as_deref()
    }

    /// Returns the number of the turn, from 1.
    pub fn turn(&self) -> usize {
        newest_request(&self.turn.asked.stream).map_or(0, |(turn, _)| turn)
    }

    /// Returns the model that answered: `provider/name`.
    pub fn model(&self) -> &str {
        &self.turn.asked.model().label
    }

    /// Returns what was attached to the message.
    pub fn resources(&self) -> &[Snapshot] {
        newest_request(&self.turn.asked.stream)
            .map_or(&[], |(_, request)| request.resources.as_slice())
    }

    /// Returns whether the model said or called anything.
    pub fn has_answer(&self) -> bool {
        self.turn.has_answer()
    }

    /// Returns whether a call was refused because nobody could be asked.
    pub fn has_refusal_unasked(&self) -> bool {
        let mut calls = self.turn.calls.iter();
        calls.any(EndedCall::is_refused_unasked)
    }

    /// Returns why the answer was cut off, if it was.
    pub fn incomplete(&self) -> Option<&str> {
        self.turn.incomplete()
    }

    /// Returns the words of the answer: what follows the last tool call, without the reasoning.
    pub fn answer(&self) -> String {
        self.turn.answer()
    }

    /// Returns the reasoning of the whole turn, if the model showed any.
    pub fn reasoning(&self) -> Option<String> {
        let reasoning = text(&self.turn.kept, |content| match content {
            ResponseContent::Reasoning(text) => Some(text),
            ResponseContent::Message(_) => None,
        });
        (!reasoning.is_empty()).then_some(reasoning)
    }

    /// Returns the calls of the turn, as the JSON document has them.
    pub fn calls(&self) -> Vec<Value> {
        let calls = self.turn.kept.iter();
        let count = calls
            .filter(|kind| matches!(kind, EventKind::ToolCallRequest(_)))
            .count();
        list_calls(&self.turn.asked.stream, count, &self.turn.calls)
    }

    /// Returns what all requests of the turn cost, if the provider said anything of it.
    pub fn usage(&self) -> Option<Usage> {
        usage(&self.turn.kept)
    }

    /// Returns about how many tokens delivery saved, in all requests of the turn.
    pub fn saved_tokens(&self) -> u64 {
        self.turn.saved_tokens
    }

    /// Ends the report of a process that is about to end.
    ///
    /// The memory of the history isn't freed: the system takes it back at once, not piece by
    /// piece. The rest, such as connections to servers, is dropped.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub fn into_answered(self) -> Result<Option<Value>, SessionError> {
        let ReadyQuery { stream, files, .. } = self.turn.asked;
        std::mem::forget((stream, files));
        self.answered
    }
}

impl FinishedTurn<'_> {
    /// Returns whether the model said or called anything.
    fn has_answer(&self) -> bool {
        self.kept
            .iter()
            .any(|kind| is_said(kind) || matches!(kind, EventKind::ToolCallRequest(_)))
    }

    /// Returns whether the model said anything after its last call of a tool.
    fn has_last_words(&self) -> bool {
        since_calls(&self.kept).iter().any(is_said)
    }

    /// Returns why the answer was cut off, if it was.
    fn incomplete(&self) -> Option<&str> {
        self.kept.iter().find_map(|kind| match kind {
            EventKind::ChatResponse(response) => response.incomplete.as_deref(),
            _ => None,
        })
    }

    /// Returns the words of the answer.
    fn answer(&self) -> String {
        text(since_calls(&self.kept), |content| match content {
            ResponseContent::Message(text) => Some(text),
            ResponseContent::Reasoning(_) => None,
        })
    }
}

/// Judges how the turn ended.
pub(crate) fn judge<'s>(
    turn: FinishedTurn<'s>,
    schema: Option<&Schema>,
    outcome: Outcome,
) -> Report<'s> {
    let answered = read_outcome(&turn, schema, outcome);
    let answered = answered.map_err(|failure| with_way_on(failure, &turn));
    Report { turn, answered }
}

/// Returns the document that was asked for, or why there is no answer.
fn read_outcome(
    turn: &FinishedTurn<'_>,
    schema: Option<&Schema>,
    outcome: Outcome,
) -> Result<Option<Value>, SessionError> {
    Err(match outcome {
        Outcome::Done { .. } if !turn.has_last_words() => {
            SessionError::new("the model's answer is empty")
        }
        Outcome::Done { .. } => {
            return schema
                .map(|schema| read_structured(schema, turn))
                .transpose();
        }
        Outcome::Interrupted => SessionError::interrupted(),
        Outcome::Failed(error) => refusal::failure(&error, &turn.asked, turn.asked.model()),
        Outcome::Unprepared(error) => {
            SessionError::new(format!("failed to build the next request: {error}"))
        }
        Outcome::Endless { rounds } => SessionError::new(format!(
            "the model called tools {rounds} times in a row and was stopped"
        ))
        .with_hint("`jp query` without a message lets it continue."),
    })
}

/// Says what is kept and how to go on from there.
fn with_way_on(failure: SessionError, turn: &FinishedTurn<'_>) -> SessionError {
    match (turn.id.is_some() && turn.has_answer(), turn.incomplete()) {
        (false, _) => kept_message(failure, turn.id.is_some()),
        (true, None) if !turn.has_last_words() => failure.with_hint(
            "the tool results are kept: `jp query` without a message lets the model continue.",
        ),
        (true, None) => failure.with_hint("the answer is kept: `jp query \"…\"` continues from there."),
        (true, Some(_)) => failure.with_hint(
            "the incomplete answer is kept: `jp query \"Go on.\"` continues it, `jp query` without a message asks again.",
        ),
    }
}

/// Says that the message is not lost.
pub(crate) fn kept_message(failure: SessionError, is_kept: bool) -> SessionError {
    if is_kept {
        failure.with_hint("the message is kept: `jp query` without a message sends it again.")
    } else {
        failure
    }
}

/// Reads the answer as the document that was asked for.
fn read_structured(schema: &Schema, turn: &FinishedTurn<'_>) -> Result<Value, SessionError> {
    schema
        .check(&turn.answer())
        .map_err(|fault| match turn.incomplete() {
            Some(reason) if reason != fault => {
                SessionError::new(format!("the answer was cut off, {reason}: {fault}"))
            }
            _ => SessionError::new(fault),
        })
}

fn is_said(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ChatResponse(_))
}

/// Returns what the model said after its last call of a tool.
fn since_calls(kept: &[EventKind]) -> &[EventKind] {
    let last = kept
        .iter()
        .rposition(|kind| matches!(kind, EventKind::ToolCallRequest(_)));
    &kept[last.map_or(0, |last| last + 1)..]
}

fn text(kept: &[EventKind], is_wanted: fn(&ResponseContent) -> Option<&String>) -> String {
    let texts = kept.iter().filter_map(|kind| match kind {
        EventKind::ChatResponse(response) => is_wanted(&response.content),
        _ => None,
    });
    texts.cloned().collect()
}

/// Returns what all requests of the turn cost.
fn usage(kept: &[EventKind]) -> Option<Usage> {
    let sum = |left: Option<u64>, right: Option<u64>| {
        left.map_or(right, |left| Some(left.saturating_add(right.unwrap_or(0))))
    };
    let usages = kept.iter().filter_map(|kind| match kind {
        EventKind::Usage(usage) => Some(usage.clone()),
        _ => None,
    });
    usages.reduce(|all, usage| Usage {
        model: all.model,
        input: sum(all.input, usage.input),
        cached_read: sum(all.cached_read, usage.cached_read),
        cached_write: sum(all.cached_write, usage.cached_write),
        output: sum(all.output, usage.output),
        reasoning: sum(all.reasoning, usage.reasoning),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_strangers_figures_end_at_the_largest_number() {
        let huge = || {
            EventKind::Usage(Usage {
                input: Some(u64::MAX),
                ..Usage::default()
            })
        };
        assert_eq!(usage(&[huge(), huge()]).unwrap().input, Some(u64::MAX));
    }
}
