//! What Claude Code's `Edit` and `Write` showed of the edited file in older versions: numbered lines around the change.
//!
//! The lines alone prove nothing, as nobody can see whether the numbers are right. The transcript has the edit and the
//! file before it beside the result, or all that was written: the lines must be those of that text.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Excerpt, Piece, numbered,
    numbered::{Numbered, Style},
    range,
};

const HEADING: &str = "Here's the result of running `cat -n` on a snippet of the edited file:\n";

/// Returns what the result `text` shows; `record` is what the transcript says of the edit.
#[must_use]
pub fn pieces(text: &str, record: &Value) -> Option<Vec<Piece>> {
    let (words, snippet) = text.split_at(text.find(HEADING)? + HEADING.len());
    let (style, first) = Style::of_columns(snippet)?;
    let read = numbered::read(snippet, style, first);
    let excerpt = excerpt(record.get("filePath")?.as_str()?, &read, &edited(record)?)?;
    let shown = [Piece::Text(words.to_owned()), Piece::Excerpt(excerpt)];
    Some(shown.into_iter().chain(Piece::text(read.rest)).collect())
}

/// Makes an excerpt of lines that are those of the edited file.
fn excerpt(path: &str, read: &Numbered<'_>, edited: &str) -> Option<Excerpt> {
    let mut of_file = edited.split('\n').skip(read.first.checked_sub(1)?);
    if !read.lines.iter().all(|line| of_file.next() == Some(line)) {
        return None;
    }
    let has_end = of_file.next().is_none();
    match read.first == 1 && has_end {
        true => Some(Excerpt {
            path: path.to_owned(),
            lines: None,
            text: edited.to_owned(),
        }),
        false => range(path, read.first, &read.lines),
    }
}

/// Returns the file after the edit.
fn edited(record: &Value) -> Option<Cow<'_, str>> {
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
    fn file_that_was_written_and_is_shown_to_its_end_is_whole() {
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
    fn what_can_not_be_proved_stays_text() {
        let record = || edit("one\ntwo\nthree\n", "two", "TWO");
        assert_eq!(
            outline("     1→TWO\n     2→three", record()),
            None,
            "numbers that are one too low"
        );
        assert_eq!(outline("     2→two", record()), None, "as it was before");
        assert_eq!(
            outline("     2→TWO", edit("one\n", "two", "TWO")),
            None,
            "an edit of another file"
        );
        assert_eq!(outline("     2→TWO", json!({})), None, "no record");
        assert_eq!(outline("words", record()), None);
    }
}
