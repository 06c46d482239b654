//! JSON strings written piece by piece.

use std::io::{self, Write};

use crate::later::Text;

/// Writes one JSON string (RFC 8259 §7), whose text `fill` pushes in any pieces.
pub(crate) fn write_string<E: From<io::Error>>(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> Result<(), E>,
) -> Result<(), E> {
    out.write_all(b"\"")?;
    fill(&mut JsonText::inside(out))?;
    out.write_all(b"\"")?;
    Ok(())
}

/// The inside of a JSON string: escapes what may not stand there.
pub(crate) struct JsonText<'w> {
    out: &'w mut dyn Write,
    /// A chunk with quotes around it, kept for its memory.
    escaped: Vec<u8>,
}

/// Small: six times as much is reserved for what is escaped, and it should stay in the cache.
const CHUNK: usize = 8 << 10;

/// Stands in a request for a text that is read when it is sent; JSON itself has no such byte.
pub(crate) const GAP: u8 = 0;

impl<'w> JsonText<'w> {
    /// Goes on in the middle of a string.
    pub(crate) fn inside(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            escaped: Vec::new(),
        }
    }

    /// Writes a text, or leaves room for it.
    pub(crate) fn put(&mut self, text: &Text<'_>) -> io::Result<()> {
        match text {
            Text::Now(text) => self.push(text),
            Text::Later(_) => self.out.write_all(&[GAP]),
        }
    }

    /// Writes the next piece of the text.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, after) = split_chunk(rest);
            self.escaped.clear();
            json_escape_simd::escape_into(chunk, &mut self.escaped);
            self.out
                .write_all(&self.escaped[1..self.escaped.len() - 1])?;
            rest = after;
        }
        Ok(())
    }
}

/// Cuts off as many whole characters as fit in a chunk.
fn split_chunk(text: &str) -> (&str, &str) {
    let longest = text.len().min(CHUNK);
    let mut splits = (0..=longest)
        .rev()
        .filter_map(|end| text.split_at_checked(end));
    splits.next().expect("a text can be split at its start")
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;

    proptest! {
        #[test]
        fn string_reads_back_however_it_is_cut(
            line in "([\\x00-\\x7f]|(?s).){0,600}",
            lines in prop_oneof![Just(1), 2usize..60],
            cut in any::<Index>(),
        ) {
            let text = line.repeat(lines);
            let cuts: Vec<usize> = (0..=text.len()).filter(|end| text.is_char_boundary(*end)).collect();
            let (start, end) = text.split_at(*cut.get(&cuts));
            let mut json = Vec::new();
            write_string::<io::Error>(&mut json, |out| {
                out.push(start)?;
                out.push(end)
            }).unwrap();
            prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}
