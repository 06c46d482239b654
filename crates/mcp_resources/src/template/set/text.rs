//! The URI that a set looks up.

use std::cell::OnceCell;
use std::ops::Range;

use super::grams::Grams;
use crate::template::encoding::is_reserved;
use crate::template::matcher::Place;
use crate::template::matcher::steps::count;

/// A URI with what is known of it.
pub(super) struct Text<'u> {
    uri: &'u str,
    /// The places of its reserved characters.
    reserved: Vec<usize>,
    /// Computed on first use: most URIs are found without.
    grams: OnceCell<Grams>,
}

impl<'u> Text<'u> {
    pub(super) fn new(uri: &'u str) -> Self {
        count(uri.len());
        let reserved = uri
            .bytes()
            .enumerate()
            .filter(|(_, byte)| is_reserved(*byte));
        Self {
            uri,
            reserved: reserved.map(|(at, _)| at).collect(),
            grams: OnceCell::new(),
        }
    }

    pub(super) fn uri(&self) -> &'u str {
        self.uri
    }

    pub(super) fn grams(&self) -> &Grams {
        self.grams.get_or_init(|| Grams::new(self.uri))
    }

    /// Returns the part of `rest` that begins, or ends, where a literal at this place stands.
    pub(super) fn rest_at(&self, place: Place, rest: Range<usize>) -> Option<Range<usize>> {
        match place {
            Place::Start | Place::End => Some(rest),
            Place::FirstReserved => {
                let first = *self.reserved.get(self.reserved_before(rest.start))?;
                (first < rest.end).then_some(first..rest.end)
            }
            Place::LastReserved => {
                let last = self.reserved[..self.reserved_before(rest.end)].last()?;
                (*last >= rest.start).then_some(rest.start..last + 1)
            }
        }
    }

    /// Counts the reserved characters before a place.
    fn reserved_before(&self, at: usize) -> usize {
        self.reserved.partition_point(|reserved| *reserved < at)
    }
}
