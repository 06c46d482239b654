//! JSON strings written piece by piece.

use std::io::{self, Write};

/// Writes one JSON string (RFC 8259 §7), whose text `fill` writes as UTF-8 in any pieces.
pub(crate) fn write_string<E: From<io::Error>>(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    out.write_all(b"\"")?;
    fill(&mut Escape(out))?;
    out.write_all(b"\"")?;
    Ok(())
}

/// Escapes what may not stand in a JSON string; bytes above ASCII pass, so pieces may split characters.
struct Escape<'w>(&'w mut dyn Write);

impl Write for Escape<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut escaped = [0; CHUNK * LONGEST + WORD];
        for chunk in text.chunks(CHUNK) {
            let length = escape(chunk, &mut escaped);
            self.0.write_all(&escaped[..length])?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Small: the buffer for it is cleared for every piece, and most pieces are.
const CHUNK: usize = 256;
const LONGEST: usize = "\\u0000".len();
const WORD: usize = 8;

/// Writes `text` with its escapes to the start of `out`, and returns how long it is.
///
/// Copies eight bytes at a time and goes on behind the first of them that needs an escape: source text
/// has one in every line, and a 100 MB request is written while the person waits.
fn escape(text: &[u8], out: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while let Some(word) = text[from..].first_chunk::<WORD>() {
        out[to..to + WORD].copy_from_slice(word);
        let special = special_bytes(u64::from_le_bytes(*word));
        let plain = special.trailing_zeros() as usize / 8;
        (from, to) = (from + plain, to + plain);
        if special != 0 {
            to += escape_byte(text[from], &mut out[to..]);
            from += 1;
        }
    }
    for byte in &text[from..] {
        to += escape_byte(*byte, &mut out[to..]);
    }
    to
}

fn escape_byte(byte: u8, out: &mut [u8]) -> usize {
    let letter = match byte {
        b'\n' => b'n',
        b'"' | b'\\' => byte,
        b'\t' => b't',
        b'\r' => b'r',
        0..0x20 => return escape_control(byte, out),
        _ => {
            out[0] = byte;
            return 1;
        }
    };
    out[..2].copy_from_slice(&[b'\\', letter]);
    2
}

fn escape_control(byte: u8, out: &mut [u8]) -> usize {
    out[..LONGEST].copy_from_slice(format!("\\u{byte:04x}").as_bytes());
    LONGEST
}

/// Sets the high bit of the lowest byte that needs an escape (64 trailing zeros where none does); bytes
/// above it may be set wrongly.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_escaped_like_one_by_one(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut out = [0; 40 * LONGEST + WORD];
            let length = escape(&bytes, &mut out);
            let mut expected = Vec::new();
            for byte in &bytes {
                let mut one = [0; LONGEST];
                let length = escape_byte(*byte, &mut one);
                expected.extend_from_slice(&one[..length]);
            }
            prop_assert_eq!(&out[..length], expected);
        }

        #[test]
        fn string_reads_back_however_it_is_cut(text in "(?s).{0,40}", cut in 0usize..40) {
            let cut = cut.min(text.len());
            let mut json = Vec::new();
            write_string::<io::Error>(&mut json, |out| {
                out.write_all(&text.as_bytes()[..cut])?;
                out.write_all(&text.as_bytes()[cut..])
            }).unwrap();
            prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}
