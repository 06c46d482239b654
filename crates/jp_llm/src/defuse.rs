//! Texts in which no tag ends the resource that they stand in: `</resource` becomes `<\/resource`.

use std::io;

use crate::json::JsonText;

/// Bytes that a text in JSON gains for each tag that is defused in it: a backslash, escaped.
pub(crate) const DEFUSED_BY: u64 = 2;

/// Writes a text in which no tag closes a resource.
pub(crate) fn write_defused(out: &mut JsonText<'_>, text: &str) -> io::Result<()> {
    let mut start = 0;
    for index in closings(text) {
        // The backslash goes between `<` and `/`.
        out.push(&text[start..=index])?;
        out.push("\\")?;
        start = index + 1;
    }
    out.push(&text[start..])
}

/// Finds the tags that would close a resource, in any case: models read tags as people do.
pub(crate) fn closings(text: &str) -> impl Iterator<Item = usize> {
    let text = text.as_bytes();
    memchr::memmem::find_iter(text, b"</").filter(move |index| starts_with_name(&text[index + 2..]))
}

/// Returns whether the name of a tag starts with `resource`.
fn starts_with_name(text: &[u8]) -> bool {
    const NAME: &[u8] = b"resource";
    text.get(..NAME.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}
