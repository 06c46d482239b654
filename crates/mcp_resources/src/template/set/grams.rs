//! Short pieces of text: a URI that lacks one of a template's has not its literals.

use std::num::NonZero;

use crate::template::matcher::steps::count;

/// The bytes of a piece: the long ones say more, the short ones are for literals that have no long one.
const SHORT: usize = 2;
const LONG: usize = 4;

/// Pieces have numbers of so many bits.
const BITS: u32 = 22;

/// The bits of a number that its group has.
const GROUP_BITS: u32 = 14;

/// How many times as many places a table has as a text has bytes: most of it stays empty.
const ROOM: usize = 32;

/// The number of a piece. Two pieces may have one, so some may seem to be in a text that are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Piece(u32);

/// The pieces of a text.
#[derive(Debug)]
pub(super) struct Grams {
    groups: Groups,
    /// For a longer text, which has pieces of most groups: the pieces, and how many bits of their numbers are left out.
    table: Option<(u32, Box<[u64]>)>,
}

/// Groups of pieces: there are so few that all can be compared at once.
#[derive(Debug, Clone)]
pub(super) struct Groups(Box<[u64]>);

impl Grams {
    /// Finds all pieces of a text, in one go however many literals they are compared with.
    pub(super) fn of(text: &str) -> Self {
        count(text.len());
        let pieces = [SHORT, LONG]
            .into_iter()
            .flat_map(|length| text.as_bytes().windows(length).map(Piece::of));
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
    /// The pieces of a literal; none of a single byte, which says little.
    pub(super) fn all_of(literal: &str) -> impl Iterator<Item = Self> {
        let length = if literal.len() < LONG { SHORT } else { LONG };
        literal.as_bytes().windows(length).map(Self::of)
    }

    /// The upper part of a product in which each bit of a piece counts.
    fn of(bytes: &[u8]) -> Self {
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
