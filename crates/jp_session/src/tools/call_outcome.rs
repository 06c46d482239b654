//! What became of calls, for a person who watches and for a script.

use jp_conversation::{EventKind, Stream, ToolCallRequest};
use jp_turn::Verdict;
use serde_json::{Map, Value, json};

/// The outcome of a call in this turn, apart from its result.
#[derive(Debug)]
pub(crate) struct EndedCall {
    /// What was decided about it; nothing if it failed before that.
    verdict: Option<Verdict>,
    /// The same, as the JSON document names it.
    decided: Option<Decided>,
    /// The arguments that it ran with, if the person changed them.
    edited: Option<Map<String, Value>>,
}

/// The decision about a call, as the JSON document names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decided {
    decision: &'static str,
    reason: &'static str,
}

/// What the command line and the workspace have to do with a tool's permission.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Circumstances {
    /// `--yes` stands for the person.
    pub(crate) is_yes: bool,
    /// Without `--yes` the tool would ask.
    pub(crate) is_raised: bool,
    /// The tool asks because the workspace is not trusted with it.
    pub(crate) is_untrusted: bool,
}

impl EndedCall {
    pub(crate) fn new(
        verdict: Option<Verdict>,
        edited: Option<&Map<String, Value>>,
        circumstances: Circumstances,
    ) -> Self {
        Self {
            verdict,
            decided: verdict.map(|verdict| decided(verdict, circumstances)),
            edited: edited.cloned(),
        }
    }

    /// Returns whether the call was refused because there was no terminal to ask on.
    pub(crate) fn is_refused_unasked(&self) -> bool {
        self.verdict == Some(Verdict::RefusedUnasked)
    }
}

/// Returns the JSON names for a verdict.
fn decided(verdict: Verdict, circumstances: Circumstances) -> Decided {
    let Circumstances {
        is_yes,
        is_raised,
        is_untrusted,
    } = circumstances;
    let (decision, reason) = match verdict {
        Verdict::AllowedUnasked if is_raised => ("allowed", "yes"),
        Verdict::AllowedUnasked => ("allowed", "run"),
        Verdict::AllowedByPerson if is_yes => ("allowed", "yes"),
        Verdict::AllowedByPerson => ("allowed", "user"),
        Verdict::Denied => ("refused", "run"),
        Verdict::RefusedByPerson => ("refused", "user"),
        Verdict::RefusedUnasked if is_untrusted => ("refused", "untrusted"),
        Verdict::RefusedUnasked => ("refused", "no_terminal"),
    };
    Decided { decision, reason }
}

/// Returns the newest calls of a conversation, with how each ended; `ended` are those of this turn.
pub(crate) fn list_calls(stream: &Stream, count: usize, ended: &[EndedCall]) -> Vec<Value> {
    let is_response =
        |event: &&jp_conversation::Event| matches!(event.kind, EventKind::ToolCallResponse(_));
    let before = stream
        .events()
        .iter()
        .filter(is_response)
        .count()
        .saturating_sub(ended.len());
    let mut calls: Vec<NewestCall<'_>> = Vec::new();
    let mut responses = 0;
    for event in stream.events() {
        match &event.kind {
            EventKind::ToolCallRequest(call) => calls.push(NewestCall {
                call,
                is_error: None,
                ended: None,
            }),
            EventKind::ToolCallResponse(response) => {
                responses += 1;
                // Some providers count their ids from 0 in each answer.
                let is_open = |known: &&mut NewestCall<'_>| {
                    known.is_error.is_none() && known.call.id == response.id
                };
                if let Some(known) = calls.iter_mut().find(is_open) {
                    known.is_error = Some(response.is_error);
                    known.ended = (responses - 1_usize)
                        .checked_sub(before)
                        .and_then(|index| ended.get(index));
                }
            }
            _ => {}
        }
    }
    calls
        .split_off(calls.len().saturating_sub(count))
        .iter()
        .map(NewestCall::document)
        .collect()
}

/// A call as the conversation has it.
struct NewestCall<'a> {
    call: &'a ToolCallRequest,
    /// How it ended, once it has.
    is_error: Option<bool>,
    ended: Option<&'a EndedCall>,
}

impl NewestCall<'_> {
    fn document(&self) -> Value {
        let Self {
            call,
            is_error,
            ended,
        } = self;
        let decided = ended.and_then(|ended| ended.decided);
        let edited = ended.and_then(|ended| ended.edited.as_ref());
        json!({
            "id": call.id, "tool": call.name, "arguments": edited.unwrap_or(&call.arguments),
            "is_error": is_error.unwrap_or(true), "decision": decided.map(|decided| decided.decision),
            "reason": decided.map(|decided| decided.reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_names_what_decided() {
        let words = |verdict, circumstances| {
            let Decided { decision, reason } = decided(verdict, circumstances);
            (decision, reason)
        };
        let none = Circumstances::default();
        let yes = Circumstances {
            is_yes: true,
            ..none
        };
        let raised = Circumstances {
            is_raised: true,
            ..yes
        };
        let untrusted = Circumstances {
            is_untrusted: true,
            ..none
        };
        for (verdict, circumstances, expected) in [
            (Verdict::AllowedUnasked, none, ("allowed", "run")),
            (Verdict::AllowedUnasked, yes, ("allowed", "run")),
            (Verdict::AllowedUnasked, raised, ("allowed", "yes")),
            (Verdict::AllowedByPerson, none, ("allowed", "user")),
            (Verdict::AllowedByPerson, yes, ("allowed", "yes")),
            (Verdict::Denied, yes, ("refused", "run")),
            (Verdict::RefusedByPerson, untrusted, ("refused", "user")),
            (Verdict::RefusedUnasked, none, ("refused", "no_terminal")),
            (Verdict::RefusedUnasked, untrusted, ("refused", "untrusted")),
        ] {
            assert_eq!(
                words(verdict, circumstances),
                expected,
                "{verdict:?} {circumstances:?}"
            );
        }
    }
}
