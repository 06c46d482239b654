//! Suggests known names for a misspelled one.

/// Longest edit distance of a suggestion: further away, most short names would do.
const MAX_EDITS: usize = 2;

/// Returns the known name that is closest to a misspelled one, if any is close.
pub fn find_similar<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let distances = known
        .iter()
        .map(|known| (strsim::levenshtein(name, known), *known));
    // Ties go to the first name in the alphabet.
    distances
        .min()
        .filter(|(edits, _)| *edits <= MAX_EDITS)
        .map(|(_, known)| known)
}

/// Returns the hints for an unknown name: the closest known one, if any is close, and all of them.
///
/// `subject` says what they are, in the plural, such as "tools".
pub(crate) fn hints_for_unknown(name: &str, known: &[&str], subject: &str) -> Vec<String> {
    let closest = find_similar(name, known).map(|known| format!("did you mean `{known}`?"));
    let all = format!("the {subject} are: {}.", known.join(", "));
    closest.into_iter().chain([all]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_name_is_suggested() {
        assert_eq!(find_similar("nots", &["docs", "notes"]), Some("notes"));
        assert_eq!(
            find_similar("red_file", &["read_file", "read_more"]),
            Some("read_file")
        );
        assert_eq!(find_similar("x", &["docs", "notes"]), None);
        assert_eq!(find_similar("x", &[]), None);
    }
}
