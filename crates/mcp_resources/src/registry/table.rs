//! Entries by key in the order of their registration, each with a count.

use std::collections::{BTreeMap, HashMap};
#[cfg(feature = "server")]
use std::ops::Bound;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Table<E> {
    places: HashMap<String, u64>,
    entries: BTreeMap<u64, CountedEntry<E>>,
    /// The place of the next new key. No place is used again for another key, so a place is a cursor that
    /// stays valid while entries come and go.
    next: u64,
    /// Entries that were removed, or not added because the key was known. The caller drops them outside
    /// of its lock.
    gone: Vec<Arc<E>>,
    /// The places of removed keys, for those that come back before `gone` is taken.
    left: HashMap<String, u64>,
}

#[derive(Debug)]
struct CountedEntry<E> {
    entry: Arc<E>,
    registrations: usize,
}

/// A part of a table.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct Page<E> {
    pub(crate) entries: Vec<Arc<E>>,
    /// The place of the last entry, if more follow.
    pub(crate) last: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addition {
    New,
    /// The earlier entry stays.
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    Unknown,
    /// Other registrations of the key remain.
    Counted,
    Gone,
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        let (places, entries, left) = (HashMap::new(), BTreeMap::new(), HashMap::new());
        Self {
            places,
            entries,
            next: 0,
            gone: Vec::new(),
            left,
        }
    }
}

impl<E> Table<E> {
    pub(super) fn add(&mut self, key: String, entry: E) -> Addition {
        if let Some(place) = self.places.get(&key) {
            self.entries
                .entry(*place)
                .and_modify(|counted| counted.registrations += 1);
            self.gone.push(Arc::new(entry));
            return Addition::Known;
        }
        let place = self.left.remove(&key).unwrap_or(self.next);
        self.next = self.next.max(place + 1);
        self.places.insert(key, place);
        self.entries.insert(
            place,
            CountedEntry {
                entry: Arc::new(entry),
                registrations: 1,
            },
        );
        Addition::New
    }

    pub(super) fn remove(&mut self, key: &str) -> Removal {
        let Some(counted) = self
            .places
            .get(key)
            .and_then(|place| self.entries.get_mut(place))
        else {
            return Removal::Unknown;
        };
        counted.registrations -= 1;
        if counted.registrations > 0 {
            return Removal::Counted;
        }
        if let Some((key, place)) = self.places.remove_entry(key) {
            self.gone
                .extend(self.entries.remove(&place).map(|counted| counted.entry));
            self.left.insert(key, place);
        }
        Removal::Gone
    }

    /// Keeps the places of keys that come back in the same order, up to the first new one: entries after
    /// that one must have later places.
    pub(super) fn keep_places<'k>(&mut self, keys: impl Iterator<Item = &'k str>) {
        let mut left = std::mem::take(&mut self.left);
        let mut last = None;
        for key in keys.filter(|key| !self.places.contains_key(*key)) {
            let Some((key, place)) = left
                .remove_entry(key)
                .filter(|(_, place)| Some(*place) > last)
            else {
                break;
            };
            self.left.insert(key, place);
            last = Some(place);
        }
    }

    /// Takes the entries that are gone. Keys that come back later get new places.
    pub(super) fn take_gone(&mut self) -> Vec<Arc<E>> {
        self.left = HashMap::new();
        std::mem::take(&mut self.gone)
    }

    pub(super) fn entry(&self, key: &str) -> Option<Arc<E>> {
        let counted = self
            .places
            .get(key)
            .and_then(|place| self.entries.get(place))?;
        Some(Arc::clone(&counted.entry))
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<E>> {
        self.entries.values().map(|counted| &counted.entry)
    }

    #[cfg(feature = "server")]
    pub(super) fn page(&self, after: Option<u64>, limit: usize) -> Page<E> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.entries.range((start, Bound::Unbounded));
        let (places, entries): (Vec<u64>, Vec<Arc<E>>) = rest
            .by_ref()
            .take(limit)
            .map(|(place, counted)| (*place, Arc::clone(&counted.entry)))
            .unzip();
        let last = rest.next().and(places.last().copied());
        Page { entries, last }
    }
}

impl Addition {
    pub(super) fn is_known(self) -> bool {
        self == Self::Known
    }
}
