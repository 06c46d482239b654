//! Resolving while a person watches.

use crate::{progress::with_progress, session::Session, size};
use jp_attachment::{AttachError, Counts, Declared, Progress, Resolved};

/// Resolves; what takes more than half a second is shown while it goes on, and Ctrl-C ends it.
pub(crate) fn watched(
    session: &Session,
    declared: &[Declared],
    resolving: &jp_attachment::Context<'_>,
) -> Result<Resolved, AttachError> {
    let progress = Progress::default();
    let cancelled = Some(session.interrupt().flag());
    let bear_database = session.surroundings.bear_database.as_deref();
    let displays = Some(&session.surroundings.displays);
    let watched = jp_attachment::Context {
        progress: Some(&progress),
        cancelled,
        bear_database,
        displays,
        ..*resolving
    };
    let line = || progress_line(progress.counts());
    with_progress(session, line, || jp_attachment::resolve(declared, &watched))
}

fn progress_line(counts: Counts) -> String {
    const WIDTH: u64 = 20;
    let Counts {
        items_done,
        items,
        bytes_done,
        bytes,
    } = counts;
    let part = |done: u64, all: u64| (done.min(all) * WIDTH).checked_div(all).unwrap_or(WIDTH);
    let done = part(bytes_done, bytes).min(part(items_done as u64, items as u64)) as usize;
    let bar = format!("{}{}", "█".repeat(done), "░".repeat(WIDTH as usize - done));
    let of_items = format!(
        "{} of {}",
        size::thousands(items_done as u64),
        size::count(items.max(items_done), "resource")
    );
    let of_bytes = match (bytes_done, bytes) {
        (0, 0) => String::new(),
        (done, all) if done > all => format!(", {}", size::bytes(done)),
        (done, all) => format!(", {} of {}", size::bytes(done), size::bytes(all)),
    };
    format!("Attaching {bar} {of_items}{of_bytes}")
}
