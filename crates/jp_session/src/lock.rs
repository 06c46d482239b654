//! Waiting for one's turn to write.

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

/// Takes the lock on a conversation. Waits with a message, or fails with `--no-wait`. Fails if it is archived.
pub fn acquire(session: &Session, found: &Found) -> Result<Lock, SessionError> {
    found.refuse_archived()?;
    let held = match found.store.try_lock(found.located.id)? {
        TryLock::Acquired(lock) => return Ok(lock),
        TryLock::Held(held) => held,
    };
    if session.options.no_wait {
        return Err(in_use(found.located.id, &held));
    }
    session.person.tell(Notice::WaitingForLock {
        conversation: found.located.id.to_string(),
        process: held.holder(),
    });
    loop {
        session.interrupt().check()?;
        std::thread::sleep(LOOK_AGAIN);
        if let TryLock::Acquired(lock) = found.store.try_lock(found.located.id)? {
            return Ok(lock);
        }
    }
}

/// How often it is looked whether a lock is free: waiting for it could not be interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Says that another process has a conversation.
pub fn in_use(id: ConversationId, held: &Held) -> SessionError {
    SessionError::new(format!("conversation {id} is in use by {}", holder(held)))
        .with_hint("wait until it ends, or use another conversation.")
}

fn holder(held: &Held) -> String {
    held.holder().map_or_else(
        || "another jp".to_owned(),
        |process| format!("another jp (process {process})"),
    )
}
