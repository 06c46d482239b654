//! Which URIs clients subscribed to.

use std::collections::HashMap;
#[cfg(feature = "server")]
use std::panic;
use std::sync::{Mutex, PoisonError};

use crate::Registry;

/// What clients want to be told of, for [`Registry::on_interest`](crate::Registry::on_interest). The URIs are in the
/// form in which they are compared: ASCII, capital hexadecimal digits, the scheme in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest<'u> {
    /// A client subscribed to this URI, and none had.
    Begins(&'u str),
    /// No client is subscribed to this URI any more.
    Ends(&'u str),
}

type Observer = Box<dyn Fn(&Registry, Interest<'_>) + Send + Sync>;

/// The subscriptions of all clients, by URI.
#[derive(Default)]
pub(super) struct Interests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    subscriptions: HashMap<String, usize>,
    observers: Vec<Observer>,
}

impl Registry {
    /// Calls a function whenever a URI gets its first subscriber or loses its last one, over all servers that share
    /// the registry; at once for those that have subscribers already. The client waits for it, and it must not change
    /// subscriptions. One that panics has seen that change, and sees the next.
    pub fn on_interest(&self, observer: impl Fn(&Registry, Interest<'_>) + Send + Sync + 'static) {
        self.with_interests(|state| {
            state.subscriptions.keys().for_each(|uri| observer(self, Interest::Begins(uri)));
            state.observers.push(Box::new(observer));
        });
    }

    /// Counts a subscription to a URI in the form in which URIs are compared.
    #[cfg(feature = "server")]
    pub(crate) fn begin_interest(&self, uri: &str) {
        self.with_interests(|state| {
            let subscriptions = state.subscriptions.entry(uri.to_owned()).or_default();
            *subscriptions += 1;
            if *subscriptions == 1 {
                state.tell(self, Interest::Begins(uri));
            }
        });
    }

    /// Takes a subscription back.
    #[cfg(feature = "server")]
    pub(crate) fn end_interest(&self, uri: &str) {
        self.with_interests(|state| {
            let Some(subscriptions) = state.subscriptions.get_mut(uri) else { return };
            *subscriptions -= 1;
            if *subscriptions == 0 {
                state.subscriptions.remove(uri);
                state.tell(self, Interest::Ends(uri));
            }
        });
    }

    /// Observers are called while it is locked: they hear of begins and ends in their order.
    fn with_interests(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.interests.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    #[cfg(feature = "server")]
    fn tell(&self, registry: &Registry, interest: Interest<'_>) {
        for observer in &self.observers {
            // The panic hook has said it, and a client's subscription is not the place to fail.
            let _ = panic::catch_unwind(panic::AssertUnwindSafe(|| observer(registry, interest)));
        }
    }
}

impl std::fmt::Debug for Interests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Interests").finish_non_exhaustive()
    }
}
