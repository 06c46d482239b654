use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counters of the progress. Handlers write them, and the terminal shows them.
#[derive(Debug, Default)]
pub struct Progress {
    items: AtomicUsize,
    items_done: AtomicUsize,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
}

/// The current counts of a [`Progress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The number of finished files and other resources.
    pub items_done: usize,
    /// The number of all known resources.
    pub items: usize,
    /// The number of bytes that were read.
    pub bytes_done: u64,
    /// The number of expected bytes. It can be less than `bytes_done`, because some lengths are not
    /// known beforehand.
    pub bytes: u64,
}

impl Progress {
    /// Returns the current counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            items_done: self.items_done.load(Relaxed),
            items: self.items.load(Relaxed),
            bytes_done: self.bytes_done.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }

    /// Adds resources and bytes that will be read.
    pub(crate) fn expect(&self, items: usize, bytes: u64) {
        self.items.fetch_add(items, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that were read.
    pub(crate) fn read(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Counts a finished resource and its bytes.
    pub(crate) fn finish_read(&self, bytes: u64) {
        self.read(bytes);
        self.finish();
    }

    /// Counts a finished resource.
    pub(crate) fn finish(&self) {
        self.items_done.fetch_add(1, Relaxed);
    }
}
