//! The sessions of clients until 2025-11-25, of which so many may be at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// How many sessions there may be at once.
const MAX_SESSIONS: usize = 1024;

/// How long a session lasts in which nothing is asked and nothing told.
const SILENCE: Duration = Duration::from_secs(4 * 60 * 60);

/// The sessions, and when they were used.
pub(super) struct Sessions {
    pub(super) manager: Arc<LocalSessionManager>,
    uses: Mutex<HashMap<Arc<str>, Use>>,
}

/// How a session is used.
struct Use {
    last: Instant,
    /// How many requests and streams are open.
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
        Self { manager: Arc::new(manager), uses: Mutex::default() }
    }

    /// Notes that a session is used; nothing for one that there is not.
    pub(super) async fn begin(self: &Arc<Self>, id: &str) -> Option<InUse> {
        let id: Arc<str> = id.into();
        if !self.manager.sessions.read().await.contains_key(&id) {
            return None;
        }
        let mut uses = self.uses();
        let of_session = uses.entry(Arc::clone(&id)).or_insert(Use { last: Instant::now(), open: 0 });
        of_session.open += 1;
        Some(InUse { sessions: Arc::clone(self), id: Arc::clone(&id) })
    }

    pub(super) async fn are_many(&self) -> bool {
        self.manager.sessions.read().await.len() >= MAX_SESSIONS
    }

    /// Makes room for another session by ending the one that was not used for the longest time; says whether
    /// there is any.
    pub(super) async fn make_room(&self) -> bool {
        let ids: HashSet<Arc<str>> = self.manager.sessions.read().await.keys().cloned().collect();
        match self.idlest(&ids) {
            Some(id) => self.manager.close_session(&id).await.is_ok(),
            None => false,
        }
    }

    /// The one of these sessions that has nothing open, and that was not used for the longest time.
    fn idlest(&self, ids: &HashSet<Arc<str>>) -> Option<Arc<str>> {
        let mut uses = self.uses();
        uses.retain(|id, _| ids.contains(id));
        let idle = ids.iter().filter(|id| uses.get(*id).is_none_or(|of_session| of_session.open == 0));
        idle.min_by_key(|id| uses.get(*id).map(|of_session| of_session.last)).cloned()
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<Arc<str>, Use>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    /// Passes on a part of the answer.
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
