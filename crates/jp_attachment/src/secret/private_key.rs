use std::borrow::Cow;

use memchr::{memchr2, memmem, memrchr2};

/// How far into a file its first line that says something is looked for, in bytes.
const HEAD: usize = 4096;

/// What every first line of a private key's block has in it.
const LABEL: &[u8] = b"PRIVATE KEY";

/// How far before and after its label such a line may go, in bytes.
const MAX_LINE: usize = 256;

/// How much of a block is looked at for the key itself, in bytes.
const MAX_HEADERS: usize = 1024;

/// How long the first line of a key is at least, in Base64.
const MIN_KEY: usize = 24;

/// Returns whether a file is a private key, or has one among its lines.
///
/// A file is one that begins as the formats of OpenSSH, PGP, PuTTY, SSH.com and age do, or as the JSON of a service
/// account, or with PEM blocks (RFC 7468) of which one has a private key; what `openssl pkcs12` writes before a block may
/// come first. A file has one where further down a PEM block stands on lines of its own, indented or not, and with a key
/// in it. UTF-16 is read if it begins with a byte order mark.
///
/// A key whose block does not begin on a line of its own is not found: it may well be quoted in a source file, as one
/// string. A block without a key in it shows how one looks.
///
/// Every byte is looked at once, for the label of a block; a file in UTF-16 is copied for it.
#[must_use]
pub fn is_private_key(bytes: &[u8]) -> bool {
    let text = in_bytes(bytes);
    begins_as_private_key(&text) || has_block_of_its_own(&text)
}

/// Returns a text as what is ASCII of it in one byte each, without a byte order mark.
fn in_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let narrowed = |units: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, _) = units.as_chunks::<2>();
        units
            .iter()
            .map(|bytes| u8::try_from(unit(*bytes)).unwrap_or(u8::MAX))
            .collect()
    };
    match bytes {
        [0xff, 0xfe, units @ ..] => Cow::Owned(narrowed(units, u16::from_le_bytes)),
        [0xfe, 0xff, units @ ..] => Cow::Owned(narrowed(units, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, text @ ..] => Cow::Borrowed(text),
        _ => Cow::Borrowed(bytes),
    }
}

/// Returns whether a file's first line that says something, neither blank nor a comment, is that of a key's file.
fn begins_as_private_key(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD)];
    if is_service_account(text) {
        return true;
    }
    let says_something = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
    let Some(first) = lines(head).find(says_something) else {
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

/// Returns whether a line is the first of a private key's block, and a key comes after it.
fn has_block_of_its_own(text: &[u8]) -> bool {
    memmem::find_iter(text, LABEL).any(|label| {
        let Some((line, rest)) = line_around(text, label) else {
            return false;
        };
        begins_private_key(line.trim_ascii()) && begins_with_key(rest)
    })
}

/// Returns the line that a place is in, if it is no longer than such a line may be, and what comes after it.
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

/// Returns whether the first line that is neither blank nor a header (`Proc-Type: 4,ENCRYPTED`) is of a key.
fn begins_with_key(block: &[u8]) -> bool {
    let block = &block[..block.len().min(MAX_HEADERS)];
    let first = lines(block).find(|line| !line.is_empty() && !line.contains(&b':'));
    first.is_some_and(|line| line.len() >= MIN_KEY && line.iter().all(is_base64))
}

fn is_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(byte)
}

/// Returns whether a file begins as JSON and has what a service account has of its private key.
fn is_service_account(text: &[u8]) -> bool {
    let holds = |needle: &[u8]| memmem::find(text, needle).is_some();
    text.trim_ascii_start().starts_with(b"{")
        && holds(b"\"private_key\"")
        && holds(b"PRIVATE KEY-----")
}

/// Returns whether a line is `-----BEGIN … PRIVATE KEY-----`, or PGP's or SSH.com's like of it.
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

    /// Returns a PEM block; put together here, so that no scanner takes this file for one.
    fn block(label: &str) -> String {
        format!(
            "-----{} {label}-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX\n-----END {label}-----\n",
            "BEGIN"
        )
    }

    #[test]
    fn private_key_is_told_by_how_a_file_begins() {
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
    fn what_quotes_a_key_is_not_one() {
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
