use super::UriError;

/// Percent-encodes one path segment (RFC 3986 §2.1, §3.3).
///
/// A `pchar` (unreserved, sub-delims, `:`, `@`) is not encoded. Every other byte of the UTF-8,
/// including `%` and `/`, becomes `%XX` with upper-case digits. Text is not normalised: a composed
/// and a decomposed `é` are different names.
#[must_use]
pub fn percent_encode_segment(segment: &str) -> String {
    encode(segment.bytes(), is_pchar)
}

/// Percent-encodes a relative path: each segment as [`percent_encode_segment`] does, but not `/`.
///
/// In a Windows path, replace the separators with `/` first.
#[must_use]
pub fn encode_path(path: &str) -> String {
    encode(path.bytes(), |byte| byte == b'/' || is_pchar(byte))
}

/// Percent-encodes the program of a `cmd://` URL: everything except unreserved characters and `/`.
#[must_use]
pub fn encode_program(program: &str) -> String {
    encode(program.bytes(), |byte| byte == b'/' || is_unreserved(byte))
}

/// Percent-encodes an argument of a `cmd://` URL, or any value in a query: as
/// [`percent_encode_segment`] does, and also `&`, `=` and `+`.
#[must_use]
pub fn encode_argument(argument: &str) -> String {
    encode(argument.bytes(), |byte| {
        is_pchar(byte) && !b"&=+".contains(&byte)
    })
}

/// Decodes every `%XX` (RFC 3986 §2.1). Any other `%` is kept.
///
/// # Errors
///
/// Bytes that are not UTF-8.
pub fn percent_decode(text: &str) -> Result<String, UriError> {
    String::from_utf8(decode(text).collect()).map_err(|_| UriError::NotUtf8(text.to_owned()))
}

/// Returns whether a URI ends with a name, encoded or not.
#[must_use]
pub fn ends_with_name(uri: &str, name: &str) -> bool {
    uri.ends_with(name) || percent_decode(uri).is_ok_and(|uri| uri.ends_with(name))
}

/// Rewrites an encoded segment as [`percent_encode_segment`] would write it (RFC 3986 §6.2.2).
pub(super) fn canonical_segment(segment: &str) -> String {
    encode(decode(segment), is_pchar)
}

/// Rewrites an encoded host in lower case (RFC 3986 §6.2.2.1) and with canonical encodings.
pub(super) fn canonical_host(host: &str) -> String {
    encode_host(decode(host))
}

/// Encodes a host's bytes: lower case, a `reg-name` (RFC 3986 §3.2.2).
pub(super) fn encode_host(host: impl Iterator<Item = u8>) -> String {
    encode(host.map(|byte| byte.to_ascii_lowercase()), |byte| {
        is_pchar(byte) && byte != b':' && byte != b'@'
    })
}

fn encode(bytes: impl Iterator<Item = u8>, is_literal: impl Fn(u8) -> bool) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    // Most names need no encoding, so their length is a good guess.
    let mut encoded = String::with_capacity(bytes.size_hint().0);
    for byte in bytes {
        if is_literal(byte) {
            encoded.push(char::from(byte));
        } else {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            encoded.extend(['%', char::from(high), char::from(low)]);
        }
    }
    encoded
}

fn decode(text: &str) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        match (first == b'%').then(|| decode_hex_pair(after)).flatten() {
            Some(byte) => {
                // The two digits are ASCII, so the rest starts at a character.
                rest = &after[2..];
                Some(byte)
            }
            None => {
                rest = after;
                Some(first)
            }
        }
    })
}

/// Decodes the two hexadecimal digits at the start of `text`.
#[must_use]
pub fn decode_hex_pair(text: &[u8]) -> Option<u8> {
    let [high, low] = *text.first_chunk()?;
    let [high, low] = [high, low].map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}

/// Returns whether `byte` is a `pchar` (RFC 3986 §3.3) that needs no encoding.
fn is_pchar(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte)
}

/// Returns whether `byte` is `unreserved` (RFC 3986 §2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_but_a_pchar_is_encoded() {
        let table = [
            ("", ""),
            ("aZ09-._~!$&'()*+,;=:@", "aZ09-._~!$&'()*+,;=:@"),
            ("a b", "a%20b"),
            ("#1?", "%231%3F"),
            ("100%", "100%25"),
            ("%41", "%2541"),
            ("\"[x]\"", "%22%5Bx%5D%22"),
            ("a/b\\c", "a%2Fb%5Cc"),
            ("\n\t\u{7f}", "%0A%09%7F"),
            ("🦀", "%F0%9F%A6%80"),
            ("\u{e9}", "%C3%A9"),
            ("e\u{301}", "e%CC%81"),
        ];
        for (segment, encoded) in table {
            assert_eq!(percent_encode_segment(segment), encoded, "{segment:?}");
            assert_eq!(
                percent_decode(encoded).as_deref(),
                Ok(segment),
                "{encoded:?}"
            );
        }
    }

    #[test]
    fn path_keeps_its_slashes() {
        assert_eq!(encode_path("a b/c#d"), "a%20b/c%23d");
        assert_eq!(encode_path(""), "");
    }

    #[test]
    fn command_has_no_character_that_its_url_gives_a_meaning() {
        assert_eq!(
            encode_program("./p (x)/a:b&c~d"),
            "./p%20%28x%29/a%3Ab%26c~d"
        );
        assert_eq!(encode_argument("a/b&c=d+e:f(g)"), "a%2Fb%26c%3Dd%2Be:f(g)");
    }

    #[test]
    fn malformed_percent_is_itself() {
        for (encoded, text) in [
            ("%", "%"),
            ("%4", "%4"),
            ("%%41", "%A"),
            ("%zz", "%zz"),
            ("%+1", "%+1"),
        ] {
            assert_eq!(percent_decode(encoded).as_deref(), Ok(text), "{encoded:?}");
        }
    }

    #[test]
    fn decoding_refuses_what_is_not_utf8() {
        assert_eq!(
            percent_decode("a%FFb"),
            Err(UriError::NotUtf8("a%FFb".into()))
        );
        assert_eq!(percent_decode("%C3"), Err(UriError::NotUtf8("%C3".into())));
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text: String) {
            prop_assert_eq!(percent_decode(&percent_encode_segment(&text)), Ok(text.clone()));
            prop_assert_eq!(percent_decode(&encode_path(&text)), Ok(text));
        }

        #[test]
        fn canonical_segment_is_stable(segment in "[%0-9a-fA-F/. é]{0,12}|.*") {
            let canonical = canonical_segment(&segment);
            prop_assert_eq!(canonical_segment(&canonical), canonical);
        }
    }
}
