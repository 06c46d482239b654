//! `Edit` and `Write` of older versions of Claude Code: numbered lines around the change.
//!
//! The lines alone don't prove that their numbers are right. Next to the result, the transcript has
//! the written text, or the edit with the file before it. The lines must be those of that text.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Excerpt, Piece, line_range, numbered,
    numbered::{Numbered, Style},
};

const HEADING: &str = "Here's the result of running `cat -n` on a snippet of the edited file:\n";

/// Returns the pieces of the result `text`. `record` is the transcript's object about the edit.
#[must_use]
pub fn pieces(text: &str, record: &Value) -> Option<Vec<Piece>> {
    let (words, snippet) = text.split_at(text.find(HEADING)? + HEADING.len());
    let (style, first) = Style::from_first_line(snippet)?;
    let read = numbered::read(snippet, style, first);
    let path = record.get("filePath")?.as_str()?;
    let excerpt = prove_excerpt(path, &read, &file_after_edit(record)?)?;
    let shown = [Piece::Text(words.to_owned()), Piece::Excerpt(excerpt)];
    Some(shown.into_iter().chain(Piece::text(read.rest)).collect())
}

/// Makes an excerpt if the lines are those of the edited file.
fn prove_excerpt(path: &str, read: &Numbered<'_>, edited: &str) -> Option<Excerpt> {
    let mut of_file = edited.split('\n').skip(read.first.checked_sub(1)?);
    if !read.lines.iter().all(|line| of_file.next() == Some(line)) {
        return None;
    }
    let has_end = of_file.next().is_none();
    match read.first == 1 && has_end {
        true => Some(Excerpt::whole_file(path, edited)),
        false => line_range(path, read.first, &read.lines),
    }
}

/// Returns the content of the file after the edit.
fn file_after_edit(record: &Value) -> Option<Cow<'_, str>> {
    let string = |name| record.get(name).and_then(Value::as_str);
    if let Some(content) = string("content") {
        return Some(content.into());
    }
    let (before, old, new) = (
        string("originalFile")?,
        string("oldString")?,
        string("newString")?,
    );
    let is_everywhere = record
        .get("replaceAll")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let most = if is_everywhere { usize::MAX } else { 1 };
    before
        .contains(old)
        .then(|| before.replacen(old, new, most).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outline(snippet: &str, record: Value) -> Option<Vec<String>> {
        let mut record = record;
        record["filePath"] = json!("/p/a.rs");
        let text = format!("The file was changed. {HEADING}{snippet}");
        let line = |piece: Piece| match piece {
            Piece::Text(text) => format!("text {text:?}"),
            Piece::Excerpt(Excerpt { lines, text, .. }) => format!("{lines:?} {text:?}"),
        };
        let pieces = pieces(&text, &record)?;
        assert_eq!(
            pieces[0],
            Piece::Text(format!("The file was changed. {HEADING}"))
        );
        Some(pieces.into_iter().skip(1).map(line).collect())
    }

    fn edit(before: &str, old: &str, new: &str) -> Value {
        json!({"originalFile": before, "oldString": old, "newString": new})
    }

    #[test]
    fn lines_of_the_edited_file_are_read() {
        let snippet = "     2→two\n     3→THREE\n     4→four";
        assert_eq!(
            outline(
                snippet,
                edit("one\ntwo\nthree\nfour\nfive\n", "three", "THREE")
            )
            .unwrap(),
            ["Some(2..=4) \"two\\nTHREE\\nfour\\n\""]
        );
        let mut everywhere = edit("x\nx\nx\ny\n", "x", "z");
        everywhere["replaceAll"] = json!(true);
        assert_eq!(
            outline("     2→z\n     3→z", everywhere).unwrap(),
            ["Some(2..=3) \"z\\nz\\n\""]
        );
    }

    #[test]
    fn written_file_is_whole_if_all_of_it_is_shown() {
        let record = json!({"content": "a\nb\n"});
        assert_eq!(
            outline("     1→a\n     2→b\n     3→", record.clone()).unwrap(),
            ["None \"a\\nb\\n\""]
        );
        assert_eq!(
            outline("     1→a\n\n<system-reminder>\nx", record).unwrap(),
            ["Some(1..=1) \"a\\n\"", "text \"\\n<system-reminder>\\nx\""]
        );
    }

    #[test]
    fn unproved_output_stays_text() {
        let record = || edit("one\ntwo\nthree\n", "two", "TWO");
        assert_eq!(
            outline("     1→TWO\n     2→three", record()),
            None,
            "numbers that are one too low"
        );
        assert_eq!(outline("     2→two", record()), None, "before the edit");
        assert_eq!(
            outline("     2→TWO", edit("one\n", "two", "TWO")),
            None,
            "an edit of another file"
        );
        assert_eq!(outline("     2→TWO", json!({})), None, "no record");
        assert_eq!(outline("words", record()), None);
    }
}
