//! Which URIs clients subscribed to.

use std::collections::{BTreeMap, HashMap};
use std::panic;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Registry;

/// What clients want to be told of, for [`Registry::on_interest`](crate::Registry::on_interest). The URIs are in the
/// form in which they are compared: ASCII, capital hexadecimal digits, the scheme in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interest<'u> {
    /// A client subscribed to this URI, and none had.
    Begins(&'u str),
    /// No client is subscribed to this URI any more.
    Ends(&'u str),
}

/// Somebody observes what clients subscribe to, until this is dropped: see [`Registry::on_interest`].
#[derive(Debug)]
#[must_use = "nothing is observed any more once this is dropped"]
pub struct Observing {
    registry: Registry,
    number: u64,
}

/// What observes.
struct Observer {
    tell: Box<Tell>,
    /// Waits, for a while, until all is done that it was told; called when nothing is locked.
    settle: Option<Arc<Settle>>,
}

type Tell = dyn Fn(&Registry, Interest<'_>) + Send + Sync;

type Settle = dyn Fn() + Send + Sync;

/// The subscriptions of all clients, by URI.
#[derive(Default)]
pub(super) struct Interests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    subscriptions: HashMap<String, usize>,
    /// In the order in which they came.
    observers: BTreeMap<u64, Observer>,
    /// The number of the next observer.
    next: u64,
}

impl Registry {
    /// Calls a function whenever a URI gets its first subscriber or loses its last one, over all servers that share
    /// the registry, until what this gives is dropped; at once for those that have subscribers already.
    ///
    /// It has to be quick: the client waits for it, all others that subscribe or unsubscribe wait, too, and a server on
    /// standard input and output may answer nothing meanwhile. It must not change subscriptions, nor observe. One that
    /// panics has seen that change, and sees the next.
    pub fn on_interest(
        &self,
        observer: impl Fn(&Registry, Interest<'_>) + Send + Sync + 'static,
    ) -> Observing {
        self.observe(Observer {
            tell: Box::new(observer),
            settle: None,
        })
    }

    /// As [`Registry::on_interest`], for one that is not done when it returns. What subscribes waits by `settle`, once for
    /// all the URIs that it subscribes to.
    #[cfg(feature = "watch")]
    pub(crate) fn on_interest_to_settle(
        &self,
        observer: impl Fn(&Registry, Interest<'_>) + Send + Sync + 'static,
        settle: impl Fn() + Send + Sync + 'static,
    ) -> Observing {
        self.observe(Observer {
            tell: Box::new(observer),
            settle: Some(Arc::new(settle)),
        })
    }

    fn observe(&self, observer: Observer) -> Observing {
        let settle = observer.settle.clone();
        let number = self.with_interests(|state| {
            state
                .subscriptions
                .keys()
                .for_each(|uri| observer.tell(self, Interest::Begins(uri)));
            let number = state.next;
            state.observers.insert(number, observer);
            state.next += 1;
            number
        });
        settle.iter().for_each(|settle| settle());
        Observing {
            registry: self.clone(),
            number,
        }
    }

    /// Waits, for a while, until observers are done with what they were told.
    #[cfg(feature = "server")]
    pub(crate) fn settle_interests(&self) {
        let settles: Vec<Arc<Settle>> = self.with_interests(|state| {
            state
                .observers
                .values()
                .filter_map(|one| one.settle.clone())
                .collect()
        });
        settles.iter().for_each(|settle| settle());
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
            let Some(subscriptions) = state.subscriptions.get_mut(uri) else {
                return;
            };
            *subscriptions -= 1;
            if *subscriptions == 0 {
                state.subscriptions.remove(uri);
                state.tell(self, Interest::Ends(uri));
            }
        });
    }

    /// Observers are called while it is locked: they hear of begins and ends in their order.
    fn with_interests<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(
            &mut self
                .shared
                .interests
                .state
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl State {
    #[cfg(feature = "server")]
    fn tell(&self, registry: &Registry, interest: Interest<'_>) {
        self.observers
            .values()
            .for_each(|observer| observer.tell(registry, interest));
    }
}

impl Observer {
    fn tell(&self, registry: &Registry, interest: Interest<'_>) {
        // The panic hook has said it, and a client's subscription is not the place to fail.
        let _ = panic::catch_unwind(panic::AssertUnwindSafe(|| (self.tell)(registry, interest)));
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        // It is dropped when nothing is locked any more: it may have things that lock.
        let _observer = self
            .registry
            .with_interests(|state| state.observers.remove(&self.number));
    }
}

impl std::fmt::Debug for Interests {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Interests").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn observer_that_panics_at_once_sees_what_is_next() {
        let registry = Registry::new();
        registry.begin_interest("x:a");
        let (sender, seen) = mpsc::channel();
        let _observing = registry.on_interest(move |_, interest| {
            sender.send(format!("{interest:?}")).unwrap();
            assert_ne!(interest, Interest::Begins("x:a"), "it panics");
        });
        registry.begin_interest("x:b");
        assert_eq!(
            seen.try_iter().collect::<Vec<_>>(),
            [r#"Begins("x:a")"#, r#"Begins("x:b")"#]
        );
    }

    #[test]
    fn observer_sees_nothing_more_once_its_guard_is_dropped() {
        let registry = Registry::new();
        let (sender, seen) = mpsc::channel();
        let observing =
            registry.on_interest(move |_, interest| sender.send(format!("{interest:?}")).unwrap());
        registry.begin_interest("x:a");
        drop(observing);
        registry.begin_interest("x:b");
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [r#"Begins("x:a")"#]);
    }

    #[cfg(feature = "watch")]
    #[test]
    fn watch_that_is_dropped_observes_no_more() {
        let registry = Registry::new();
        let watch = crate::FileWatch::start(&registry, |error| panic!("{error}")).unwrap();
        assert_eq!(registry.with_interests(|state| state.observers.len()), 1);
        drop(watch);
        assert_eq!(registry.with_interests(|state| state.observers.len()), 0);
    }
}
