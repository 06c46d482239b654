use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Applies `work` to each item on `workers` threads, each of which starts with `state()`.
///
/// The results are in the items' order, and so is the error: it is the one of the first item that fails.
/// Items after one that failed may be left out.
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
    let mut done = if workers.get().min(items.len()) < 2 {
        run()
    } else {
        on_threads(workers, run)
    };
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn on_threads<R: Send>(workers: NonZeroUsize, run: impl Fn() -> Vec<R> + Sync) -> Vec<R> {
    thread::scope(|scope| {
        // As many as the system has threads for; one is here.
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
