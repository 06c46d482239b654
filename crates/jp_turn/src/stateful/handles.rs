//! The processes of a turn, by the names that the model chose.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
};

use super::{pending::Pending, process::LineProcess};

/// The maximum number of processes at once. A model that forgets to end them should not fill the
/// machine.
const MAX_LIVE: usize = 8;

/// The processes of a turn; dropping it ends them all, but for those that stay.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    live: Mutex<Live>,
}

#[derive(Debug, Default)]
struct Live {
    sessions: BTreeMap<Key, Arc<Mutex<Session>>>,
    /// Processes that ended between turns, and the last that came from them.
    gone: BTreeMap<Key, String>,
    /// True after the processes of earlier turns were adopted.
    has_adopted: bool,
}

/// The tool, and the name that the model chose.
pub(super) type Key = (String, String);

/// A process, and what it waits for.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) process: LineProcess,
    pub(super) pending: Option<Pending>,
    /// The warnings that the user has already seen.
    pub(super) told: BTreeSet<String>,
    /// True after the process was ended.
    pub(super) is_over: bool,
}

impl Session {
    fn new(process: LineProcess, pending: Option<Pending>) -> Self {
        Self {
            process,
            pending,
            told: BTreeSet::new(),
            is_over: false,
        }
    }

    /// Writes down what a later turn has to know.
    fn save(&self) {
        self.process.save(self.pending.as_ref());
    }
}

impl Handles {
    /// Starts a process and interacts with it before another call can. The error is for the model.
    pub(super) fn spawn<T>(
        &self,
        tool: &str,
        handle: &str,
        start: impl FnOnce() -> Result<LineProcess, String>,
        interact: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, String> {
        let mut live = self.live();
        let key = (tool.to_owned(), handle.to_owned());
        if live.sessions.contains_key(&key) {
            return Err(format!(
                "The handle {handle:?} of `{tool}` is in use. Choose another handle, or end this one with `abort`."
            ));
        }
        if live.sessions.len() >= MAX_LIVE {
            let names: Vec<_> = live
                .sessions
                .keys()
                .map(|(tool, handle)| format!("{handle:?} of `{tool}`"))
                .collect();
            return Err(format!(
                "{MAX_LIVE} handles are live, which is the limit. End one of them first: {}.",
                names.join(", ")
            ));
        }
        let session = Arc::new(Mutex::new(Session::new(start()?, None)));
        // Lock the session before other calls can see it, so that they don't interact with it
        // first.
        let mut taken = session.lock().unwrap_or_else(PoisonError::into_inner);
        live.gone.remove(&key);
        live.sessions.insert(key.clone(), Arc::clone(&session));
        // Other handles must not wait for this interaction.
        drop(live);
        Ok(self.interact(&key, &session, &mut taken, interact))
    }

    /// Interacts with a process that no other call uses. The error is for the model.
    pub(super) fn with<T>(
        &self,
        tool: &str,
        handle: &str,
        interact: impl FnOnce(&mut Session) -> T,
    ) -> Result<T, String> {
        let session = self.find(tool, handle)?;
        let mut taken = match session.try_lock() {
            Ok(taken) => taken,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "Another call with the handle {handle:?} is running. Make calls with the same handle one after another."
                ));
            }
        };
        // This call may have waited for the lock while another one ended the process.
        if taken.is_over {
            return Err(format!(
                "Another call has just ended the handle {handle:?} of `{tool}`."
            ));
        }
        let key = (tool.to_owned(), handle.to_owned());
        Ok(self.interact(&key, &session, &mut taken, interact))
    }

    fn interact<T>(
        &self,
        key: &Key,
        session: &Arc<Mutex<Session>>,
        taken: &mut Session,
        interact: impl FnOnce(&mut Session) -> T,
    ) -> T {
        let result = interact(taken);
        taken.save();
        if taken.is_over {
            self.remove(key, session);
        }
        result
    }

    fn find(&self, tool: &str, handle: &str) -> Result<Arc<Mutex<Session>>, String> {
        let mut live = self.live();
        let key = (tool.to_owned(), handle.to_owned());
        if let Some(session) = live.sessions.get(&key) {
            return Ok(Arc::clone(session));
        }
        if let Some(errors) = live.gone.remove(&key) {
            let errors = if errors.is_empty() {
                errors
            } else {
                format!(" Its last output on stderr:\n{errors}")
            };
            return Err(format!(
                "{handle:?} of `{tool}` has ended since the last turn.{errors}"
            ));
        }
        let of_tool = live.sessions.keys().filter(|(of, _)| of == tool);
        let names: Vec<_> = of_tool.map(|(_, handle)| format!("{handle:?}")).collect();
        Err(match names.as_slice() {
            [] => format!(
                "`{tool}` has no handle {handle:?} and no other live handle. A process that is not kept ends with its turn. Start one with `spawn`."
            ),
            names => format!(
                "`{tool}` has no handle {handle:?}. Live handles: {}.",
                names.join(", ")
            ),
        })
    }

    /// Takes over what earlier turns left, once.
    pub(super) fn adopt(&self, directory: &Path) {
        let mut live = self.live();
        if std::mem::replace(&mut live.has_adopted, true) {
            return;
        }
        for (key, found) in LineProcess::find_all(directory) {
            match found {
                Ok((process, pending)) => {
                    let session = Session::new(process, pending);
                    live.sessions.insert(key, Arc::new(Mutex::new(session)));
                }
                Err(errors) => _ = live.gone.insert(key, errors),
            }
        }
    }

    /// Frees a handle, unless it is another one's by now.
    fn remove(&self, key: &Key, session: &Arc<Mutex<Session>>) {
        let mut live = self.live();
        if live
            .sessions
            .get(key)
            .is_some_and(|found| Arc::ptr_eq(found, session))
        {
            live.sessions.remove(key);
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let sessions = std::mem::take(&mut self.live().sessions).into_values();
        // Calls end before their turn does, so this is the last reference to each session.
        let sessions = sessions
            .filter_map(Arc::into_inner)
            .filter_map(|session| session.into_inner().ok());
        LineProcess::end_with_turn(sessions.map(|session| session.process));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    fn spawn(handles: &Handles) -> Result<(), String> {
        let start = || LineProcess::start(Command::new("cat")).map_err(|error| error.to_string());
        handles.spawn("t", "h", start, |_| ())
    }

    #[test]
    fn late_call_leaves_the_next_process_alone() {
        let handles = Handles::default();
        spawn(&handles).unwrap();
        let first = handles.find("t", "h").unwrap();
        handles
            .with("t", "h", |session| session.is_over = true)
            .unwrap();
        assert!(handles.find("t", "h").is_err());
        spawn(&handles).unwrap();
        handles.remove(&("t".to_owned(), "h".to_owned()), &first);
        let second = handles.find("t", "h").unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
    }
}
