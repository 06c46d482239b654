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
        let mut escaped = [0; CHUNK * LONGEST + 1];
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

/// What stands for a byte: the first of the pair, or both; nothing yet for a control character.
#[derive(Clone, Copy)]
struct Escaped {
    pair: [u8; 2],
    length: u8,
}

const ESCAPED: [Escaped; 256] = {
    let mut table = [Escaped { pair: [0; 2], length: 0 }; 256];
    let mut byte = 0x20;
    while byte < 256 {
        table[byte] = Escaped { pair: [byte as u8, 0], length: 1 };
        byte += 1;
    }
    let letters = [(b'\n', b'n'), (b'\t', b't'), (b'\r', b'r'), (b'"', b'"'), (b'\\', b'\\')];
    let mut index = 0;
    while index < letters.len() {
        let (byte, letter) = letters[index];
        table[byte as usize] = Escaped { pair: [b'\\', letter], length: 2 };
        index += 1;
    }
    table
};

/// Writes `text` with its escapes to the start of `out`, and returns how long it is.
///
/// Without a branch on what a byte is: source text has something to escape in every line, and a 100 MB
/// request is written while the person waits.
fn escape(text: &[u8], out: &mut [u8]) -> usize {
    let mut to = 0;
    for byte in text {
        let Escaped { pair, length } = ESCAPED[usize::from(*byte)];
        if length == 0 {
            out[to..to + LONGEST].copy_from_slice(format!("\\u{byte:04x}").as_bytes());
            to += LONGEST;
            continue;
        }
        out[to..to + 2].copy_from_slice(&pair);
        to += usize::from(length);
    }
    to
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn string_reads_back_however_it_is_cut(text in "([\\x00-\\x7f]|(?s).){0,600}", cut in 0usize..600) {
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
