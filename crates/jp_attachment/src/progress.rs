use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How far resolving is: handlers count, whoever shows it reads.
#[derive(Debug, Default)]
pub struct Progress {
    items: AtomicUsize,
    items_done: AtomicUsize,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
}

/// What a [`Progress`] counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Files and other resources that are done.
    pub items_done: usize,
    /// Those that are known of.
    pub items: usize,
    /// Bytes that were read.
    pub bytes_done: u64,
    /// Bytes that are known of; less than were read where a length is not known beforehand.
    pub bytes: u64,
}

impl Progress {
    /// Returns what was counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            items_done: self.items_done.load(Relaxed),
            items: self.items.load(Relaxed),
            bytes_done: self.bytes_done.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }

    /// Adds what is about to be read.
    pub(crate) fn expect(&self, items: usize, bytes: u64) {
        self.items.fetch_add(items, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that were read.
    pub(crate) fn read(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Counts a resource of this length that is done.
    pub(crate) fn finish_read(&self, bytes: u64) {
        self.read(bytes);
        self.finish();
    }

    /// Counts a resource that is done.
    pub(crate) fn finish(&self) {
        self.items_done.fetch_add(1, Relaxed);
    }
}
