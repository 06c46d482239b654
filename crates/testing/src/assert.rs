/// Checks that a text contains words, and shows the text if it doesn't.
#[track_caller]
pub fn assert_contains(text: impl AsRef<str>, words: impl AsRef<str>) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(text.contains(words), "{words:?} is not in {text}");
}

/// Checks that a text does not contain words, and shows the text if it does.
#[track_caller]
pub fn assert_lacks(text: impl AsRef<str>, words: impl AsRef<str>) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(!text.contains(words), "{words:?} is in {text}");
}

/// Checks how often a text contains words, and shows the text if it is another number.
#[track_caller]
pub fn assert_count(text: impl AsRef<str>, words: impl AsRef<str>, count: usize) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert_eq!(text.matches(words).count(), count, "{words:?} in {text}");
}
