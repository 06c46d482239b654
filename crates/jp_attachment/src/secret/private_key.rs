use std::borrow::Cow;

use memchr::{memchr2, memmem, memrchr2};

/// The number of bytes that are searched for the first line that is neither blank nor a comment.
const HEAD: usize = 4096;

/// The label in the first line of each block of a private key.
const LABEL: &[u8] = b"PRIVATE KEY";

/// The most bytes of such a line before and after the label. Real lines are below 80; this allows
/// for indentation.
const MAX_LINE: usize = 256;

/// The number of bytes of a block that are searched for the key itself, after its headers.
const MAX_HEADERS: usize = 1024;

/// The least length of the first line of a key, in Base64. That of the shortest keys, Ed25519, has
/// 64; a placeholder such as `...` is shorter.
const MIN_KEY: usize = 24;

/// Returns whether a file is a private key, or contains one on separate lines.
///
/// It is one if it starts in a format of OpenSSH, PGP, PuTTY, SSH.com or age, as the JSON of a
/// service account, or with PEM blocks (RFC 7468) of which one is a private key. The lines that
/// `openssl pkcs12` writes before a block may come first. It contains one if a PEM block with a key
/// is on separate lines, indented or not. UTF-16 is read if it starts with a byte order mark.
///
/// A key within a line is not found, because it may be quoted in a source file as one string. A
/// block without a key in it is an example.
///
/// One pass searches all bytes for the label of a block. A file in UTF-16 is copied first.
#[must_use]
pub fn is_private_key(bytes: &[u8]) -> bool {
    let text = narrow(bytes);
    begins_as_private_key(&text) || has_separate_block(&text)
}

/// Returns a text without its byte order mark and with one byte for each ASCII character.
fn narrow(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes {
        [0xff, 0xfe, units @ ..] => Cow::Owned(narrow_utf16(units, u16::from_le_bytes)),
        [0xfe, 0xff, units @ ..] => Cow::Owned(narrow_utf16(units, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, text @ ..] => Cow::Borrowed(text),
        _ => Cow::Borrowed(bytes),
    }
}

fn narrow_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Vec<u8> {
    let (units, _) = bytes.as_chunks::<2>();
    units
        .iter()
        .map(|bytes| u8::try_from(unit(*bytes)).unwrap_or(u8::MAX))
        .collect()
}

/// Returns whether the first line of a file that is neither blank nor a comment is that of a key's
/// file.
fn begins_as_private_key(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD)];
    if is_service_account(text) {
        return true;
    }
    let Some(first) = lines(head).find(|line| !line.is_empty() && !line.starts_with(b"#")) else {
        return false;
    };
    if first.starts_with(b"PuTTY-User-Key-File-") || first.starts_with(b"AGE-SECRET-KEY-1") {
        return true;
    }
    let is_of_blocks = first.starts_with(b"-----BEGIN ")
        || first.starts_with(b"---- BEGIN ")
        || first == b"Bag Attributes"
        || first.starts_with(b"Key Attributes");
    is_of_blocks && lines(text).any(begins_private_key)
}

/// Returns whether a line starts the block of a private key, and a key follows.
fn has_separate_block(text: &[u8]) -> bool {
    memmem::find_iter(text, LABEL).any(|label| {
        let Some((line, rest)) = line_around(text, label) else {
            return false;
        };
        begins_private_key(line.trim_ascii()) && begins_with_key(rest)
    })
}

/// Returns the line at `place` and the text after it. Returns `None` if the line is too long.
fn line_around(text: &[u8], place: usize) -> Option<(&[u8], &[u8])> {
    let earliest = place.saturating_sub(MAX_LINE);
    let start = match memrchr2(b'\n', b'\r', &text[earliest..place]) {
        Some(end_of_other) => earliest + end_of_other + 1,
        None if earliest == 0 => 0,
        None => return None,
    };
    let latest = text.len().min(place + MAX_LINE);
    let end = place + memchr2(b'\n', b'\r', &text[place..latest])?;
    Some((&text[start..end], &text[end..]))
}

/// Returns whether the first line that is neither blank nor a header (`Proc-Type: 4,ENCRYPTED`) is
/// a key in Base64.
fn begins_with_key(block: &[u8]) -> bool {
    let block = &block[..block.len().min(MAX_HEADERS)];
    let first = lines(block).find(|line| !line.is_empty() && !line.contains(&b':'));
    first.is_some_and(|line| line.len() >= MIN_KEY && line.iter().all(is_base64))
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(byte)
}

/// Returns whether a file is the JSON of a service account with its private key.
fn is_service_account(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
        && memmem::find(text, b"\"private_key\"").is_some()
        && memmem::find(text, b"PRIVATE KEY-----").is_some()
}

/// Returns whether a line is `-----BEGIN … PRIVATE KEY-----`, or the same of PGP or SSH.com.
fn begins_private_key(line: &[u8]) -> bool {
    let label = line
        .strip_prefix(b"-----BEGIN ")
        .and_then(|line| line.strip_suffix(b"-----"));
    let label = label.or_else(|| line.strip_prefix(b"---- BEGIN ")?.strip_suffix(b" ----"));
    let Some(label) = label else { return false };
    label
        .strip_suffix(b" BLOCK")
        .unwrap_or(label)
        .ends_with(b"PRIVATE KEY")
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a PEM block. It is assembled, so that no scanner takes this file for a key.
    fn block(label: &str) -> String {
        format!(
            "-----{} {label}-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX\n-----END {label}-----\n",
            "BEGIN"
        )
    }

    #[test]
    fn private_key_is_recognised_by_its_start() {
        let ssh2 = format!("---- {} SSH2 ENCRYPTED PRIVATE KEY ----\nx\n", "BEGIN");
        for file in [
            block("PRIVATE KEY"),
            block("ENCRYPTED PRIVATE KEY"),
            block("RSA PRIVATE KEY"),
            block("OPENSSH PRIVATE KEY"),
            block("PGP PRIVATE KEY BLOCK"),
            block("PRIVATE KEY").replace('\n', "\r\n"),
            format!("\u{feff}\n\n  # of the server\n{}", block("EC PRIVATE KEY")),
            block("CERTIFICATE") + "\n" + &block("PRIVATE KEY"),
            format!(
                "Bag Attributes\n    friendlyName: x\n{}",
                block("PRIVATE KEY")
            ),
            format!("PuTTY-User-Key-File-{}: ssh-ed25519\n", 3),
            format!("# created: today\nAGE-SECRET-{}\n", "KEY-1QQQ"),
            ssh2,
        ] {
            assert!(is_private_key(file.as_bytes()), "{file}");
        }
    }

    #[test]
    fn key_on_lines_of_its_own_is_found_anywhere() {
        let key = block("RSA PRIVATE KEY");
        let indented = key.replace('\n', "\n    ");
        let encrypted = key.replacen(
            '\n',
            "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,77\n\n",
            1,
        );
        let long = "\"name\": \"value\",\n".repeat(1000);
        for file in [
            format!("tls:\n  key: |\n    {indented}"),
            format!("tls:\r\n\tkey: |\r\n\t\t{}", key.replace('\n', "\r\n\t\t")),
            format!("{}{key}", "notes\n".repeat(200)),
            format!("{}{key}", "\n".repeat(5000)),
            format!("notes\n{encrypted}"),
            format!("{}\n{key}", "x".repeat(1_000_000)),
            format!("PRIVATE KEY PRIVATE KEY\n{key}"),
            format!("# Keys\r\r{}", key.replace('\n', "\r")),
            format!(
                "{{\n{long}\"private_key\": \"-----{} PRIVATE KEY-----\\nMIIB\"}}",
                "BEGIN"
            ),
        ] {
            assert!(
                is_private_key(file.as_bytes()),
                "{}",
                &file[file.len().saturating_sub(300)..]
            );
        }
    }

    #[test]
    fn key_in_utf_16_is_found_by_its_byte_order_mark() {
        for text in [
            block("PRIVATE KEY"),
            format!("schlüssel: |\n  {}", block("PRIVATE KEY")),
        ] {
            let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
            let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
            assert!(is_private_key(&little) && is_private_key(&big), "{text}");
            assert!(
                !is_private_key(&little[2..]),
                "without a mark it is not known to be text"
            );
        }
    }

    #[test]
    fn quoted_key_is_not_found() {
        let key = block("PRIVATE KEY");
        for file in [
            String::new(),
            "\n\n".into(),
            block("CERTIFICATE"),
            block("PUBLIC KEY"),
            block("PGP PUBLIC KEY BLOCK"),
            format!("const KEY: &str = \"{key}\";"),
            format!(
                "# Keys\n\nThey look so:\n\n{}",
                key.replace("MIIB", "...\n")
            ),
            format!("# Keys\n\nThey begin with {key}"),
            format!("key: {}", key.replace('\n', "\\n")),
            format!("> {}", key.replace('\n', "\n> ")),
            format!("x\n{}{key}", " ".repeat(MAX_LINE)),
            format!("x\n-----{} PRIVATE KEY-----", "BEGIN"),
            "PRIVATE KEY".repeat(100_000),
        ] {
            assert!(!is_private_key(file.as_bytes()), "{file}");
        }
        assert!(!is_private_key(b"\xff\xfe\0") && !is_private_key(b"\xfe\xff"));
    }
}
