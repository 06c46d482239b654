//! Writes sizes and counts for people.

pub use jp_conversation::transcript::size as bytes;

/// Writes a count with its noun: `1 file`, `1,000 files`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(number))
}

/// Writes a number with separators: `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!(
            [1_u64, 2, 1000].map(|number| count(number, "file")),
            ["1 file", "2 files", "1,000 files"]
        );
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
