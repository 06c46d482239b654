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
        let mut rest = text;
        while let Some(index) = rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')) {
            self.0.write_all(&rest[..index])?;
            self.write_escaped(rest[index])?;
            rest = &rest[index + 1..];
        }
        self.0.write_all(rest)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Escape<'_> {
    fn write_escaped(&mut self, byte: u8) -> io::Result<()> {
        match byte {
            b'"' => self.0.write_all(b"\\\""),
            b'\\' => self.0.write_all(b"\\\\"),
            b'\n' => self.0.write_all(b"\\n"),
            b'\r' => self.0.write_all(b"\\r"),
            b'\t' => self.0.write_all(b"\\t"),
            _ => write!(self.0, "\\u{byte:04x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
