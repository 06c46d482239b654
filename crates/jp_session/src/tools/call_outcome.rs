//! The outcomes of calls, for people and for scripts.

use jp_conversation::{EventKind, Stream, ToolCallRequest};
use jp_turn::Verdict;
use serde_json::{Map, Value, json};

/// The outcome of a call in this turn, without its result.
#[derive(Debug)]
pub(crate) struct EndedCall {
    /// The decision about it; `None` if it failed before that.
    verdict: Option<Verdict>,
    /// The same for the JSON document.
    named: Option<NamedDecision>,
    /// The arguments that it ran with, if the user changed them.
    edited: Option<Map<String, Value>>,
}

/// The decision about a call, as the JSON document names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NamedDecision {
    decision: &'static str,
    reason: &'static str,
}

/// The influence of the command line and the workspace on the permission of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Circumstances {
    /// `--yes` answers for the user.
    pub(crate) is_yes: bool,
    /// The tool would ask without `--yes`.
    pub(crate) is_raised: bool,
    /// The tool asks because the user has not approved what the workspace lets it do.
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
            named: verdict.map(|verdict| name_decision(verdict, circumstances)),
            edited: edited.cloned(),
        }
    }

    /// Returns whether the call was refused because there was no terminal to ask on.
    pub(crate) fn is_refused_unasked(&self) -> bool {
        self.verdict == Some(Verdict::RefusedUnasked)
    }
}

/// Returns the JSON names for a verdict.
fn name_decision(verdict: Verdict, circumstances: Circumstances) -> NamedDecision {
    let Circumstances {
        is_yes,
        is_raised,
        is_untrusted,
    } = circumstances;
    let (decision, reason) = match verdict {
        Verdict::AllowedUnasked if is_raised => ("allowed", "yes"),
        Verdict::AllowedUnasked => ("allowed", "run"),
        Verdict::AllowedByUser if is_yes => ("allowed", "yes"),
        Verdict::AllowedByUser => ("allowed", "user"),
        Verdict::Denied => ("refused", "run"),
        Verdict::RefusedByUser => ("refused", "user"),
        Verdict::RefusedUnasked if is_untrusted => ("refused", "untrusted"),
        Verdict::RefusedUnasked => ("refused", "no_terminal"),
    };
    NamedDecision { decision, reason }
}

/// Returns the newest calls of a conversation as JSON. `ended` has the outcomes of this turn, in the order of the
/// responses.
pub(crate) fn list_calls(stream: &Stream, count: usize, ended: &[EndedCall]) -> Vec<Value> {
    let responses = stream
        .events()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ToolCallResponse(_)))
        .count();
    // Responses of earlier turns come first and have no outcome.
    let earlier = responses.saturating_sub(ended.len());
    let mut outcomes = std::iter::repeat_n(None, earlier).chain(ended.iter().map(Some));
    let mut calls: Vec<NewestCall<'_>> = Vec::new();
    for event in stream.events() {
        match &event.kind {
            EventKind::ToolCallRequest(call) => calls.push(NewestCall {
                call,
                is_error: None,
                ended: None,
            }),
            EventKind::ToolCallResponse(response) => {
                let outcome = outcomes.next().flatten();
                // Some providers count their ids from 0 in each answer, so a response is for the first open call.
                let open = calls
                    .iter_mut()
                    .find(|known| known.is_error.is_none() && known.call.id == response.id);
                if let Some(known) = open {
                    known.is_error = Some(response.is_error);
                    known.ended = outcome;
                }
            }
            _ => {}
        }
    }
    calls
        .split_off(calls.len().saturating_sub(count))
        .iter()
        .map(NewestCall::to_json)
        .collect()
}

/// A call of a conversation.
struct NewestCall<'a> {
    call: &'a ToolCallRequest,
    /// Its result is an error; `None` if it has no response.
    is_error: Option<bool>,
    ended: Option<&'a EndedCall>,
}

impl NewestCall<'_> {
    fn to_json(&self) -> Value {
        let named = self.ended.and_then(|ended| ended.named);
        let edited = self.ended.and_then(|ended| ended.edited.as_ref());
        json!({
            "id": self.call.id,
            "tool": self.call.name,
            "arguments": edited.unwrap_or(&self.call.arguments),
            // A call without a response was interrupted.
            "is_error": self.is_error.unwrap_or(true),
            "decision": named.map(|named| named.decision),
            "reason": named.map(|named| named.reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decision_has_the_name_of_its_reason() {
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
            (Verdict::AllowedByUser, none, ("allowed", "user")),
            (Verdict::AllowedByUser, yes, ("allowed", "yes")),
            (Verdict::Denied, yes, ("refused", "run")),
            (Verdict::RefusedByUser, untrusted, ("refused", "user")),
            (Verdict::RefusedUnasked, none, ("refused", "no_terminal")),
            (Verdict::RefusedUnasked, untrusted, ("refused", "untrusted")),
        ] {
            let NamedDecision { decision, reason } = name_decision(verdict, circumstances);
            assert_eq!(
                (decision, reason),
                expected,
                "{verdict:?} {circumstances:?}"
            );
        }
    }
}
