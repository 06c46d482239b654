//! Shows progress while the user waits.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use crate::{
    person::{Person, Shown},
    session::Session,
};

/// Work that takes less time than this shows no progress.
const DELAY: Duration = Duration::from_millis(500);
/// Time between two updates: often enough to look alive, and cheap.
const INTERVAL: Duration = Duration::from_millis(100);

/// Does some work. If it takes longer than [`DELAY`], shows `line` on the terminal until it ends.
///
/// `line` is called again for each update. If no thread can be started, nothing is shown.
pub(crate) fn with_progress<T>(
    session: &Session,
    line: impl FnMut() -> String + Send,
    work: impl FnOnce() -> T,
) -> T {
    if !session.options.shows_progress {
        return work();
    }
    let person = &*session.person;
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let draw = move || show_until_done(person, line, &is_done);
        // Progress is a convenience: without a thread, the work is done in silence.
        _ = thread::Builder::new().spawn_scoped(scope, draw);
        let result = work();
        // Without this, the thread would wait for the end of the scope, and the scope for the thread.
        drop(done);
        result
    })
}

/// Shows the line until the other end of `is_done` is dropped, and then clears it.
fn show_until_done(
    person: &dyn Person,
    mut line: impl FnMut() -> String,
    is_done: &mpsc::Receiver<()>,
) {
    let mut wait = DELAY;
    while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        _ = person.show(Shown::Progress(&line()));
        wait = INTERVAL;
    }
    // The line was drawn at least once.
    if wait == INTERVAL {
        _ = person.show(Shown::Progress(""));
    }
}
