/// How far into a file its first line that says something is looked for, in bytes.
const HEAD: usize = 4096;

/// Returns whether a file is a private key, or has one among its PEM blocks (RFC 7468).
///
/// OpenSSH's, PGP's, PuTTY's and SSH.com's formats count too, and what `openssl pkcs12` writes before a
/// block. Text that quotes a key is not one: it begins otherwise. So all that costs is a look at the
/// first line that is neither blank nor a comment; only a file that does begin so is read on.
#[must_use]
pub fn is_private_key(bytes: &[u8]) -> bool {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head = &start[..start.len().min(HEAD)];
    if is_service_account(head) {
        return true;
    }
    let says_something = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
    let Some(first) = lines(head).find(says_something) else { return false };
    if first.starts_with(b"PuTTY-User-Key-File-") || first.starts_with(b"AGE-SECRET-KEY-1") {
        return true;
    }
    let is_of_blocks = first.starts_with(b"-----BEGIN ")
        || first.starts_with(b"---- BEGIN ")
        || first == b"Bag Attributes"
        || first.starts_with(b"Key Attributes");
    is_of_blocks && lines(start).any(begins_private_key)
}

/// Returns whether a file begins as the JSON of a service account that has its private key in it.
fn is_service_account(head: &[u8]) -> bool {
    let holds = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    head.trim_ascii_start().starts_with(b"{") && holds(b"\"private_key\"") && holds(b"PRIVATE KEY-----")
}

/// Returns whether a line is `-----BEGIN … PRIVATE KEY-----`, or PGP's or SSH.com's like of it.
fn begins_private_key(line: &[u8]) -> bool {
    let label = line.strip_prefix(b"-----BEGIN ").and_then(|line| line.strip_suffix(b"-----"));
    let label = label.or_else(|| line.strip_prefix(b"---- BEGIN ")?.strip_suffix(b" ----"));
    let Some(label) = label else { return false };
    label.strip_suffix(b" BLOCK").unwrap_or(label).ends_with(b"PRIVATE KEY")
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
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
            format!("Bag Attributes\n    friendlyName: x\n{}", block("PRIVATE KEY")),
            format!("PuTTY-User-Key-File-{}: ssh-ed25519\n", 3),
            format!("# created: today\nAGE-SECRET-{}\n", "KEY-1QQQ"),
            ssh2,
        ] {
            assert!(is_private_key(file.as_bytes()), "{file}");
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
            format!("# Keys\n\nThey look so:\n\n{key}"),
            format!("key: |\n  {key}"),
            format!("{}{key}", "\n".repeat(5000)),
        ] {
            assert!(!is_private_key(file.as_bytes()), "{file}");
        }
        assert!(!is_private_key(b"\xff\xfe\0"));
    }
}
