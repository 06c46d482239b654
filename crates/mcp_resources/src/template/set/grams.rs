//! Short pieces of text: a URI that lacks one of a template's has not its literals.

use std::num::NonZero;

use crate::template::matcher::steps::count;

/// The longest piece in bytes, and how many numbers pieces have.
const LENGTH: usize = 4;
const NUMBERS: usize = 1 << 14;

/// The most pieces that are kept of a literal; what it has more is left to matching.
const PIECES: usize = 16;

/// Pieces of text by their numbers. Two pieces may have one number, so some may seem to be there that are not.
#[derive(Debug, Clone)]
pub(super) struct Grams {
    numbers: Box<[u64]>,
}

impl Grams {
    /// Finds all pieces of a text, in one go however many literals they are compared with.
    pub(super) fn of(text: &str) -> Self {
        count(text.len());
        (2..=LENGTH).flat_map(|length| text.as_bytes().windows(length).map(number)).collect()
    }

    pub(super) fn have(&self, pieces: &[usize]) -> bool {
        pieces.iter().all(|number| self.numbers[number / 64] >> (number % 64) & 1 == 1)
    }

    /// The numbers that both have.
    pub(super) fn shared_with<'g>(&'g self, other: &'g Self) -> impl Iterator<Item = usize> + use<'g> {
        let shared = self.numbers.iter().zip(&other.numbers).map(|(one, two)| NonZero::new(one & two));
        shared.enumerate().filter_map(|(index, bits)| Some((index, bits?))).flat_map(|(index, bits)| {
            let without_lowest = |bits: &NonZero<u64>| NonZero::new(bits.get() & (bits.get() - 1));
            let bits = std::iter::successors(Some(bits), without_lowest);
            bits.map(move |bits| index * 64 + bits.trailing_zeros() as usize)
        })
    }
}

impl FromIterator<usize> for Grams {
    fn from_iter<I: IntoIterator<Item = usize>>(pieces: I) -> Self {
        let mut numbers = vec![0; NUMBERS / 64].into_boxed_slice();
        pieces.into_iter().for_each(|number| numbers[number / 64] |= 1 << (number % 64));
        Self { numbers }
    }
}

/// The numbers of a literal's pieces, from its end, where those differ that start alike.
pub(super) fn pieces(literal: &str) -> impl Iterator<Item = usize> {
    let length = literal.len().min(LENGTH);
    // A single byte says little.
    let windows = if length < 2 { [].windows(LENGTH) } else { literal.as_bytes().windows(length) };
    windows.rev().take(PIECES).map(number)
}

/// The upper half of a product in which each bit of a piece counts.
fn number(piece: &[u8]) -> usize {
    let value = piece.iter().fold(1_u32, |value, byte| value << 7 | u32::from(*byte));
    (value.wrapping_mul(0x9E37_79B1) >> 18) as usize
}
