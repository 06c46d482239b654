use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Applies `work` to each item on `workers` threads, each with a `state()` of its own.
///
/// The results are in the order of the items. The error is that of the first item that fails, as if
/// they ran one after the other; items after it may be skipped.
pub(crate) fn map<T: Sync, S, R: Send, E: Send>(
    items: &[T],
    workers: NonZeroUsize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let run = || {
        let (mut state, mut done) = (state(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            // An item before the failed one may fail as well, and its error comes first.
            if index >= items.len() || index > failed.load(Ordering::Relaxed) {
                return done;
            }
            let result = work(&mut state, &items[index]);
            if result.is_err() {
                failed.fetch_min(index, Ordering::Relaxed);
            }
            done.push((index, result));
        }
    };
    // One item needs no threads.
    let mut done = if workers.get().min(items.len()) < 2 {
        run()
    } else {
        on_threads(workers, run)
    };
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs `run` on several threads and joins their results.
fn on_threads<R: Send>(workers: NonZeroUsize, run: impl Fn() -> Vec<R> + Sync) -> Vec<R> {
    thread::scope(|scope| {
        // This thread is one of the workers. If the system has no more threads, fewer have to do.
        let others =
            (1..workers.get()).map_while(|_| thread::Builder::new().spawn_scoped(scope, &run).ok());
        let others: Vec<_> = others.collect();
        let mut done = run();
        for other in others {
            match other.join() {
                Ok(results) => done.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

    #[test]
    fn results_are_in_order() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled = map(&items, WORKERS, || (), |(), item| Ok::<_, ()>(item * 2)).unwrap();
        assert_eq!(
            doubled,
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
    }

    #[test]
    fn first_error_in_order_is_returned() {
        let items: Vec<usize> = (0..1000).collect();
        for _ in 0..50 {
            let work =
                |(): &mut (), item: &usize| if item % 100 == 99 { Err(*item) } else { Ok(()) };
            assert_eq!(map(&items, WORKERS, || (), work), Err(99));
        }
    }
}
