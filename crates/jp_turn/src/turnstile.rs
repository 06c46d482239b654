//! Orders the prompts of an answer's calls: one at a time, in call order.
//!
//! A call that needs permission waits until every earlier call is allowed or refused. A call with a
//! question waits until every earlier call has ended, but not for long: one of them may take hours.
//! So prompts come in the same order each time, whichever of the calls is faster.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jp_conversation::ToolCallRequest;

/// The time that a question waits for earlier calls: longer than most tools need to ask, and too
/// short for a user to notice.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// The kind of prompt that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptKind {
    Permission,
    Question,
}

/// The stage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Not decided yet whether it may run.
    Undecided,
    /// It was allowed to run, or refused.
    Decided,
    /// It has its result.
    Ended,
}

/// The order in which the calls of an answer ask.
#[derive(Debug)]
pub(crate) struct Turnstile {
    /// The ids of the calls, in their order.
    calls: Vec<String>,
    state: Mutex<State>,
    changed: Condvar,
    patience: Duration,
}

#[derive(Debug)]
struct State {
    /// One for each call.
    stages: Vec<Stage>,
    /// The calls that want to ask.
    waiting: BTreeSet<usize>,
    /// True while a call asks.
    is_asking: bool,
}

/// A call's turn to ask; it ends with the value.
pub(crate) struct AskingTurn<'a>(&'a Turnstile);

impl Turnstile {
    pub(crate) fn new(calls: &[ToolCallRequest], patience: Duration) -> Self {
        let state = State {
            stages: vec![Stage::Undecided; calls.len()],
            waiting: BTreeSet::new(),
            is_asking: false,
        };
        let calls = calls.iter().map(|call| call.id.clone()).collect();
        Self {
            calls,
            state: Mutex::new(state),
            changed: Condvar::new(),
            patience,
        }
    }

    /// Returns the number of a call; one that is not in the answer comes last.
    pub(crate) fn number(&self, id: &str) -> usize {
        self.calls
            .iter()
            .position(|call| call == id)
            .unwrap_or(self.calls.len())
    }

    /// Waits for a call's turn to ask for something.
    pub(crate) fn enter(&self, call: usize, kind: PromptKind) -> AskingTurn<'_> {
        let deadline = Instant::now() + self.patience;
        let mut state = self.state();
        state.waiting.insert(call);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.may_ask(call, kind, left.is_zero()) {
                break;
            }
            // No notification comes when the patience ends, so the wait has to be timed. After
            // that only other calls can change something, and they do notify.
            let limit = if left.is_zero() { self.patience } else { left };
            let waited = self.changed.wait_timeout(state, limit);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&call);
        state.is_asking = true;
        AskingTurn(self)
    }

    /// Records the stage of a call.
    pub(crate) fn reach(&self, call: usize, stage: Stage) {
        if let Some(known) = self.state().stages.get_mut(call) {
            *known = stage.max(*known);
        }
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns whether it is a call's turn; `is_late` says that its question has waited long
    /// enough.
    fn may_ask(&self, call: usize, kind: PromptKind, is_late: bool) -> bool {
        // The stages are ordered, so the slowest of the earlier calls decides.
        let slowest = self.stages.iter().take(call).min();
        let is_due = match kind {
            PromptKind::Permission => slowest.is_none_or(|stage| *stage >= Stage::Decided),
            PromptKind::Question => is_late || slowest.is_none_or(|stage| *stage >= Stage::Ended),
        };
        is_due && !self.is_asking && self.waiting.first() == Some(&call)
    }
}

impl Drop for AskingTurn<'_> {
    fn drop(&mut self) {
        self.0.state().is_asking = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{PromptKind::*, Stage::*, *};

    fn state(stages: &[Stage], waiting: &[usize]) -> State {
        State {
            stages: stages.into(),
            waiting: waiting.iter().copied().collect(),
            is_asking: false,
        }
    }

    #[test]
    fn call_asks_once_all_earlier_ones_are_far_enough() {
        let state = state(&[Ended, Decided, Undecided], &[2]);
        assert!(state.may_ask(2, Permission, false) && !state.may_ask(2, Question, false));
        assert!(
            state.may_ask(2, Question, true),
            "an earlier call may take hours"
        );
        assert!(
            !State {
                is_asking: true,
                ..state
            }
            .may_ask(2, Question, true)
        );
        let undecided = self::state(&[Undecided, Undecided], &[1]);
        assert!(!undecided.may_ask(1, Permission, true));
    }

    #[test]
    fn earliest_waiting_call_asks_first() {
        let state = state(&[Ended, Decided, Undecided], &[1, 2]);
        assert!(state.may_ask(1, Question, true) && !state.may_ask(2, Permission, true));
    }

    #[test]
    fn questions_come_in_call_order_however_late_the_first_is() {
        let call = |id: &str| ToolCallRequest {
            id: id.to_owned(),
            name: "t".to_owned(),
            arguments: serde_json::Map::new(),
            metadata: serde_json::Map::new(),
        };
        let turnstile = Turnstile::new(&[call("0"), call("1")], Duration::from_secs(3600));
        let asked = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = turnstile.enter(1, Question);
                asked.lock().unwrap().push(1);
            });
            // If the order is broken, the second call asks at once and never waits.
            while turnstile.state().waiting.is_empty() && asked.lock().unwrap().is_empty() {
                std::thread::yield_now();
            }
            let turn = turnstile.enter(0, Question);
            asked.lock().unwrap().push(0);
            drop(turn);
            turnstile.reach(0, Ended);
        });
        assert_eq!(asked.into_inner().unwrap(), [0, 1]);
    }
}
