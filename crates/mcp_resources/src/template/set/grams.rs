//! Short pieces of text: a URI that lacks one of a template's has not its literals.

use crate::template::matcher::steps::count;

/// The longest piece in bytes, and how many numbers pieces have.
const LENGTH: usize = 4;
const NUMBERS: usize = 1 << 16;

/// The most pieces that are kept of a literal; what it has more is left to matching.
const PIECES: usize = 16;

/// The pieces of a text by their numbers. Two pieces may have one number, so it may seem to have what it has not.
pub(super) struct Grams {
    numbers: Vec<u64>,
}

impl Grams {
    /// Finds all pieces of a text, in one go however many literals they are compared with.
    pub(super) fn new(text: &str) -> Self {
        let mut numbers = vec![0; NUMBERS / 64];
        count(text.len());
        for length in 2..=LENGTH {
            for number in text.as_bytes().windows(length).map(number) {
                numbers[number / 64] |= 1 << (number % 64);
            }
        }
        Self { numbers }
    }

    pub(super) fn have(&self, pieces: &[usize]) -> bool {
        pieces.iter().all(|number| self.numbers[number / 64] >> (number % 64) & 1 == 1)
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
    (value.wrapping_mul(0x9E37_79B1) >> 16) as usize
}
