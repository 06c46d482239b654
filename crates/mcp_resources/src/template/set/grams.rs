//! Short pieces of text. A URI that lacks a piece of a template's text does not match it.

use std::num::NonZero;

use crate::template::matcher::steps::count;

/// The bytes of a piece. Long ones are rarer, and so say more; short ones are for short literals.
const SHORT: usize = 2;
const LONG: usize = 4;

/// The bits in the number of a piece. A table with a bit for each number is 512 KiB, the largest one for a
/// URI.
const BITS: u32 = 22;

/// The bits of the number that are its group. A table of groups is 2 KiB, small enough to compare with all
/// groups of the templates at once.
const GROUP_BITS: u32 = 14;

/// The bits of a table for each byte of a text. With 32, of which each byte sets two, about one in sixteen
/// pieces that the text lacks seems to be in it.
const ROOM: usize = 32;

/// The number of a piece. Different pieces may have the same one, so a text may seem to have a piece that
/// it lacks, never the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Piece(u32);

/// The pieces of a text.
#[derive(Debug)]
pub(super) struct Grams {
    groups: Groups,
    /// For a long text, which has pieces of most groups: a table of its pieces, and how many low bits of
    /// their numbers it ignores.
    table: Option<(u32, Box<[u64]>)>,
}

/// A set of groups of pieces.
#[derive(Debug, Clone)]
pub(super) struct Groups(Box<[u64]>);

impl Grams {
    /// Finds all pieces of a text, in one pass however many literals they are compared with.
    pub(super) fn new(text: &str) -> Self {
        count(text.len());
        let pieces = [SHORT, LONG]
            .into_iter()
            .flat_map(|length| text.as_bytes().windows(length).map(Piece::new));
        let places = (text.len() * ROOM).next_power_of_two().min(1 << BITS);
        if places <= 1 << GROUP_BITS {
            return Self {
                groups: pieces.map(Piece::group).collect(),
                table: None,
            };
        }
        let left_out = BITS - places.trailing_zeros();
        let (mut groups, mut table) = (Groups::new(), vec![0; places / 64].into_boxed_slice());
        for piece in pieces {
            groups.insert(piece.group());
            set_bit(&mut table, piece.0 >> left_out);
        }
        Self {
            groups,
            table: Some((left_out, table)),
        }
    }

    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    pub(super) fn have(&self, pieces: &[Piece]) -> bool {
        pieces.iter().all(|piece| match &self.table {
            Some((left_out, table)) => has_bit(table, piece.0 >> left_out),
            None => has_bit(&self.groups.0, piece.group()),
        })
    }
}

impl Groups {
    fn new() -> Self {
        Self(vec![0; (1 << GROUP_BITS) / 64].into_boxed_slice())
    }

    fn insert(&mut self, group: u32) {
        set_bit(&mut self.0, group);
    }

    /// Those that both have.
    pub(super) fn shared_with<'g>(
        &'g self,
        other: &'g Self,
    ) -> impl Iterator<Item = u32> + use<'g> {
        let shared = (0..).zip(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(one, two)| NonZero::new(one & two)),
        );
        shared
            .filter_map(|(index, bits)| Some((index, bits?)))
            .flat_map(|(index, bits)| {
                let without_lowest =
                    |bits: &NonZero<u64>| NonZero::new(bits.get() & (bits.get() - 1));
                let bits = std::iter::successors(Some(bits), without_lowest);
                bits.map(move |bits| index * 64 + bits.trailing_zeros())
            })
    }
}

impl FromIterator<u32> for Groups {
    fn from_iter<I: IntoIterator<Item = u32>>(groups: I) -> Self {
        let mut all = Self::new();
        groups.into_iter().for_each(|group| all.insert(group));
        all
    }
}

impl Piece {
    /// Returns the pieces of a literal. One of a single byte has none.
    pub(super) fn from_literal(literal: &str) -> impl Iterator<Item = Self> {
        let length = if literal.len() < LONG { SHORT } else { LONG };
        literal.as_bytes().windows(length).map(Self::new)
    }

    /// Hashes a piece: the upper bits of a product in which each bit of the piece counts (Fibonacci
    /// hashing).
    fn new(bytes: &[u8]) -> Self {
        let value = bytes
            .iter()
            .fold(1_u32, |value, byte| value << 7 | u32::from(*byte));
        Self(value.wrapping_mul(0x9E37_79B1) >> (u32::BITS - BITS))
    }

    pub(super) fn group(self) -> u32 {
        self.0 >> (BITS - GROUP_BITS)
    }
}

fn set_bit(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] |= 1 << (index % 64);
}

fn has_bit(bits: &[u64], index: u32) -> bool {
    bits[index as usize / 64] >> (index % 64) & 1 == 1
}
