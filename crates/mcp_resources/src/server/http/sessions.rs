//! The sessions of clients up to 2025-11-25, of a bounded number.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// The most sessions at a time. Each keeps a task and its subscriptions.
const MAX_SESSIONS: usize = 1024;

/// The time after which an idle session ends. Users leave their clients open over a break.
const SILENCE: Duration = Duration::from_secs(4 * 60 * 60);

/// The sessions and the times of their last use.
pub(super) struct Sessions {
    pub(super) manager: Arc<LocalSessionManager>,
    uses: Mutex<HashMap<Arc<str>, Use>>,
    /// Held by a client that makes a session although there are many.
    turn: tokio::sync::Mutex<()>,
}

/// The use of a session.
struct Use {
    last: Instant,
    /// The number of its open requests and streams.
    open: usize,
}

/// A request of a session, until its answer is written.
pub(super) struct InUse {
    sessions: Arc<Sessions>,
    id: Arc<str>,
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(SILENCE);
        Self {
            manager: Arc::new(manager),
            uses: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Notes that a session is used; `None` if there is no such session.
    pub(super) async fn begin(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let id: Arc<str> = id.into();
        let sessions = self.manager.sessions.read().await;
        if !sessions.contains_key(&id) {
            return None;
        }
        let mut uses = self.uses();
        // rmcp doesn't report the end of a session, so ended ones are removed here.
        if uses.len() > 2 * MAX_SESSIONS {
            uses.retain(|id, _| sessions.contains_key(id));
        }
        let of_session = uses.entry(Arc::clone(&id)).or_insert(Use {
            last: Instant::now(),
            open: 0,
        });
        of_session.open += 1;
        Some(InUse {
            sessions: Arc::clone(self),
            id: Arc::clone(&id),
        })
    }

    /// Returns whether one more session would be too many.
    pub(super) async fn are_many(&self) -> bool {
        self.manager.sessions.read().await.len() >= MAX_SESSIONS
    }

    /// Waits until no other client makes a session although there are many.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Ends the sessions that have been idle for the longest time, until there are not too many. Returns whether
    /// the new one may stay.
    pub(super) async fn make_room(&self, new: &str) -> bool {
        loop {
            let ids: HashSet<Arc<str>> =
                self.manager.sessions.read().await.keys().cloned().collect();
            if ids.len() <= MAX_SESSIONS {
                return true;
            }
            let idlest = self.idlest(&ids, new);
            let ended = idlest.clone().unwrap_or_else(|| new.into());
            if self.manager.close_session(&ended).await.is_err() || idlest.is_none() {
                return idlest.is_some();
            }
        }
    }

    /// Returns the session that has been idle for the longest time. A session without a known use is the last
    /// choice, because it may be about to begin.
    fn idlest(&self, ids: &HashSet<Arc<str>>, new: &str) -> Option<Arc<str>> {
        let uses = self.uses();
        let idle = ids.iter().filter(|id| &***id != new);
        let idle = idle.filter(|id| uses.get(*id).is_none_or(|of_session| of_session.open == 0));
        idle.min_by_key(|id| {
            let last = uses.get(*id).map(|of_session| of_session.last);
            (last.is_none(), last)
        })
        .cloned()
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<Arc<str>, Use>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    /// Passes on a part of the answer. A closure that calls this owns the use until the answer is written.
    pub(super) fn hold<T>(&self, part: T) -> T {
        part
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(of_session) = self.sessions.uses().get_mut(&self.id) {
            of_session.open -= 1;
            of_session.last = Instant::now();
        }
    }
}
