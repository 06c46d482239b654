//! Tells clients of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::Peer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{RoleServer, SubscriptionSink};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::budget::{Amount, Budget, Charge};
use crate::Registry;
use crate::registry::Event;
use crate::template::normal_uri;

/// The URIs that a client subscribed to, or that one of its streams is about. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Subscriptions(Arc<Subscribed>);

/// Tells the registry when interest in a URI begins and, at the latest when this is dropped, ends.
#[derive(Debug)]
struct Subscribed {
    registry: Registry,
    budget: Budget,
    /// By the form in which URIs are compared, what the client wrote: it is told of changes as it
    /// subscribed.
    uris: Mutex<BTreeMap<String, Spellings>>,
}

/// The client's spellings of one URI, with a charge for each.
type Spellings = BTreeMap<String, Charge>;

/// The changes since the last notification.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    list: bool,
    updated: Updated,
}

#[derive(Debug, PartialEq, Eq)]
enum Updated {
    /// These, in the form in which URIs are compared.
    Some(BTreeSet<Arc<str>>),
    /// More changed than was kept.
    All,
}

impl Subscriptions {
    pub(super) fn new(registry: Registry, budget: Budget) -> Self {
        Self(Arc::new(Subscribed {
            registry,
            budget,
            uris: Mutex::default(),
        }))
    }

    /// Makes those of another stream of the same client.
    pub(super) fn another(&self) -> Self {
        Self::new(self.0.registry.clone(), self.0.budget.clone())
    }

    /// Adds a URI, and returns whether it is there now: the budget may have no room for it.
    pub(super) fn add(&self, uri: &str) -> bool {
        let Some(key) = normal_uri(uri) else {
            return false;
        };
        let mut uris = self.0.uris();
        if uris
            .get(&key)
            .is_some_and(|spellings| spellings.contains_key(uri))
        {
            return true;
        }
        let Some(charge) = self.0.budget.charge_uri(amount(&uris), uri) else {
            return false;
        };
        let spellings = uris.entry(key.clone()).or_default();
        if spellings.is_empty() {
            self.0.registry.begin_interest(&key);
        }
        spellings.insert(uri.to_owned(), charge);
        true
    }

    pub(super) fn remove(&self, uri: &str) {
        let Some(key) = normal_uri(uri) else { return };
        let mut uris = self.0.uris();
        let Some(spellings) = uris.get_mut(&key) else {
            return;
        };
        spellings.remove(uri);
        if spellings.is_empty() {
            uris.remove(&key);
            self.0.registry.end_interest(&key);
        }
    }

    /// Returns those of these URIs that the client subscribed to, as it wrote them.
    fn select(&self, updated: &Updated) -> Vec<String> {
        let uris = self.0.uris();
        match updated {
            Updated::All => uris.values().flat_map(BTreeMap::keys).cloned().collect(),
            Updated::Some(updated) => updated
                .iter()
                .filter_map(|uri| uris.get(&**uri))
                .flat_map(BTreeMap::keys)
                .cloned()
                .collect(),
        }
    }
}

/// Counts the URIs as the client wrote them, and their bytes.
fn amount(uris: &BTreeMap<String, Spellings>) -> Amount {
    let mut amount = Amount::default();
    uris.values()
        .flat_map(BTreeMap::keys)
        .for_each(|uri| amount.add(uri.len()));
    amount
}

impl Subscribed {
    fn uris(&self) -> MutexGuard<'_, BTreeMap<String, Spellings>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.uris()
            .keys()
            .for_each(|uri| self.registry.end_interest(uri));
    }
}

impl Default for Updated {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Changes {
    /// Waits for a change and takes all that have come by then; `None` if there will be none. It takes
    /// no more than those, because changes may come as fast as they are taken.
    async fn next(events: &mut Receiver<Event>) -> Option<Self> {
        let mut changes = Self::default();
        match events.recv().await {
            Ok(event) => changes.add(event),
            Err(RecvError::Lagged(_)) => changes = Self::everything(),
            Err(RecvError::Closed) => return None,
        }
        for _ in 0..events.len() {
            match events.try_recv() {
                Ok(event) => changes.add(event),
                Err(TryRecvError::Lagged(_)) => changes = Self::everything(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Some(changes)
    }

    fn everything() -> Self {
        Self {
            list: true,
            updated: Updated::All,
        }
    }

    fn add(&mut self, event: Event) {
        match (event, &mut self.updated) {
            (Event::ListChanged, _) => self.list = true,
            (Event::Updated(uri), Updated::Some(uris)) => _ = uris.insert(uri),
            (Event::Updated(_), Updated::All) => (),
        }
    }
}

/// Tells a client of the revisions up to 2025-11-25 of changes, until it is gone.
pub(super) async fn forward(
    mut events: Receiver<Event>,
    peer: Peer<RoleServer>,
    subscriptions: Subscriptions,
) {
    while let Some(changes) = Changes::next(&mut events).await {
        if changes.list && peer.notify_resource_list_changed().await.is_err() {
            return;
        }
        for uri in subscriptions.select(&changes.updated) {
            if peer
                .notify_resource_updated(ResourceUpdatedNotificationParam::new(uri))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// Tells a client of the revisions from 2026-07-28 on of changes, until it cancels the stream.
pub(super) async fn listen(
    mut events: Receiver<Event>,
    subscriptions: Subscriptions,
    sink: &SubscriptionSink,
) {
    let wants_list = sink.accepted().resources_list_changed == Some(true);
    while let Some(changes) = Changes::next(&mut events).await {
        if changes.list && wants_list && sink.notify_resource_list_changed().await.is_err() {
            return;
        }
        for uri in subscriptions.select(&changes.updated) {
            if sink.notify_resource_updated(uri).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::{MAX_URI_BYTES, URI_OVERHEAD};
    use super::*;

    #[test]
    fn streams_of_a_client_share_what_uris_may_take() {
        let first = Subscriptions::new(Registry::new(), Budget::default());
        let uri = |number: usize| format!("x:{number:01000}");
        let fill =
            |stream: &Subscriptions| (0..1000).filter(|number| stream.add(&uri(*number))).count();
        let all = MAX_URI_BYTES / (uri(0).len() + URI_OVERHEAD);
        let streams: Vec<_> = (0..20).map(|_| first.another()).collect();
        assert_eq!(streams.iter().map(fill).sum::<usize>(), all);
        assert!(!first.add(&uri(0)));
        streams[0].remove(&uri(0));
        assert!(first.add(&uri(0)) && !first.add(&uri(1)));
        drop(streams);
        assert_eq!(fill(&first), 1000);
    }
}
