//! Shows the progress of resolving attachments.

use crate::{progress::with_progress, session::Session, size};
use jp_attachment::{AttachError, Counts, Declared, Progress, Resolved};

/// Resolves declarations. Shows the progress if that takes long, and stops at Ctrl-C.
pub(crate) fn resolve_with_progress(
    session: &Session,
    declared: &[Declared],
    resolving: &jp_attachment::Context<'_>,
) -> Result<Resolved, AttachError> {
    let progress = Progress::default();
    let context = jp_attachment::Context {
        progress: Some(&progress),
        cancelled: Some(session.interrupt().flag()),
        bear_database: session.surroundings.bear_database.as_deref(),
        displays: Some(&session.surroundings.displays),
        ..*resolving
    };
    let line = || progress_line(progress.counts());
    with_progress(session, line, || jp_attachment::resolve(declared, &context))
}

fn progress_line(counts: Counts) -> String {
    /// Width of the bar in columns.
    const WIDTH: u64 = 20;
    let Counts {
        items_done,
        items,
        bytes_done,
        bytes,
    } = counts;
    // The bar shows whichever is further behind. Many small files finish with few bytes, and one large file counts as
    // one item until it is read.
    let columns =
        part_of(WIDTH, bytes_done, bytes).min(part_of(WIDTH, items_done as u64, items as u64))
            as usize;
    let bar = format!(
        "{}{}",
        "█".repeat(columns),
        "░".repeat(WIDTH as usize - columns)
    );
    let resources = format!(
        "{} of {}",
        size::thousands(items_done as u64),
        size::count(items.max(items_done), "resource")
    );
    // The total is an estimate from file sizes, which pages and commands don't have in advance.
    let sizes = match (bytes_done, bytes) {
        (0, 0) => String::new(),
        (done, all) if done > all => format!(", {}", size::bytes(done)),
        (done, all) => format!(", {} of {}", size::bytes(done), size::bytes(all)),
    };
    format!("Attaching {bar} {resources}{sizes}")
}

/// Returns the share of `width` that is done; all of it if there is nothing to do.
fn part_of(width: u64, done: u64, all: u64) -> u64 {
    (done.min(all) * width).checked_div(all).unwrap_or(width)
}
