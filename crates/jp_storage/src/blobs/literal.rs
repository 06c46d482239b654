//! Deflate blocks of literals in the fixed Huffman code (RFC 1951 §3.2.6).
//!
//! They don't compress. They are for texts that libdeflate would store uncompressed.

/// Appends `content` to a deflate stream that is at a byte boundary, as its last block.
pub(super) fn write_last(content: &[u8], stream: &mut Vec<u8>) {
    let mut writer = BitWriter::new(stream);
    writer.literals(content, LAST);
    writer.align();
}

/// Appends `content` to a deflate stream that is at a byte boundary, and leaves it at one.
///
/// An empty stored block aligns it (RFC 1951 §3.2.4), as in zlib's flush.
pub(super) fn write_first(content: &[u8], stream: &mut Vec<u8>) {
    let mut writer = BitWriter::new(stream);
    writer.literals(content, NOT_LAST);
    writer.put(NOT_LAST | STORED << 1, 3);
    writer.align();
    stream.extend_from_slice(&[0, 0, 0xff, 0xff]);
}

const NOT_LAST: u64 = 0;
const LAST: u64 = 1;
const STORED: u64 = 0;
const FIXED: u64 = 1;
const END_OF_BLOCK_BITS: u32 = 7;

/// Fills bytes from their low bits up (RFC 1951 §3.1.1).
struct BitWriter<'a> {
    stream: &'a mut Vec<u8>,
    bits: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    fn new(stream: &'a mut Vec<u8>) -> Self {
        Self {
            stream,
            bits: 0,
            count: 0,
        }
    }

    /// Writes a block of literals, after an empty one.
    ///
    /// A block's header moves the codes by three bits, which turns the codes of `0`, `2`, `5` and `7` into
    /// the digits themselves. A text of zeros would stay readable. The empty block moves them by ten more
    /// bits, where no byte is its own code.
    fn literals(&mut self, content: &[u8], last: u64) {
        self.begin(NOT_LAST);
        self.end();
        self.begin(last);
        for &byte in content {
            self.literal(byte);
        }
        self.end();
    }

    fn begin(&mut self, last: u64) {
        self.put(last | FIXED << 1, 3);
    }

    fn end(&mut self) {
        self.put(0, END_OF_BLOCK_BITS);
    }

    /// Writes a literal: 8 bits up to 143, 9 bits from there. Codes go highest bit first.
    fn literal(&mut self, byte: u8) {
        match byte {
            0..=143 => self.put(u64::from((0x30 + byte).reverse_bits()), 8),
            144.. => self.put(
                u64::from((0x190 + u16::from(byte - 144)).reverse_bits() >> 7),
                9,
            ),
        }
    }

    fn put(&mut self, bits: u64, count: u32) {
        self.bits |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.stream.push((self.bits & 0xff) as u8);
            self.bits >>= 8;
            self.count -= 8;
        }
    }

    fn align(&mut self) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use libdeflater::Decompressor;

    use super::*;

    fn inflate(stream: &[u8], size: usize) -> Vec<u8> {
        let mut content = vec![0; size];
        let length = Decompressor::new()
            .deflate_decompress(stream, &mut content)
            .unwrap();
        assert_eq!(length, size);
        content
    }

    #[test]
    fn every_byte_has_its_code() {
        let content: Vec<u8> = (0..=255).collect();
        let mut stream = Vec::new();
        write_last(&content, &mut stream);
        assert_eq!(inflate(&stream, 256), content);
    }

    #[test]
    fn first_blocks_end_on_a_byte_boundary() {
        for size in 0..40 {
            let content = vec![b'\xe9'; size];
            let mut stream = Vec::new();
            write_first(&content, &mut stream);
            write_last(b"rest", &mut stream);
            assert_eq!(inflate(&stream, size + 4), [&content[..], b"rest"].concat());
        }
    }
}
