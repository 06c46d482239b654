//! Waits for the lock on a conversation.

use std::time::Duration;

use crate::{
    error::SessionError,
    notice::Notice,
    session::{Found, Session},
};
use jp_storage::{
    ConversationId,
    lock::{Held, Lock, TryLock},
};

/// Takes the lock on a conversation. Waits with a message, or fails with `--no-wait`.
///
/// # Errors
///
/// If the conversation is archived or can't be locked, or if the user interrupts.
pub fn acquire(session: &Session, found: &Found) -> Result<Lock, SessionError> {
    found.refuse_archived()?;
    let held = match found.store.try_lock(found.located.id)? {
        TryLock::Acquired(lock) => return Ok(lock),
        TryLock::Held(held) => held,
    };
    if session.options.no_wait {
        return Err(in_use_error(found.located.id, &held));
    }
    session.person.tell(Notice::WaitingForLock {
        conversation: found.located.id.to_string(),
        process: held.holder(),
    });
    loop {
        session.interrupt().check()?;
        // Ctrl-C is noticed between two attempts.
        std::thread::sleep(RETRY_INTERVAL);
        if let TryLock::Acquired(lock) = found.store.try_lock(found.located.id)? {
            return Ok(lock);
        }
    }
}

/// Time between two attempts at a lock. A blocking wait could not be interrupted.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Makes the error for a conversation that another process has locked.
pub fn in_use_error(id: ConversationId, held: &Held) -> SessionError {
    let process = held.holder();
    let process = process.map_or_else(String::new, |process| format!(" (process {process})"));
    SessionError::new(format!(
        "conversation {id} is in use by another jp{process}"
    ))
    .with_hint("wait until it ends, or use another conversation.")
}
