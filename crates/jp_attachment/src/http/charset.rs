//! Decoding of text in any charset.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The number of bytes that are searched for the name of a charset (HTML "prescan a byte stream").
const HEAD: usize = 1024;

/// The result of decoding bytes that may be text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// UTF-8.
    Utf8(String),
    /// Text in another charset, or with invalid bytes.
    Other(Foreign),
    /// Not text, or in an unknown charset.
    Binary(Vec<u8>),
}

/// Text whose bytes are not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) bytes: Vec<u8>,
    pub(super) text: String,
    /// The name of the charset, in lower case.
    pub(super) charset: String,
    pub(super) doubt: Option<Doubt>,
}

/// A reason why the decoded text may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// No charset is named, and it is not UTF-8.
    Guessed,
    /// Some bytes are invalid in the charset and were replaced.
    Replaced,
}

/// The declared charset of a text.
enum DeclaredCharset {
    Known(&'static Encoding),
    /// A charset that browsers don't know, or refuse.
    Unknown,
    None,
}

/// Decodes text.
///
/// A byte order mark wins over the `charset` of the header, which wins over a `<meta>` or XML
/// declaration in the text. Without any of them the text is UTF-8 or, if it is not valid UTF-8,
/// windows-1252, as in browsers. Bytes that decode to NUL are not text.
pub(super) fn decode(bytes: Vec<u8>, charset: Option<&str>) -> Decoded {
    match declared_charset(&bytes, charset) {
        DeclaredCharset::Known(encoding) if encoding == UTF_8 => {
            utf8(bytes).unwrap_or_else(|bytes| foreign(bytes, UTF_8, None))
        }
        DeclaredCharset::Known(encoding) if encoding.is_ascii_compatible() && bytes.is_ascii() => {
            utf8(bytes).unwrap_or_else(Decoded::Binary)
        }
        DeclaredCharset::Known(encoding) => foreign(bytes, encoding, None),
        DeclaredCharset::Unknown => utf8(bytes).unwrap_or_else(Decoded::Binary),
        DeclaredCharset::None => {
            utf8(bytes).unwrap_or_else(|bytes| foreign(bytes, WINDOWS_1252, Some(Doubt::Guessed)))
        }
    }
}

fn utf8(bytes: Vec<u8>) -> Result<Decoded, Vec<u8>> {
    if bytes.contains(&0) {
        return Ok(Decoded::Binary(bytes));
    }
    String::from_utf8(bytes)
        .map(Decoded::Utf8)
        .map_err(std::string::FromUtf8Error::into_bytes)
}

fn foreign(bytes: Vec<u8>, encoding: &'static Encoding, doubt: Option<Doubt>) -> Decoded {
    let (text, is_damaged) = encoding.decode_with_bom_removal(&bytes);
    if text.contains('\0') {
        return Decoded::Binary(bytes);
    }
    let text = text.into_owned();
    let doubt = doubt.or(is_damaged.then_some(Doubt::Replaced));
    Decoded::Other(Foreign {
        bytes,
        text,
        charset: encoding.name().to_ascii_lowercase(),
        doubt,
    })
}

fn declared_charset(bytes: &[u8], charset: Option<&str>) -> DeclaredCharset {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return DeclaredCharset::Known(encoding);
    }
    if let Some(label) = charset {
        return by_label(label);
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_ascii_lowercase();
    match xml_encoding(&head)
        .or_else(|| meta_charset(&head))
        .map(by_label)
    {
        // The declaration was readable as ASCII, so the page is not in UTF-16 (HTML §13.2.3.2).
        Some(DeclaredCharset::Known(encoding)) if encoding == UTF_16BE || encoding == UTF_16LE => {
            DeclaredCharset::Known(UTF_8)
        }
        Some(charset) => charset,
        None => DeclaredCharset::None,
    }
}

/// Returns the charset of a label (Encoding Standard §4.2). The "replacement" encoding counts as
/// unknown.
fn by_label(label: &str) -> DeclaredCharset {
    Encoding::for_label_no_replacement(label.as_bytes())
        .map_or(DeclaredCharset::Unknown, DeclaredCharset::Known)
}

/// Finds the encoding of an XML declaration.
fn xml_encoding(head: &str) -> Option<&str> {
    let declaration = head
        .trim_start()
        .strip_prefix("<?xml")?
        .split("?>")
        .next()?;
    value_after(declaration, "encoding")
}

/// Finds the charset of a `<meta charset>` or `<meta http-equiv>`. `head` is in lower case.
fn meta_charset(mut head: &str) -> Option<&str> {
    loop {
        let (before, meta) = head.split_once("<meta")?;
        if let Some((_, comment)) = before
            .rsplit_once("<!--")
            .filter(|(_, comment)| !comment.contains("-->"))
        {
            // The tag is in a comment, so the search continues after it.
            let start = head.len() - meta.len() - "<meta".len() - comment.len();
            head = head[start..].split_once("-->")?.1;
            continue;
        }
        let tag = meta.split('>').next().unwrap_or(meta);
        if let Some(charset) = value_after(tag, "charset") {
            return Some(charset);
        }
        head = meta;
    }
}

/// Returns the value that is assigned to `name`, with or without quotes.
fn value_after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    let value = rest
        .trim_start()
        .strip_prefix('=')?
        .trim_start()
        .trim_start_matches(['"', '\'']);
    value
        .split(|character: char| {
            character.is_ascii_whitespace() || matches!(character, '"' | '\'' | ';' | '/')
        })
        .next()
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(bytes: &[u8], charset: Option<&str>) -> (String, String) {
        match decode(bytes.to_vec(), charset) {
            Decoded::Utf8(text) => ("utf-8".into(), text),
            Decoded::Other(Foreign {
                text,
                charset,
                doubt,
                ..
            }) => {
                let doubt = doubt.map(|doubt| format!(" {doubt:?}")).unwrap_or_default();
                (charset + &doubt, text)
            }
            Decoded::Binary(_) => ("binary".into(), String::new()),
        }
    }

    #[test]
    fn charset_is_found() {
        let table: [(&[u8], Option<&str>, &str, &str); 24] = [
            (b"plain", None, "utf-8", "plain"),
            (b"", Some("utf-16"), "utf-16le", ""),
            ("é".as_bytes(), None, "utf-8", "é"),
            ("é".as_bytes(), Some("UTF-8"), "utf-8", "é"),
            ("é".as_bytes(), Some("klingon"), "utf-8", "é"),
            (b"\xe9", Some("klingon"), "binary", ""),
            (b"\xe9", Some("hz-gb-2312"), "binary", ""),
            (b"\xe9", None, "windows-1252 Guessed", "é"),
            (b"\xe9", Some("latin1"), "windows-1252", "é"),
            (b"plain", Some("latin1"), "utf-8", "plain"),
            (b"a\xe9b", Some("utf-8"), "utf-8 Replaced", "a\u{fffd}b"),
            (b"\x82\xa0", Some("Shift_JIS"), "shift_jis", "あ"),
            (b"\x1b$B$\"\x1b(B", Some("iso-2022-jp"), "iso-2022-jp", "あ"),
            (b"\xff\xfea\0", None, "utf-16le", "a"),
            (b"\xfe\xff\0a", Some("utf-8"), "utf-16be", "a"),
            (b"\xff\xfea\0\0", None, "utf-16le Replaced", "a\u{fffd}"),
            (b"\xef\xbb\xbfa", Some("latin1"), "utf-8", "\u{feff}a"),
            (b"a\0b", None, "binary", ""),
            (b"\xff\0", None, "binary", ""),
            (
                b"<META CHARSET=KOI8-R>\xc1",
                None,
                "koi8-r",
                "<META CHARSET=KOI8-R>а",
            ),
            (
                b"<meta http-equiv=x content='text/html; charset=koi8-r'>\xc1",
                None,
                "koi8-r",
                "<meta http-equiv=x content='text/html; charset=koi8-r'>а",
            ),
            (
                b"<!-- <meta charset=koi8-r> --><meta charset='latin1'>\xe9",
                None,
                "windows-1252",
                "<!-- <meta charset=koi8-r> --><meta charset='latin1'>é",
            ),
            (
                b"<meta charset=utf-16>",
                None,
                "utf-8",
                "<meta charset=utf-16>",
            ),
            (
                b"<?xml version='1.0' encoding=\"ISO-8859-2\"?>\xb1",
                None,
                "iso-8859-2",
                "<?xml version='1.0' encoding=\"ISO-8859-2\"?>ą",
            ),
        ];
        for (bytes, charset, found, text) in table {
            assert_eq!(
                shown(bytes, charset),
                (found.into(), text.into()),
                "{bytes:?} {charset:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(bytes: Vec<u8>, label in "(utf-8|utf-16|latin1|gbk|big5|x|)") {
            let label = Some(label).filter(|label| !label.is_empty());
            let kept = match decode(bytes.clone(), label.as_deref()) {
                Decoded::Utf8(text) => text.into_bytes(),
                Decoded::Other(foreign) => foreign.bytes,
                Decoded::Binary(bytes) => bytes,
            };
            prop_assert_eq!(kept, bytes);
        }
    }
}
