//! JSON strings written piece by piece.

use std::io::{self, Write};

/// Writes one JSON string (RFC 8259 §7), whose text `fill` writes as UTF-8 in any pieces.
pub(crate) fn write_string<E: From<io::Error>>(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    out.write_all(b"\"")?;
    fill(&mut Escape { out, escaped: Vec::new() })?;
    out.write_all(b"\"")?;
    Ok(())
}

/// Escapes what may not stand in a JSON string; bytes above ASCII pass, so pieces may split characters.
struct Escape<'w> {
    out: &'w mut dyn Write,
    /// Holds one chunk: source text has something to escape in every line.
    escaped: Vec<u8>,
}

impl Write for Escape<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        const CHUNK: usize = 32 << 10;
        for chunk in text.chunks(CHUNK) {
            self.escaped.clear();
            escape(chunk, &mut self.escaped);
            self.out.write_all(&self.escaped)?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn escape(text: &[u8], escaped: &mut Vec<u8>) {
    escaped.reserve(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(index) = find_special(rest) {
        escaped.extend_from_slice(&rest[..index]);
        match rest[index] {
            b'"' => escaped.extend_from_slice(b"\\\""),
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            b'\t' => escaped.extend_from_slice(b"\\t"),
            byte => escaped.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[index + 1..];
    }
    escaped.extend_from_slice(rest);
}

/// Finds the first byte that needs an escape, eight at a time: a 100 MB request is escaped while the
/// person waits.
fn find_special(text: &[u8]) -> Option<usize> {
    let (words, tail) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return Some(index * 8 + special.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    tail.iter().position(is_special).map(|index| words.len() * 8 + index)
}

/// Sets the high bit of the lowest byte that needs an escape; bytes above it may be set wrongly.
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
        fn special_bytes_are_found_where_they_are(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let expected = bytes.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\'));
            prop_assert_eq!(find_special(&bytes), expected);
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
