//! Percent-encoding (RFC 3986 §2.1) and the characters that need it.

use std::borrow::Cow;

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Adds a text with all bytes encoded but the unreserved ones.
pub(super) fn push_unreserved(out: &mut String, text: &str) {
    text.bytes()
        .for_each(|byte| push_byte(out, byte, is_unreserved(byte)));
}

/// Adds a text with reserved characters and encoded triplets kept (RFC 6570 §3.2.3).
pub(super) fn push_reserved(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let kept = is_unreserved(byte) || is_reserved(byte) || is_triplet(&bytes[index..]);
        push_byte(out, byte, kept);
    }
}

/// Adds a text with only those bytes encoded that are not ASCII.
pub(super) fn push_ascii(out: &mut String, text: &str) {
    text.bytes()
        .for_each(|byte| push_byte(out, byte, byte.is_ascii()));
}

fn push_byte(out: &mut String, byte: u8, kept: bool) {
    if kept {
        out.push(char::from(byte));
    } else {
        out.push('%');
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 0xF)]));
    }
}

/// Returns a text in its normal form, in which texts are compared (RFC 3986 §6.2.2): ASCII, with only those
/// bytes encoded that need it, and capital hexadecimal digits. `None` if a `%` lacks its two digits.
pub(super) fn normalize(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let mut plain = text.is_ascii();
    for (index, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%') {
        let (byte, digits) = triplet(&bytes[index..])?;
        plain &= !is_unreserved(byte) && !digits.iter().any(u8::is_ascii_lowercase);
    }
    Some(if plain {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(rewrite(text))
    })
}

fn rewrite(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3);
    let mut bytes = text.as_bytes();
    while let Some((byte, after)) = bytes.split_first() {
        bytes = match triplet(bytes) {
            Some((encoded, _)) => {
                push_byte(&mut out, encoded, is_unreserved(encoded));
                &bytes[3..]
            }
            None => {
                push_byte(&mut out, *byte, byte.is_ascii());
                after
            }
        };
    }
    out
}

/// Decodes all triplets of a normal text; `None` if the result is not UTF-8.
pub(super) fn decode(normal: &str) -> Option<String> {
    if !normal.contains('%') {
        return Some(normal.to_owned());
    }
    let mut bytes = normal.as_bytes();
    let mut out = Vec::with_capacity(normal.len());
    loop {
        let (byte, after) = match bytes {
            [] => break,
            [b'%', high, low, after @ ..] => (digit(*high)? << 4 | digit(*low)?, after),
            [b'%', ..] => return None,
            [byte, after @ ..] => (*byte, after),
        };
        out.push(byte);
        bytes = after;
    }
    String::from_utf8(out).ok()
}

/// Counts the characters that a normal text has when it is decoded.
pub(super) fn count_characters(normal: &str) -> usize {
    let bytes = normal.as_bytes();
    let triplets = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    // The digits of a triplet don't count. Of a character in several bytes, only the first one does: the
    // others are continuation bytes, from 80 to BF.
    let uncounted = triplets.map(|(at, _)| match bytes.get(at + 1) {
        Some(b'8' | b'9' | b'A' | b'B') => 3,
        _ => 2,
    });
    bytes.len() - uncounted.sum::<usize>()
}

/// Returns the length in bytes of the first character of a text. Triplets that encode a character together
/// count as one. So does a triplet that encodes none, alone or with those after it.
pub(super) fn first_character_length(text: &str) -> usize {
    let encoded: Vec<u8> = text
        .as_bytes()
        .chunks(3)
        .map_while(triplet)
        .map(|(byte, _)| byte)
        .take(4)
        .collect();
    match encoded.as_slice() {
        [] => text.chars().next().map_or(0, char::len_utf8),
        encoded => {
            let count =
                (1..=encoded.len()).find(|count| str::from_utf8(&encoded[..*count]).is_ok());
            3 * count.unwrap_or(1)
        }
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Returns the length of the scheme that a text starts with, its colon included (RFC 3986 §3.1).
pub(super) fn scheme_length(text: &str) -> Option<usize> {
    let length = text.bytes().position(|byte| !is_scheme_byte(byte))?;
    let is_scheme = text.as_bytes()[0].is_ascii_alphabetic() && text.as_bytes()[length] == b':';
    is_scheme.then_some(length + 1)
}

pub(super) fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Returns whether a byte is unreserved (RFC 3986 §2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns whether a byte is reserved (RFC 3986 §2.2). Matching asks for each byte of a URI, so it is a table.
pub(super) fn is_reserved(byte: u8) -> bool {
    RESERVED[usize::from(byte)]
}

const RESERVED: [bool; 256] = {
    let mut reserved = [false; 256];
    let mut rest: &[u8] = b":/?#[]@!$&'()*+,;=";
    while let [byte, after @ ..] = rest {
        reserved[*byte as usize] = true;
        rest = after;
    }
    reserved
};

/// Returns whether bytes start with `%` and two hexadecimal digits.
pub(super) fn is_triplet(bytes: &[u8]) -> bool {
    triplet(bytes).is_some()
}

/// Decodes the triplet at the start, and returns the byte and its digits.
fn triplet(bytes: &[u8]) -> Option<(u8, [u8; 2])> {
    let [b'%', high, low, ..] = *bytes else {
        return None;
    };
    let byte = char::from(high).to_digit(16)? << 4 | char::from(low).to_digit(16)?;
    Some((u8::try_from(byte).ok()?, [high, low]))
}
