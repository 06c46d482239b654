//! The report of a turn: its answer, its calls and its cost.

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

/// A turn that ended, with or without an answer.
pub struct Report<'s> {
    pub(crate) query: ReadyQuery<'s>,
    /// The conversation, if it keeps the query.
    pub(crate) id: Option<String>,
    /// The answers, calls and usage of this turn.
    pub(crate) kept: Vec<EventKind>,
    /// The calls that ended in this turn, in the order of their results.
    pub(crate) calls: Vec<EndedCall>,
    /// The estimated tokens that delivery saved in all requests of the turn.
    pub(crate) saved_tokens: u64,
    /// The document, if the query had a schema, or the reason why there is no answer.
    pub answered: Result<Option<Value>, SessionError>,
}

impl Report<'_> {
    /// Returns the id of the conversation, if it keeps the query.
    pub fn conversation(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the number of the turn, from 1.
    pub fn turn(&self) -> usize {
        newest_request(&self.query.stream).map_or(0, |(turn, _)| turn)
    }

    /// Returns the model that answered: `provider/name`.
    pub fn model(&self) -> &str {
        &self.query.model().label
    }

    /// Returns the snapshots of the message.
    pub fn resources(&self) -> &[Snapshot] {
        newest_request(&self.query.stream).map_or(&[], |(_, request)| request.resources.as_slice())
    }

    /// Returns whether the model answered or called a tool.
    pub fn has_answer(&self) -> bool {
        self.kept
            .iter()
            .any(|kind| is_answer(kind) || matches!(kind, EventKind::ToolCallRequest(_)))
    }

    /// Returns whether a call was refused because no one could be asked.
    pub fn has_refusal_unasked(&self) -> bool {
        self.calls.iter().any(EndedCall::is_refused_unasked)
    }

    /// Returns the reason why the answer was cut off, if it was.
    pub fn incomplete(&self) -> Option<&str> {
        self.kept.iter().find_map(|kind| match kind {
            EventKind::ChatResponse(response) => response.incomplete.as_deref(),
            _ => None,
        })
    }

    /// Returns the text of the answer: everything after the last tool call, without the reasoning.
    pub fn answer(&self) -> String {
        join_texts(after_calls(&self.kept), |content| match content {
            ResponseContent::Message(text) => Some(text),
            ResponseContent::Reasoning(_) => None,
        })
    }

    /// Returns the reasoning of the whole turn, if the model showed any.
    pub fn reasoning(&self) -> Option<String> {
        let reasoning = join_texts(&self.kept, |content| match content {
            ResponseContent::Reasoning(text) => Some(text),
            ResponseContent::Message(_) => None,
        });
        (!reasoning.is_empty()).then_some(reasoning)
    }

    /// Returns the calls of the turn, as the JSON document has them.
    pub fn calls(&self) -> Vec<Value> {
        let calls = self.kept.iter();
        let count = calls
            .filter(|kind| matches!(kind, EventKind::ToolCallRequest(_)))
            .count();
        list_calls(&self.query.stream, count, &self.calls)
    }

    /// Returns the usage of all requests of the turn, if the provider reported any.
    pub fn usage(&self) -> Option<Usage> {
        sum_usage(&self.kept)
    }

    /// Returns the estimated tokens that delivery saved in all requests of the turn.
    pub fn saved_tokens(&self) -> u64 {
        self.saved_tokens
    }

    /// Consumes the report, in a process that is about to end.
    ///
    /// It leaks the history on purpose: the system reclaims its memory faster than freeing it piece
    /// by piece. The rest, such as connections to servers, is dropped.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub fn into_answered(self) -> Result<Option<Value>, SessionError> {
        let ReadyQuery { stream, files, .. } = self.query;
        std::mem::forget((stream, files));
        self.answered
    }

    /// Sets the answer, or the reason why there is none, from the outcome of the turn.
    pub(crate) fn judge(mut self, schema: Option<&Schema>, outcome: Outcome) -> Self {
        self.answered = self
            .read_outcome(schema, outcome)
            .map_err(|failure| self.with_next_step(failure));
        self
    }

    fn read_outcome(
        &self,
        schema: Option<&Schema>,
        outcome: Outcome,
    ) -> Result<Option<Value>, SessionError> {
        Err(match outcome {
            Outcome::Done { .. } if !self.has_last_words() => {
                SessionError::new("the model's answer is empty")
            }
            Outcome::Done { .. } => {
                return schema
                    .map(|schema| self.read_structured(schema))
                    .transpose();
            }
            Outcome::Interrupted => SessionError::interrupted(),
            Outcome::Failed(error) => refusal::describe(&error, &self.query),
            Outcome::Unprepared(error) => {
                SessionError::new(format!("failed to build the next request: {error}"))
            }
            Outcome::Endless { rounds } => SessionError::new(format!(
                "the model called tools {rounds} times in a row and was stopped"
            ))
            .with_hint("`jp query` without a message lets it continue."),
        })
    }

    /// Reads the answer as the document that the schema describes.
    fn read_structured(&self, schema: &Schema) -> Result<Value, SessionError> {
        let fault = match schema.check(&self.answer()) {
            Ok(document) => return Ok(document),
            Err(fault) => fault,
        };
        Err(match self.incomplete() {
            // A cut answer rarely fits the schema, and the cut is the cause.
            Some(reason) if reason != fault => {
                SessionError::new(format!("the answer was cut off, {reason}: {fault}"))
            }
            _ => SessionError::new(fault),
        })
    }

    /// Adds to a failure what the conversation keeps, and how to continue.
    fn with_next_step(&self, failure: SessionError) -> SessionError {
        match (self.id.is_some() && self.has_answer(), self.incomplete()) {
            (false, _) => kept_message(failure, self.id.is_some()),
            (true, None) if !self.has_last_words() => failure.with_hint(
                "the tool results are kept: `jp query` without a message lets the model continue.",
            ),
            (true, None) => {
                failure.with_hint("the answer is kept: `jp query \"…\"` continues from there.")
            }
            (true, Some(_)) => failure.with_hint(
                "the incomplete answer is kept: `jp query \"Go on.\"` continues it, `jp query` without a message asks again.",
            ),
        }
    }

    /// Returns whether the model answered after its last call of a tool.
    fn has_last_words(&self) -> bool {
        after_calls(&self.kept).iter().any(is_answer)
    }
}

/// Adds to a failure that the conversation keeps the message.
pub(crate) fn kept_message(failure: SessionError, is_kept: bool) -> SessionError {
    if is_kept {
        failure.with_hint("the message is kept: `jp query` without a message sends it again.")
    } else {
        failure
    }
}

fn is_answer(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ChatResponse(_))
}

/// Returns the events after the last call of a tool.
fn after_calls(kept: &[EventKind]) -> &[EventKind] {
    let last = kept
        .iter()
        .rposition(|kind| matches!(kind, EventKind::ToolCallRequest(_)));
    &kept[last.map_or(0, |last| last + 1)..]
}

/// Joins the parts of the answer that `pick` chooses.
fn join_texts(kept: &[EventKind], pick: fn(&ResponseContent) -> Option<&String>) -> String {
    let texts = kept.iter().filter_map(|kind| match kind {
        EventKind::ChatResponse(response) => pick(&response.content),
        _ => None,
    });
    texts.cloned().collect()
}

/// Adds up the usage of all requests of the turn. Providers may report any number, so the sums saturate.
fn sum_usage(kept: &[EventKind]) -> Option<Usage> {
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

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    left.map_or(right, |left| Some(left.saturating_add(right.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_sums_saturate() {
        let huge = || {
            EventKind::Usage(Usage {
                input: Some(u64::MAX),
                ..Usage::default()
            })
        };
        assert_eq!(sum_usage(&[huge(), huge()]).unwrap().input, Some(u64::MAX));
    }
}
