use serde_json::Value;

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

/// Checks that a text starts with words, and shows the text if it doesn't.
#[track_caller]
pub fn assert_starts(text: impl AsRef<str>, words: impl AsRef<str>) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(text.starts_with(words), "{words:?} doesn't start {text}");
}

/// Checks that a text ends with words, and shows the text if it doesn't.
#[track_caller]
pub fn assert_ends(text: impl AsRef<str>, words: impl AsRef<str>) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(text.ends_with(words), "{words:?} doesn't end {text}");
}

/// Checks that a JSON object has these members, among others, and shows the object if it doesn't.
///
/// ```
/// let row = serde_json::json!({"name": "a.txt", "size": 3, "turn": null});
/// testing::assert_fields!(row, {"name": "a.txt", "turn": null});
/// ```
#[macro_export]
macro_rules! assert_fields {
    ($object:expr, {$($members:tt)*}) => {
        $crate::check_fields(&$object, &$crate::serde_json::json!({$($members)*}))
    };
}

/// Does what [`assert_fields`] does.
#[doc(hidden)]
#[track_caller]
pub fn check_fields(object: &Value, members: &Value) {
    for (key, value) in members.as_object().into_iter().flatten() {
        assert_eq!(&object[key], value, "{key} of {object}");
    }
}

/// Returns the members of a JSON array.
#[track_caller]
pub fn items(array: &Value) -> &[Value] {
    let items = array.as_array();
    items.unwrap_or_else(|| panic!("not an array: {array}"))
}

/// Returns the member `key` of each object.
pub fn column(objects: &[Value], key: &str) -> Vec<Value> {
    objects.iter().map(|object| object[key].clone()).collect()
}

/// Returns the member `key` of each object, all of which have a text there.
#[track_caller]
pub fn texts<'v>(objects: &'v [Value], key: &str) -> Vec<&'v str> {
    let text = |object: &'v Value| match object[key].as_str() {
        Some(text) => text,
        None => panic!("{key} is no text: {object}"),
    };
    objects.iter().map(text).collect()
}
