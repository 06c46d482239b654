//! Counts subscriptions by URI, and calls observers when one begins or ends.

use std::collections::{BTreeMap, HashMap};
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A change of what clients subscribe to, for [`Registry::on_interest`](crate::Registry::on_interest).
///
/// The URIs are in the form in which they are compared, as [`Resource::key`](crate::Resource::key)
/// returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interest<'u> {
    /// A client subscribed to this URI, and none had.
    Begins(&'u str),
    /// No client is subscribed to this URI any more.
    Ends(&'u str),
}

/// A function that is told of changes; `C` is what it is told them about.
pub(super) struct Observer<C> {
    pub(super) tell: Box<Tell<C>>,
    /// Waits, for a limited time, until the observer is done with what it was told. It is called when
    /// nothing is locked.
    pub(super) settle: Option<Arc<Settle>>,
}

type Tell<C> = dyn Fn(&C, Interest<'_>) + Send + Sync;

type Settle = dyn Fn() + Send + Sync;

/// The subscriptions of all clients, and their observers.
pub(super) struct Interests<C> {
    subscribers: Mutex<Subscribers<C>>,
}

struct Subscribers<C> {
    /// The number of subscribed clients, by URI.
    counts: HashMap<String, usize>,
    /// In the order in which they came.
    observers: BTreeMap<u64, Observer<C>>,
    /// The number of the next observer.
    next: u64,
}

/// Observers are called while the subscribers are locked, so that they hear of begins and ends in order.
impl<C> Interests<C> {
    /// Adds an observer, tells it what clients are subscribed to, and returns its number.
    pub(super) fn observe(&self, context: &C, observer: Observer<C>) -> u64 {
        let settle = observer.settle.clone();
        let number = self.lock().add(context, observer);
        settle.iter().for_each(|settle| settle());
        number
    }

    /// Removes an observer. The caller drops it when nothing is locked, because its functions may own
    /// something that locks.
    #[must_use]
    pub(super) fn remove(&self, number: u64) -> Option<Observer<C>> {
        self.lock().observers.remove(&number)
    }

    /// Waits, for a limited time, until observers are done with what they were told.
    #[cfg(feature = "server")]
    pub(super) fn settle(&self) {
        let settles: Vec<Arc<Settle>> = self
            .lock()
            .observers
            .values()
            .filter_map(|observer| observer.settle.clone())
            .collect();
        settles.iter().for_each(|settle| settle());
    }

    /// Counts a subscription.
    #[cfg(feature = "server")]
    pub(super) fn begin(&self, context: &C, uri: &str) {
        let mut subscribers = self.lock();
        let count = subscribers.counts.entry(uri.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            subscribers.tell(context, Interest::Begins(uri));
        }
    }

    /// Takes a subscription back.
    #[cfg(feature = "server")]
    pub(super) fn end(&self, context: &C, uri: &str) {
        let mut subscribers = self.lock();
        let Some(count) = subscribers.counts.get_mut(uri) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            subscribers.counts.remove(uri);
            subscribers.tell(context, Interest::Ends(uri));
        }
    }

    #[cfg(all(test, feature = "watch"))]
    pub(super) fn observer_count(&self) -> usize {
        self.lock().observers.len()
    }

    fn lock(&self) -> MutexGuard<'_, Subscribers<C>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Subscribers<C> {
    fn add(&mut self, context: &C, observer: Observer<C>) -> u64 {
        self.counts
            .keys()
            .for_each(|uri| observer.tell(context, Interest::Begins(uri)));
        let number = self.next;
        self.observers.insert(number, observer);
        self.next += 1;
        number
    }

    #[cfg(feature = "server")]
    fn tell(&self, context: &C, interest: Interest<'_>) {
        self.observers
            .values()
            .for_each(|observer| observer.tell(context, interest));
    }
}

impl<C> Observer<C> {
    fn tell(&self, context: &C, interest: Interest<'_>) {
        // The panic hook has reported it, and a client's subscription must not fail because of it.
        let _ = panic::catch_unwind(panic::AssertUnwindSafe(|| (self.tell)(context, interest)));
    }
}

impl<C> Default for Interests<C> {
    fn default() -> Self {
        Self {
            subscribers: Mutex::new(Subscribers {
                counts: HashMap::new(),
                observers: BTreeMap::new(),
                next: 0,
            }),
        }
    }
}

impl<C> std::fmt::Debug for Interests<C> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Interests").finish_non_exhaustive()
    }
}
