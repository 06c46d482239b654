//! Runs work for several items at once.

use std::{panic, thread};

/// Does some work for each item, each on its own thread, and returns the results in the order of the items.
///
/// The caller bounds the number of items. A panic of one thread continues in the caller's.
pub(crate) fn run_in_parallel<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        // All threads start before the first is joined.
        let threads: Vec<_> = items
            .iter()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|payload| panic::resume_unwind(payload))
            })
            .collect()
    })
}
