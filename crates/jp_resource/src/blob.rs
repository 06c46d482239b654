use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use crate::uri::decode_hex_pair;

/// The SHA-256 of a resource's raw bytes.
///
/// Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum([u8; 32]);

/// The encoding of content: UTF-8 text or arbitrary bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Valid UTF-8 that is treated as text.
    Utf8,
    /// Anything else.
    Binary,
}

/// A reference to content in a blob store. It suffices to find and verify the content, and has its
/// size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlobRef {
    /// The SHA-256 of the raw bytes.
    pub checksum: Checksum,
    /// The length of the raw bytes.
    pub size: u64,
    /// The encoding: text or binary.
    pub encoding: Encoding,
}

/// A value that is either inline or in a blob store.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload<T> {
    /// The value itself.
    Inline(T),
    /// A reference to the bytes of the value.
    Stored(BlobRef),
}

/// The error of a checksum that does not have 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a checksum has 64 hexadecimal digits, not {0:?}")]
pub struct ParseChecksumError(String);

impl Checksum {
    /// Computes the checksum of `bytes`.
    #[must_use]
    pub fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Creates a checksum from a computed digest.
    #[must_use]
    pub fn from_bytes(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Returns the digest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first 12 digits, which suffice for users to distinguish versions.
    #[must_use]
    pub fn short(&self) -> String {
        let mut hex = self.to_string();
        hex.truncate(12);
        hex
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&hex).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checksum({self})")
    }
}

impl FromStr for Checksum {
    type Err = ParseChecksumError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_digest(text.as_bytes())
            .map(Self)
            .ok_or_else(|| ParseChecksumError(text.to_owned()))
    }
}

fn parse_digest(digits: &[u8]) -> Option<[u8; 32]> {
    if digits.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = decode_hex_pair(pair)?;
    }
    Some(digest)
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl BlobRef {
    /// Returns the reference to `bytes`.
    #[must_use]
    pub fn for_content(bytes: &[u8], encoding: Encoding) -> Self {
        Self {
            checksum: Checksum::compute(bytes),
            size: bytes.len() as u64,
            encoding,
        }
    }
}

impl<T> Payload<T> {
    /// Returns the value if it is not stored.
    pub fn inline(&self) -> Option<&T> {
        match self {
            Self::Inline(value) => Some(value),
            Self::Stored(_) => None,
        }
    }

    /// Returns the reference to the value if it is stored.
    pub fn blob(&self) -> Option<BlobRef> {
        match self {
            Self::Inline(_) => None,
            Self::Stored(blob) => Some(*blob),
        }
    }
}

impl<T> From<T> for Payload<T> {
    fn from(value: T) -> Self {
        Self::Inline(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_reads_what_it_writes() {
        let checksum = Checksum::compute(b"abc");
        assert_eq!(
            checksum.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(checksum.to_string().parse(), Ok(checksum));
        assert_eq!(checksum.to_string().to_uppercase().parse(), Ok(checksum));
    }

    #[test]
    fn checksum_refuses_what_is_not_64_digits() {
        for text in ["", "ba78", &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<Checksum>().is_err(), "{text:?}");
        }
    }
}
