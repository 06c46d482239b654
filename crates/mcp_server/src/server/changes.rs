//! What clients are told without asking.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::Peer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{RoleServer, SubscriptionContext};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::registry::Event;
use crate::template::normal_uri;

/// How many URIs a client may subscribe to.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1024;

/// The URIs that a client subscribed to, as it wrote them, by the form in which URIs are compared.
#[derive(Debug, Clone, Default)]
pub(super) struct Subscriptions {
    uris: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>,
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
    pub(super) fn new<'u>(uris: impl IntoIterator<Item = &'u String>) -> Self {
        let subscriptions = Self::default();
        uris.into_iter().for_each(|uri| {
            subscriptions.add(uri);
        });
        subscriptions
    }

    /// Says whether there was room.
    pub(super) fn add(&self, uri: &str) -> bool {
        let Some(key) = normal_uri(uri) else { return false };
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        let known = uris.get(&key).is_some_and(|spellings| spellings.contains(uri));
        let room = known || uris.values().map(BTreeSet::len).sum::<usize>() < MAX_SUBSCRIPTIONS;
        if room {
            uris.entry(key).or_default().insert(uri.to_owned());
        }
        room
    }

    pub(super) fn remove(&self, uri: &str) {
        let Some(key) = normal_uri(uri) else { return };
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spellings) = uris.get_mut(&key) {
            spellings.remove(uri);
            uris.retain(|_, spellings| !spellings.is_empty());
        }
    }

    /// Those that were updated, as the client wrote them.
    fn among(&self, updated: &Updated) -> Vec<String> {
        let uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        match updated {
            Updated::All => uris.values().flatten().cloned().collect(),
            Updated::Some(updated) => {
                updated.iter().filter_map(|uri| uris.get(&**uri)).flatten().cloned().collect()
            }
        }
    }
}

impl Default for Updated {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Changes {
    /// Waits for a change and takes all that are there by then; nothing if there will be none.
    async fn next(events: &mut Receiver<Event>) -> Option<Self> {
        let mut changes = Self::default();
        match events.recv().await {
            Ok(event) => changes.add(event),
            Err(RecvError::Lagged(_)) => changes = Self::everything(),
            Err(RecvError::Closed) => return None,
        }
        loop {
            match events.try_recv() {
                Ok(event) => changes.add(event),
                Err(TryRecvError::Lagged(_)) => changes = Self::everything(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(changes),
            }
        }
    }

    fn everything() -> Self {
        Self { list: true, updated: Updated::All }
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
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

/// Tells a client of the revisions from 2026-07-28, until it wants no more.
pub(super) async fn listen(mut events: Receiver<Event>, context: &SubscriptionContext) {
    let accepted = context.accepted();
    let wants_list = accepted.resources_list_changed == Some(true);
    let subscriptions = Subscriptions::new(accepted.resource_subscriptions.iter().flatten());
    let sink = context.sink();
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
