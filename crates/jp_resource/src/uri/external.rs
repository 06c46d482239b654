use sha2::{Digest, Sha256};

use super::{PathStyle, percent_decode, percent_encode_segment, strip_scheme, strip_verbatim};
use crate::Checksum;

const SCHEME: &str = "external";

/// Returns the URI of a file outside the workspace: `external:HASH/NAME`. The name is
/// percent-encoded as in a file URI.
///
/// `HASH` is 64 lower-case hexadecimal digits: the SHA-256 of `canonical_parent`, the absolute
/// directory with links resolved, in UTF-8 (on Windows without `\\?\`). Anyone can guess a
/// directory and compare the hash, so a plain hash only hides paths that are hard to guess. With a
/// secret `key` it is HMAC-SHA-256 (RFC 2104), which reveals nothing without the key.
#[must_use]
pub fn external_uri(
    canonical_parent: &str,
    file_name: &str,
    key: Option<&[u8]>,
    style: PathStyle,
) -> String {
    let parent = match style {
        PathStyle::Unix => canonical_parent.into(),
        PathStyle::Windows => strip_verbatim(canonical_parent),
    };
    let hash = match key {
        None => Checksum::compute(parent.as_bytes()),
        Some(key) => Checksum::from_bytes(hmac_sha256(key, parent.as_bytes())),
    };
    format!("{SCHEME}:{hash}/{}", percent_encode_segment(file_name))
}

/// Returns the decoded file name of an `external:` URI, without fragment and query.
///
/// Returns `None` if the URI does not have the form of [`external_uri`], or if the name can't be
/// that of a file: it contains `/` or NUL, or is `.` or `..`.
#[must_use]
pub fn external_name(uri: &str) -> Option<String> {
    let rest = strip_scheme(uri, SCHEME)?;
    let (hash, name) = rest.split(['?', '#']).next()?.split_once('/')?;
    // The hash can't be checked; it only has to have the right form.
    hash.parse::<Checksum>().ok()?;
    let name = percent_decode(name).ok()?;
    let is_file_name = !name.contains(['/', '\0']) && !["", ".", ".."].contains(&name.as_str());
    is_file_name.then_some(name)
}

/// Returns whether `uri` has the `external:` scheme, so that its content exists only as a snapshot.
#[must_use]
pub fn is_external(uri: &str) -> bool {
    strip_scheme(uri, SCHEME).is_some()
}

/// Computes HMAC-SHA-256 (RFC 2104 §2).
fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    // The block of SHA-256 has 64 bytes. A longer key is hashed first.
    let mut block = [0; 64];
    if key.len() <= block.len() {
        block[..key.len()].copy_from_slice(key);
    } else {
        block[..32].copy_from_slice(&Sha256::digest(key));
    }
    let inner = start_hash(block, 0x36).chain_update(message).finalize();
    start_hash(block, 0x5c)
        .chain_update(inner)
        .finalize()
        .into()
}

/// Starts a hash with the key, padded as RFC 2104 §2 defines.
fn start_hash(key: [u8; 64], pad: u8) -> Sha256 {
    Sha256::new().chain_update(key.map(|byte| byte ^ pad))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "/Users/jean/Downloads";

    fn hash(parent: &str) -> Checksum {
        Checksum::compute(parent.as_bytes())
    }

    #[test]
    fn parent_is_hashed() {
        let uri = external_uri(PARENT, "Q3 report #1.pdf", None, PathStyle::Unix);
        assert_eq!(
            uri,
            format!("external:{}/Q3%20report%20%231.pdf", hash(PARENT))
        );
        assert_eq!(external_name(&uri).as_deref(), Some("Q3 report #1.pdf"));
        assert!(is_external(&uri));
    }

    #[test]
    fn other_directory_gives_another_uri() {
        let [downloads, desktop] = [PARENT, "/Users/jean/Desktop"]
            .map(|parent| external_uri(parent, "report.pdf", None, PathStyle::Unix));
        assert_ne!(downloads, desktop);
    }

    #[test]
    fn verbatim_prefix_is_not_hashed_on_windows() {
        let table = [
            (r"\\?\C:\Users\jean", r"C:\Users\jean"),
            (r"\\?\UNC\server\share", r"\\server\share"),
            (r"C:\Users\jean", r"C:\Users\jean"),
        ];
        for (parent, hashed) in table {
            let uri = external_uri(parent, "a", None, PathStyle::Windows);
            assert_eq!(uri, format!("external:{}/a", hash(hashed)));
            let uri = external_uri(parent, "a", None, PathStyle::Unix);
            assert_eq!(uri, format!("external:{}/a", hash(parent)));
        }
    }

    #[test]
    fn key_changes_the_hash() {
        let plain = external_uri(PARENT, "a", None, PathStyle::Unix);
        let keyed = external_uri(PARENT, "a", Some(b"secret"), PathStyle::Unix);
        let other = external_uri(PARENT, "a", Some(b"Secret"), PathStyle::Unix);
        assert!(plain != keyed && keyed != other);
        assert_eq!(external_name(&keyed).as_deref(), Some("a"));
    }

    /// RFC 4231 §4.2, §4.3, §4.4 and §4.7: a key shorter and one longer than a block among them.
    #[test]
    fn hmac_matches_the_rfcs_vectors() {
        let table: [(&[u8], &[u8], &str); 4] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, message, mac) in table {
            assert_eq!(
                Checksum::from_bytes(hmac_sha256(key, message)).to_string(),
                mac
            );
        }
    }

    #[test]
    fn name_is_refused_where_the_form_is_wrong() {
        let hash = hash(PARENT);
        for rest in ["", "a", "..", ".", "%2E%2E", "a/b", "a%2Fb", "a%00", "%FF"] {
            let name = external_name(&format!("external:{hash}/{rest}"));
            assert_eq!(name.as_deref(), (rest == "a").then_some("a"), "{rest:?}");
        }
        for uri in [
            "file:///a",
            "external:",
            "external:abc/a",
            "external",
            "http://external:1/a",
        ] {
            assert_eq!(external_name(uri), None, "{uri:?}");
        }
        assert_eq!(
            external_name(&format!("external:{hash}/a%23?q#L1-2")).as_deref(),
            Some("a#")
        );
    }

    #[test]
    fn scheme_alone_makes_a_uri_external() {
        for (uri, external) in [
            ("external:x", true),
            ("External:x", true),
            ("external", false),
            ("external/x:", false),
            ("file:///external:x", false),
            ("", false),
        ] {
            assert_eq!(is_external(uri), external, "{uri:?}");
        }
    }

    proptest! {
        #[test]
        fn name_survives(parent: String, name in "[^/\0]+", key: Option<Vec<u8>>) {
            prop_assume!(name != "." && name != "..");
            for style in [PathStyle::Unix, PathStyle::Windows] {
                let uri = external_uri(&parent, &name, key.as_deref(), style);
                prop_assert_eq!(external_name(&uri), Some(name.clone()));
            }
        }

        #[test]
        fn only_external_uris_have_a_name(uri in "(external:)?.*|external:[0-9a-f]{64}/.*") {
            prop_assert!(external_name(&uri).is_none() || is_external(&uri));
        }
    }
}
