//! Waiting for one's turn to write.

use std::time::Duration;

use jp_storage::{
    ConversationId,
    lock::{Held, Lock, TryLock},
};

use crate::{
    error::Failure,
    workspace::{Context, Found},
};

/// Takes the lock on a conversation. Waits with a message, or fails with `--no-wait`. Fails if it is archived.
pub(crate) fn acquire(context: &Context<'_>, found: &Found) -> Result<Lock, Failure> {
    found.refuse_archived()?;
    let held = match found.store.try_lock(found.located.id)? {
        TryLock::Acquired(lock) => return Ok(lock),
        TryLock::Held(held) => held,
    };
    if context.global.no_wait {
        return Err(in_use(found.located.id, &held));
    }
    let holder = holder(&held);
    context.output.status(&format!(
        "Waiting for {holder}, which is using conversation {} …",
        found.located.id
    ));
    loop {
        context.interrupt().check()?;
        std::thread::sleep(LOOK_AGAIN);
        if let TryLock::Acquired(lock) = found.store.try_lock(found.located.id)? {
            return Ok(lock);
        }
    }
}

/// How often it is looked whether a lock is free: waiting for it could not be interrupted.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Says that another process has a conversation.
pub(crate) fn in_use(id: ConversationId, held: &Held) -> Failure {
    Failure::new(format!("conversation {id} is in use by {}", holder(held)))
        .with_hint("wait until it is done, or use another conversation.")
}

fn holder(held: &Held) -> String {
    held.holder().map_or_else(
        || "another jp".to_owned(),
        |process| format!("another jp (process {process})"),
    )
}
