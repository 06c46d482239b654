use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of bytes, written `10MB` (decimal), `10MiB` (binary) or as a plain number.
///
/// Units may have either case and a space before them. The number must be an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// The error of a text that isn't a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {EXPECTED}")]
pub struct ParseByteSizeError;

const EXPECTED: &str = "a size such as \"10MB\"";

/// The units with their bytes: decimal units first, the largest first. A size is written with the
/// first unit that divides it.
const UNITS: [(&str, u64); 8] = [
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

impl ByteSize {
    /// Makes a size from a number of bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ParseByteSizeError;

    fn from_str(text: &str) -> Result<Self, ParseByteSizeError> {
        parse(text.trim()).map(Self).ok_or(ParseByteSizeError)
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(factor(unit.trim_start())?)
}

fn factor(unit: &str) -> Option<u64> {
    if unit.is_empty() || unit.eq_ignore_ascii_case("B") {
        return Some(1);
    }
    UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .map(|(_, factor)| *factor)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS
            .iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
        {
            Some((unit, factor)) => write!(formatter, "{}{unit}", self.0 / factor),
            None => write!(formatter, "{}B", self.0),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByteSizeVisitor)
    }
}

struct ByteSizeVisitor;

impl Visitor<'_> for ByteSizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(EXPECTED)
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
        Ok(ByteSize(bytes))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
        u64::try_from(bytes)
            .map(ByteSize)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
        text.parse()
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimal_units_differ_from_binary_ones() {
        let sizes = ["10MB", "10MiB", "10 mb", "7", "7B", "256KB", "1KiB"];
        let bytes = sizes.map(|text| text.parse::<ByteSize>().unwrap().bytes());
        assert_eq!(
            bytes,
            [10_000_000, 10_485_760, 10_000_000, 7, 7, 256_000, 1024]
        );
    }

    #[test]
    fn malformed_size_is_refused() {
        for text in [
            "",
            "MB",
            "10 parsecs",
            "-1",
            "1.5MB",
            "10M",
            "99999999999TB",
            "18446744073709551616",
        ] {
            assert_eq!(text.parse::<ByteSize>(), Err(ParseByteSizeError), "{text}");
        }
    }

    #[test]
    fn size_is_written_in_the_largest_unit_that_divides_it() {
        let sizes =
            [0, 7, 1000, 1024, 200_000_000, 1 << 30, 1500].map(|bytes| ByteSize(bytes).to_string());
        assert_eq!(sizes, ["0B", "7B", "1kB", "1KiB", "200MB", "1GiB", "1500B"]);
    }

    proptest! {
        #[test]
        fn written_size_reads_back(bytes: u64) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }

        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = text.parse::<ByteSize>();
        }
    }
}
