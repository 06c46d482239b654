//! What clients are told without asking.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::Peer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{RoleServer, SubscriptionSink};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::Registry;
use crate::registry::Event;
use crate::template::normal_uri;

/// How many URIs a client may subscribe to.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1024;

/// How many bytes the URIs may have that a client subscribed to.
const MAX_SUBSCRIBED_BYTES: usize = 1024 * 1024;

/// How many bytes the URIs may take in memory that all streams of a client are about.
const MAX_STREAMED_BYTES: usize = 16 * MAX_SUBSCRIBED_BYTES;

/// What a URI takes beside its own bytes, about.
const OVERHEAD: usize = 256;

/// The URIs that a client subscribed to, as it wrote them, by the form in which URIs are compared.
#[derive(Debug, Clone)]
pub(super) struct Subscriptions {
    shared: Arc<Subscribed>,
}

/// The registry is told of each URI, and that it is over when this is dropped.
#[derive(Debug)]
struct Subscribed {
    registry: Registry,
    uris: Mutex<BTreeMap<String, BTreeSet<String>>>,
    /// What the URIs of all streams of the client take.
    streamed: Arc<AtomicUsize>,
}

/// What happened since a client was told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    list: bool,
    updated: Updated,
}

#[derive(Debug, PartialEq, Eq)]
enum Updated {
    /// These, in the form in which URIs are compared.
    Some(BTreeSet<Arc<str>>),
    /// So many that not all are known.
    All,
}

impl Subscriptions {
    pub(super) fn new(registry: Registry) -> Self {
        Self::counted(registry, Arc::default())
    }

    /// Those of another stream of the same client.
    pub(super) fn another(&self) -> Self {
        Self::counted(
            self.shared.registry.clone(),
            Arc::clone(&self.shared.streamed),
        )
    }

    fn counted(registry: Registry, streamed: Arc<AtomicUsize>) -> Self {
        Self {
            shared: Arc::new(Subscribed {
                registry,
                uris: Mutex::default(),
                streamed,
            }),
        }
    }

    /// Says whether there was room.
    pub(super) fn add(&self, uri: &str) -> bool {
        let Some(key) = normal_uri(uri) else {
            return false;
        };
        let mut uris = self.shared.uris();
        let known = uris
            .get(&key)
            .is_some_and(|spellings| spellings.contains(uri));
        let room = known || has_room(uris.values().flatten(), uri) && self.shared.take(uri);
        if room {
            let spellings = uris.entry(key.clone()).or_default();
            if spellings.is_empty() {
                self.shared.registry.begin_interest(&key);
            }
            spellings.insert(uri.to_owned());
        }
        room
    }

    pub(super) fn remove(&self, uri: &str) {
        let Some(key) = normal_uri(uri) else { return };
        let mut uris = self.shared.uris();
        let Some(spellings) = uris.get_mut(&key) else {
            return;
        };
        if spellings.remove(uri) {
            self.shared.give_back(uri);
        }
        if spellings.is_empty() {
            uris.remove(&key);
            self.shared.registry.end_interest(&key);
        }
    }

    /// Those that were updated, as the client wrote them.
    fn among(&self, updated: &Updated) -> Vec<String> {
        let uris = self.shared.uris();
        match updated {
            Updated::All => uris.values().flatten().cloned().collect(),
            Updated::Some(updated) => updated
                .iter()
                .filter_map(|uri| uris.get(&**uri))
                .flatten()
                .cloned()
                .collect(),
        }
    }
}

fn has_room<'u>(uris: impl Iterator<Item = &'u String>, uri: &str) -> bool {
    let (count, bytes) = uris.fold((0, 0), |(count, bytes), uri| (count + 1, bytes + uri.len()));
    count < MAX_SUBSCRIPTIONS && bytes + uri.len() <= MAX_SUBSCRIBED_BYTES
}

impl Subscribed {
    /// Says whether there is room for another URI in all streams of the client.
    fn take(&self, uri: &str) -> bool {
        let with = |taken: usize| {
            Some(taken + uri.len() + OVERHEAD).filter(|sum| *sum <= MAX_STREAMED_BYTES)
        };
        self.streamed.fetch_update(Relaxed, Relaxed, with).is_ok()
    }

    fn give_back(&self, uri: &str) {
        self.streamed.fetch_sub(uri.len() + OVERHEAD, Relaxed);
    }

    fn uris(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let uris = self.uris();
        uris.keys().for_each(|uri| self.registry.end_interest(uri));
        uris.values().flatten().for_each(|uri| self.give_back(uri));
    }
}

impl Default for Updated {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Changes {
    /// Waits for a change and takes all that are there by then, and no more, as they may come as fast as they are
    /// taken; nothing if there will be none.
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

/// Tells a client of the revisions until 2025-11-25, until it is gone.
pub(super) async fn forward(
    mut events: Receiver<Event>,
    peer: Peer<RoleServer>,
    subscriptions: Subscriptions,
) {
    while let Some(changes) = Changes::next(&mut events).await {
        if changes.list && peer.notify_resource_list_changed().await.is_err() {
            return;
        }
        for uri in subscriptions.among(&changes.updated) {
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

/// Tells a client of the revisions from 2026-07-28, until it wants no more.
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
        for uri in subscriptions.among(&changes.updated) {
            if sink.notify_resource_updated(uri).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_a_client_share_what_uris_may_take() {
        let first = Subscriptions::new(Registry::new());
        let uri = |number: usize| format!("x:{number:01000}");
        let fill =
            |stream: &Subscriptions| (0..1000).filter(|number| stream.add(&uri(*number))).count();
        let all = MAX_STREAMED_BYTES / (uri(0).len() + OVERHEAD);
        let streams: Vec<_> = (0..20).map(|_| first.another()).collect();
        assert_eq!(streams.iter().map(fill).sum::<usize>(), all);
        assert!(!first.add(&uri(0)));
        streams[0].remove(&uri(0));
        assert!(first.add(&uri(0)) && !first.add(&uri(1)));
        drop(streams);
        assert_eq!(fill(&first), 1000);
    }
}
