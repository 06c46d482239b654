//! Observers of what clients subscribe to.

#[cfg(feature = "watch")]
use std::sync::Arc;

use super::Registry;
use super::interest::{Interest, Observer};

/// Keeps an observer of [`Registry::on_interest`] until it is dropped.
#[derive(Debug)]
#[must_use = "the observer is removed when this is dropped"]
pub struct Observing {
    registry: Registry,
    number: u64,
}

impl Registry {
    /// Calls a function whenever a URI gets its first subscriber or loses its last one.
    ///
    /// All servers that share the registry count. The function is called at once for URIs that have
    /// subscribers already, and until the returned value is dropped.
    ///
    /// The function must be quick: the client waits for it, every other subscription waits too, and a
    /// server on standard input and output may answer nothing meanwhile. It must not change
    /// subscriptions, and must not add or remove observers. If it panics, it still hears of later changes.
    pub fn on_interest(
        &self,
        observer: impl Fn(&Registry, Interest<'_>) + Send + Sync + 'static,
    ) -> Observing {
        self.observe(Observer {
            tell: Box::new(observer),
            settle: None,
        })
    }

    /// Adds an observer that is not done when it returns. A client that subscribes waits by `settle`, once
    /// for all the URIs that it subscribes to.
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

    fn observe(&self, observer: Observer<Self>) -> Observing {
        Observing {
            number: self.shared.interests.observe(self, observer),
            registry: self.clone(),
        }
    }

    /// Waits, for a limited time, until observers are done with what they were told.
    #[cfg(feature = "server")]
    pub(crate) fn settle_interests(&self) {
        self.shared.interests.settle();
    }

    /// Counts a subscription to a URI in the form in which URIs are compared.
    #[cfg(feature = "server")]
    pub(crate) fn begin_interest(&self, uri: &str) {
        self.shared.interests.begin(self, uri);
    }

    /// Takes a subscription back.
    #[cfg(feature = "server")]
    pub(crate) fn end_interest(&self, uri: &str) {
        self.shared.interests.end(self, uri);
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        drop(self.registry.shared.interests.remove(self.number));
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
        assert_eq!(registry.shared.interests.observer_count(), 1);
        drop(watch);
        assert_eq!(registry.shared.interests.observer_count(), 0);
    }
}
