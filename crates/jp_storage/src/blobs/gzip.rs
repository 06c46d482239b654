//! The bytes of a blob's file: one gzip member (RFC 1952) that depends on the content alone.
//!
//! The encoder and its level are part of the storage format. A version of libdeflate that writes other
//! bytes changes the format; a test pins them.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor, Decompressor, crc32};

use super::literal;

/// Compresses `content` and passes the file's bytes to `write`. Reuses the thread's encoder.
pub(super) fn with_compressed<T>(content: &[u8], write: impl FnOnce(&[u8]) -> T) -> T {
    ENCODER.with_borrow_mut(|encoder| {
        let result = write(encoder.encode(content));
        if encoder.file.capacity() > KEPT {
            encoder.file = Vec::new();
        }
        result
    })
}

/// Decompresses a file into `content`, which it must fill exactly. Reuses the thread's decoder.
pub(super) fn decompress(file: &[u8], content: &mut [u8]) -> Result<(), NotGzip> {
    let length = DECODER.with_borrow_mut(|decoder| decoder.gzip_decompress(file, content));
    match length {
        Ok(length) if length == content.len() => Ok(()),
        _ => Err(NotGzip),
    }
}

/// The error of bytes that aren't gzip, don't match its checksum, or have another length.
pub(super) struct NotGzip;

/// Length of the shortest file: header, one empty block, trailer.
pub(super) const SHORTEST: u64 = (HEADER.len() + 2 + TRAILER) as u64;

/// Length of the content modulo 2³², from a file's last four bytes.
pub(super) fn stated_size(last: [u8; 4]) -> u32 {
    u32::from_le_bytes(last)
}

/// Returns true if a file of `length` bytes can hold content of `size` bytes.
///
/// Deflate expands a byte to at most 1032, and no sensible encoder uses more than nine bits for eight.
pub(super) fn is_plausible(length: u64, size: u64) -> bool {
    let longest = size.saturating_add(size / 8).saturating_add(4096);
    (SHORTEST..=longest).contains(&length) && size / 1032 <= length
}

/// The header: no flags, no time, the fastest method, an unknown system (RFC 1952 §2.3).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
/// The length of checksum and size at the end, in bytes.
const TRAILER: usize = 8;
/// The fastest level with a good ratio: 4.25 at 272 MB/s per core.
const LEVEL: i32 = 1;
/// The longest content in bytes that libdeflate stores uncompressed at this level.
const PASSED_THROUGH: usize = 51;
/// The largest buffer in bytes that a thread keeps. It fits nearly all content.
pub(super) const KEPT: usize = 256 << 10;

thread_local! {
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
    static DECODER: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

struct Encoder {
    compressor: Compressor,
    file: Vec<u8>,
}

impl Encoder {
    fn new() -> Self {
        let level = CompressionLvl::new(LEVEL).expect("the level is one of libdeflate's");
        Self {
            compressor: Compressor::new(level),
            file: Vec::new(),
        }
    }

    /// Makes the file so that no text of eight bytes or more is readable in it.
    ///
    /// libdeflate stores a block uncompressed if that is shortest. For more than 51 bytes of ASCII it
    /// never is: the fixed code takes 8 bits a byte and 10 for the block, a stored block 40. In other
    /// text it can be, mostly for a short rest at the end. Then the start of the content is coded as
    /// literals, which moves the bounds of all later blocks. The start grows until no block is stored.
    fn encode(&mut self, content: &[u8]) -> &[u8] {
        let mut literals = if content.len() <= PASSED_THROUGH {
            content.len()
        } else {
            0
        };
        self.write(content, literals);
        while literals < content.len() && is_readable(content, &self.file[HEADER.len()..]) {
            literals = (literals * 2).max(1024).min(content.len());
            self.write(content, literals);
        }
        &self.file
    }

    fn write(&mut self, content: &[u8], literals: usize) {
        let (literals, rest) = content.split_at(literals);
        self.file.clear();
        self.file.extend_from_slice(&HEADER);
        if rest.is_empty() {
            literal::write_last(literals, &mut self.file);
        } else {
            if !literals.is_empty() {
                literal::write_first(literals, &mut self.file);
            }
            self.deflate(rest);
        }
        self.file.extend_from_slice(&crc32(content).to_le_bytes());
        self.file
            .extend_from_slice(&(content.len() as u32).to_le_bytes());
    }

    /// Compresses large content into a buffer of half its length first. Only if it doesn't fit, uses one
    /// that fits any content. The result is the same.
    fn deflate(&mut self, content: &[u8]) {
        let bound = self.compressor.deflate_compress_bound(content.len());
        let likely = bound.min(KEPT.max(content.len() / 2));
        if !self.try_deflate(content, likely) {
            assert!(
                self.try_deflate(content, bound),
                "libdeflate keeps to the bound that it gives"
            );
        }
    }

    /// Appends compressed `content` if it fits into `room` bytes.
    fn try_deflate(&mut self, content: &[u8], room: usize) -> bool {
        let start = self.file.len();
        self.make_room(start + room);
        let length = self
            .compressor
            .deflate_compress(content, &mut self.file[start..]);
        self.file
            .truncate(start + length.as_ref().copied().unwrap_or(0));
        length.is_ok()
    }

    /// Lengthens the file. The system provides a large buffer as zero pages, so only the part that
    /// libdeflate writes takes memory.
    fn make_room(&mut self, length: usize) {
        if length <= self.file.capacity() {
            self.file.resize(length, 0);
        } else {
            let mut file = vec![0; length + TRAILER];
            file.truncate(length);
            file[..self.file.len()].copy_from_slice(&self.file);
            self.file = file;
        }
    }
}

fn is_readable(content: &[u8], stream: &[u8]) -> bool {
    shows_digits(stream) || shows_text(content, stream)
}

/// Returns true if digits are readable in a first block of the fixed code. Its literals are moved by three
/// bits, which turns the codes of these four digits into the digits themselves.
fn shows_digits(stream: &[u8]) -> bool {
    const FIXED: u8 = 0b010;
    stream[0] & 0b110 == FIXED
        && stream
            .windows(8)
            .any(|window| window.iter().all(|byte| b"0257".contains(byte)))
}

/// Returns true if `content` is text and `stream` has a stored block of it.
fn shows_text(content: &[u8], stream: &[u8]) -> bool {
    !content.is_ascii() && std::str::from_utf8(content).is_ok() && has_stored_text(stream)
}

/// Finds stored blocks with text by their length and its complement (RFC 1951 §3.2.4).
///
/// In any stream, one in 65536 positions looks like such a length. Text follows there by chance so rarely
/// that the few extra bytes don't matter.
fn has_stored_text(stream: &[u8]) -> bool {
    stream.windows(4).enumerate().any(|(position, window)| {
        let length = u16::from_le_bytes([window[0], window[1]]);
        let complement = u16::from_le_bytes([window[2], window[3]]);
        length ^ complement == u16::MAX
            && length >= 8
            && stream[position + 4..]
                .get(..usize::from(length))
                .is_some_and(is_part_of_text)
    })
}

/// Returns true if `bytes` is UTF-8, except for characters that are cut off at both ends.
fn is_part_of_text(bytes: &[u8]) -> bool {
    let cut = bytes
        .iter()
        .take(3)
        .take_while(|&&byte| byte & 0xc0 == 0x80)
        .count();
    match std::str::from_utf8(&bytes[cut..]) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        io::Write,
        process::{Command, Stdio},
    };

    use jp_resource::Checksum;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn compress(content: &[u8]) -> Vec<u8> {
        with_compressed(content, <[u8]>::to_vec)
    }

    fn assert_round_trip(content: &[u8]) {
        let file = compress(content);
        let mut read = vec![0; content.len()];
        assert!(decompress(&file, &mut read).is_ok());
        assert!(read == content);
        assert!(is_plausible(file.len() as u64, content.len() as u64));
        assert_eq!(
            stated_size(*file.last_chunk().unwrap()),
            content.len() as u32
        );
    }

    /// Returns eight bytes of `content` that can be read in `file`.
    fn readable<'a>(content: &'a [u8], file: &[u8]) -> Option<&'a [u8]> {
        let windows: HashSet<&[u8]> = file.windows(8).collect();
        content.windows(8).find(|window| windows.contains(window))
    }

    fn assert_unreadable(text: &str) {
        assert_round_trip(text.as_bytes());
        let file = compress(text.as_bytes());
        let found = readable(text.as_bytes(), &file).map(String::from_utf8_lossy);
        assert_eq!(found, None, "{text:?}");
    }

    /// Makes numbers that look random.
    fn numbers() -> impl Iterator<Item = u32> {
        std::iter::successors(Some(1_u64), |&state| {
            Some(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        })
        .map(|state| (state >> 33) as u32)
    }

    fn characters(first: char, count: u32) -> impl Iterator<Item = char> {
        numbers().map(move |number| char::from_u32(first as u32 + number % count).unwrap())
    }

    fn text(characters: impl Strategy<Value = char>) -> impl Strategy<Value = String> {
        vec(characters, 0..300).prop_map(String::from_iter)
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            text(prop::char::range(' ', '~')),
            text(prop::char::range('0', '9')),
            text(prop::char::range('а', 'я')),
            text(prop::char::range('一', '龥')),
            text(prop::char::range('😀', '🙏')),
            text(any::<char>()),
        ]
    }

    proptest! {
        #[test]
        fn text_can_not_be_read_in_the_file(text in any_text()) {
            assert_unreadable(&text);
        }

        #[test]
        fn mixed_text_can_not_be_read_in_the_file(parts in vec(any_text(), 1..10), times in 1_usize..10) {
            assert_unreadable(&parts.concat().repeat(times));
        }

        #[test]
        fn any_bytes_are_read_back(content in vec(any::<u8>(), 0..2000)) {
            assert_round_trip(&content);
        }
    }

    #[test]
    fn runs_of_one_character_can_not_be_read_in_the_file() {
        for byte in 0..128_u8 {
            for length in (1..64).chain([100, 300]) {
                assert_unreadable(&char::from(byte).to_string().repeat(length));
            }
        }
    }

    #[test]
    fn digits_that_are_their_own_codes_can_not_be_read_in_the_file() {
        for digits in [
            "20250705",
            "00257702",
            "75275002",
            "5555777722220000",
            "0225577052",
        ] {
            for before in 0..80 {
                let text: String = characters('A', 57)
                    .take(before)
                    .chain(digits.chars())
                    .collect();
                assert_unreadable(&text);
                assert_unreadable(&(text + " abcd"));
            }
        }
    }

    #[test]
    fn large_text_can_not_be_read_in_the_file() {
        for (first, count) in [(' ', 95), ('а', 32), ('一', 20_000), ('😀', 80)] {
            assert_unreadable(&characters(first, count).take(50_000).collect::<String>());
        }
    }

    /// Libdeflate begins another block after 8192 matches, however little is left.
    #[test]
    fn short_rest_of_a_large_text_can_not_be_read_in_the_file() {
        let letters: Vec<char> = characters('а', 1000).take(1500).collect();
        let words: Vec<String> = letters.chunks(3).map(String::from_iter).collect();
        let mut text: String = numbers()
            .map(|number| &*words[number as usize % 500])
            .take(8500)
            .collect();
        let rest: String = characters('\u{80}', 1900).take(50).collect();
        let mut stored = 0;
        for words in words.chunks(2) {
            text.extend(words.iter().map(String::as_str));
            let text = text.clone() + &rest;
            let mut encoder = Encoder::new();
            encoder.write(text.as_bytes(), 0);
            if shows_text(text.as_bytes(), &encoder.file) {
                stored += 1;
                assert_unreadable(&text);
                assert!(compress(text.as_bytes()).len() < encoder.file.len() + 4096);
            }
        }
        assert!(stored > 0, "the test no longer makes what it is about");
    }

    #[test]
    fn file_depends_only_on_the_content() {
        let content = characters('a', 26).take(5000).collect::<String>();
        let expected = compress(content.as_bytes());
        compress(&[1; 300_000]);
        compress(b"short");
        assert_eq!(compress(content.as_bytes()), expected);
        std::thread::spawn(move || assert_eq!(compress(content.as_bytes()), expected))
            .join()
            .unwrap();
    }

    /// A failure means that the storage format has changed: equal content no longer gives equal files.
    #[test]
    fn bytes_of_files_never_change() {
        let prose = "The quick brown fox jumps over the lazy dog.\n";
        let cases: [(&str, Vec<u8>); 8] = [
            ("empty", Vec::new()),
            ("short", b"hello\n".to_vec()),
            ("last without libdeflate", vec![b'x'; 51]),
            ("first with libdeflate", vec![b'x'; 52]),
            (
                "cyrillic",
                characters('а', 32).take(60).collect::<String>().into(),
            ),
            ("prose", prose.repeat(100).into()),
            (
                "large",
                characters(' ', 95)
                    .take(1_000_000)
                    .collect::<String>()
                    .into(),
            ),
            (
                "binary",
                numbers().take(100_000).map(|number| number as u8).collect(),
            ),
        ];
        let files = cases.map(|(name, content)| {
            let file = compress(&content);
            format!(
                "{name}: {} -> {}, {}",
                content.len(),
                file.len(),
                Checksum::compute(&file).short()
            )
        });
        insta::assert_snapshot!(files.join("\n"), @r"
        empty: 0 -> 21, c2a019cad9cb
        short: 6 -> 27, 3fd16c3b89d5
        last without libdeflate: 51 -> 72, ec3caabead2f
        first with libdeflate: 52 -> 24, d93b9c639202
        cyrillic: 120 -> 104, b1047a056f14
        prose: 4500 -> 93, a292ef428bae
        large: 1000000 -> 831499, d76500c45d2f
        binary: 100000 -> 100028, ddbbc5352067
        ");
        insta::assert_snapshot!(format!("{:02x?}", compress(b"hello\n")), @"[1f, 8b, 08, 00, 00, 00, 00, 00, 04, ff, 02, 2c, 23, 35, 27, 27, 9f, 0b, 00, 20, 30, 3a, 36, 06, 00, 00, 00]");
    }

    #[test]
    fn other_programs_read_the_files() {
        let large = characters('а', 32).take(100_000).collect::<String>();
        for text in [
            "",
            "x",
            "short text",
            "Короткий текст без сжатия, но длиннее",
            &large,
        ] {
            match gunzip(&compress(text.as_bytes())) {
                Some(read) => assert!(read == text.as_bytes()),
                None => println!("skipped: there is no gzip program"),
            }
        }
    }

    fn gunzip(file: &[u8]) -> Option<Vec<u8>> {
        let mut command = Command::new("gzip");
        command
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let mut input = child.stdin.take().unwrap();
        let file = file.to_vec();
        let writer = std::thread::spawn(move || input.write_all(&file));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success());
        Some(output.stdout)
    }
}
