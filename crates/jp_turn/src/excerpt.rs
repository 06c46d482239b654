//! Excerpts of texts of any length, for messages. `…` marks omitted text.

/// Returns the first `characters` of a text, or all of it if it has no more.
pub(crate) fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns a text without its middle, at most `characters` long: two thirds of that from the
/// beginning, the rest from the end.
pub(crate) fn ends(text: &str, characters: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= characters {
        return text.to_owned();
    }
    let (head, tail) = (
        &all[..characters * 2 / 3],
        &all[all.len() - characters / 3..],
    );
    head.iter().chain(&['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_text_is_marked() {
        assert_eq!(
            (beginning("éab", 3), beginning("éabc", 3)),
            ("éab".to_owned(), "éab…".to_owned())
        );
        assert_eq!(
            (beginning("", 0), beginning("é", 0)),
            (String::new(), "…".to_owned())
        );
        assert_eq!(
            (ends("éabcdef€", 8), ends("éabcdefg€", 8)),
            ("éabcdef€".into(), "éabcd…g€".into())
        );
    }
}
