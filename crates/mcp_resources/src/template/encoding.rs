//! Percent-encoding (RFC 3986 §2.1) and the characters that need it.

use std::borrow::Cow;

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Adds a text with every byte encoded that is not unreserved.
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

/// Adds a text with nothing encoded but what is not ASCII.
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

/// Gives a text in the form in which texts are compared (RFC 3986 §6.2.2): ASCII, with triplets only of what needs them
/// and capital hexadecimal digits in them; nothing if a `%` has no two hexadecimal digits after it.
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
        Cow::Owned(rewritten(text))
    })
}

fn rewritten(text: &str) -> String {
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

/// Decodes all triplets of a normal text; nothing if that is not UTF-8.
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

/// How many characters a normal text has when it is decoded.
pub(super) fn characters(normal: &str) -> usize {
    let bytes = normal.as_bytes();
    let triplets = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    // Of a character in several bytes, the first one counts.
    let continues = |at: usize| matches!(bytes.get(at + 1), Some(b'8' | b'9' | b'A' | b'B'));
    let uncounted = triplets.map(|(at, _)| 2 + usize::from(continues(at)));
    bytes.len() - uncounted.sum::<usize>()
}

/// The length in bytes of the first character of a text. Triplets that encode one together are one; a triplet that encodes
/// none, alone or with those after it, is one too.
pub(super) fn first_character(text: &str) -> usize {
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
            let is_character = |count: &usize| str::from_utf8(&encoded[..*count]).is_ok();
            3 * (1..=encoded.len()).find(is_character).unwrap_or(1)
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

/// The length of a scheme with its colon (RFC 3986 §3.1), if the text starts with one.
pub(super) fn scheme_length(text: &str) -> Option<usize> {
    let length = text.bytes().position(|byte| !is_scheme_byte(byte))?;
    let is_scheme = text.as_bytes()[0].is_ascii_alphabetic() && text.as_bytes()[length] == b':';
    is_scheme.then_some(length + 1)
}

pub(super) fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// RFC 3986 §2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986 §2.2; looked up, as matching asks for each byte of a URI.
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

/// Whether the bytes start with `%` and two hexadecimal digits.
pub(super) fn is_triplet(bytes: &[u8]) -> bool {
    triplet(bytes).is_some()
}

/// The byte that is encoded at the start, and its digits.
fn triplet(bytes: &[u8]) -> Option<(u8, [u8; 2])> {
    let [b'%', high, low, ..] = *bytes else {
        return None;
    };
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = value(high)? << 4 | value(low)?;
    Some((u8::try_from(byte).ok()?, [high, low]))
}
