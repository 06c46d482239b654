//! `Read` of Claude Code: numbered lines, possibly followed by a reminder to the model.
//!
//! The tool also numbers the empty text after the file's last newline. Without a limit it returns at
//! most 2000 lines, and it cuts very long lines. If the transcript has the file's content next to
//! the result, the content proves which lines the result shows.

use serde_json::Value;

use super::{
    Excerpt, Piece, line_range, numbered,
    numbered::{Numbered, Style},
};

/// The tool's default limit of lines. A shorter result shows the whole file.
const MOST_LINES: usize = 2000;
/// The length from which the tool cuts a line.
const CUT_LINE_CHARS: usize = 2000;
const REMINDER: &str = "<system-reminder>";

/// Returns the pieces of the result `text` of a call with this input.
///
/// `record` is the transcript's object about the file.
#[must_use]
pub fn pieces(input: &Value, text: &str, record: Option<&Value>) -> Option<Vec<Piece>> {
    let path = input.get("file_path")?.as_str()?;
    let (style, first) = Style::from_first_line(text)?;
    let read = numbered::read(text, style, first);
    let expected_first = record
        .and_then(|record| number(record, "startLine"))
        // A call with the offset 0 returns the file from line 1.
        .unwrap_or_else(|| number(input, "offset").unwrap_or(1).max(1));
    if first != expected_first || !is_reminder(read.rest) {
        return None;
    }
    let content = record
        .and_then(|record| record.get("content"))
        .and_then(Value::as_str);
    let excerpt = match content {
        Some(content) => prove_by_record(path, &read, content, record?),
        None => prove_by_call(path, &read, input),
    }?;
    let pieces = [Piece::Excerpt(excerpt)].into_iter();
    Some(pieces.chain(Piece::text(read.rest)).collect())
}

fn is_reminder(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with(REMINDER)
}

/// Returns the file that the user attached. `record` is the transcript's object about it.
#[must_use]
pub fn attached_file(record: &Value) -> Option<Excerpt> {
    let (path, content) = (
        record.get("filePath")?.as_str()?,
        record.get("content")?.as_str()?,
    );
    if is_whole(record) {
        return Some(Excerpt::whole_file(path, content));
    }
    let lines: Vec<&str> = content.split('\n').collect();
    line_range(path, number(record, "startLine")?, &lines)
}

/// Makes an excerpt if the lines are those of the record.
fn prove_by_record(
    path: &str,
    read: &Numbered<'_>,
    content: &str,
    record: &Value,
) -> Option<Excerpt> {
    let shown = read.lines.join("\n");
    if content != shown && content.strip_suffix('\n') != Some(&*shown) {
        return None;
    }
    match read.first == 1 && is_whole(record) {
        true => Some(Excerpt::whole_file(path, content)),
        false => line_range(path, read.first, &read.lines),
    }
}

fn is_whole(record: &Value) -> bool {
    let lines = number(record, "numLines").zip(number(record, "totalLines"));
    number(record, "startLine") == Some(1) && lines.is_some_and(|(shown, all)| shown >= all)
}

fn number(record: &Value, name: &str) -> Option<usize> {
    record
        .get(name)
        .and_then(Value::as_u64)
        .and_then(|number| usize::try_from(number).ok())
}

/// Makes an excerpt if no line was cut. It is the whole file if the tool returned fewer lines than
/// the call allowed.
fn prove_by_call(path: &str, read: &Numbered<'_>, input: &Value) -> Option<Excerpt> {
    if read
        .lines
        .iter()
        .any(|line| line.chars().count() >= CUT_LINE_CHARS)
    {
        return None;
    }
    let limit = number(input, "limit").unwrap_or(MOST_LINES);
    match read.first == 1 && read.lines.len() < limit {
        true => Some(Excerpt::whole_file(path, read.lines.join("\n"))),
        false => line_range(path, read.first, &read.lines),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outline(input: Value, text: &str, record: Option<Value>) -> Option<Vec<String>> {
        let mut input = input;
        input["file_path"] = json!("/p/a.rs");
        let line = |piece: Piece| match piece {
            Piece::Text(text) => format!("text {text:?}"),
            Piece::Excerpt(Excerpt { lines, text, .. }) => format!("{lines:?} {text:?}"),
        };
        Some(
            pieces(&input, text, record.as_ref())?
                .into_iter()
                .map(line)
                .collect(),
        )
    }

    #[test]
    fn whole_file_is_read_in_both_styles() {
        assert_eq!(
            outline(json!({}), "     1→a\n     2→\tb\n     3→", None).unwrap(),
            ["None \"a\\n\\tb\\n\""]
        );
        assert_eq!(
            outline(json!({}), "1\ta\n2\tb", None).unwrap(),
            ["None \"a\\nb\""]
        );
        assert_eq!(
            outline(json!({"limit": 3}), "1\ta\n2\tb", None).unwrap(),
            ["None \"a\\nb\""]
        );
    }

    #[test]
    fn range_has_the_lines_of_its_numbers() {
        let part = outline(json!({"offset": 9, "limit": 2}), "     9→a\n    10→b", None);
        assert_eq!(part.unwrap(), ["Some(9..=10) \"a\\nb\\n\""]);
        assert_eq!(
            outline(json!({"limit": 2}), "1\ta\n2\tb", None).unwrap(),
            ["Some(1..=2) \"a\\nb\\n\""]
        );
        let long: String = (1..=2000).map(|n| format!("{n}\tx\n")).collect();
        assert!(outline(json!({}), &long, None).unwrap()[0].starts_with("Some(1..=2000)"));
    }

    #[test]
    fn reminder_stays_text() {
        let text = "     1→a\n     2→b\n\n<system-reminder>\nBe careful.\n</system-reminder>\n";
        assert_eq!(
            outline(json!({}), text, None).unwrap(),
            [
                "None \"a\\nb\"",
                "text \"\\n<system-reminder>\\nBe careful.\\n</system-reminder>\\n\""
            ]
        );
    }

    #[test]
    fn record_proves_the_lines() {
        let record = |content: &str, start: usize, shown: usize, all: usize| {
            Some(
                json!({"content": content, "startLine": start, "numLines": shown, "totalLines": all}),
            )
        };
        let text = "     1→a\n     2→b";
        assert_eq!(
            outline(json!({}), text, record("a\nb\n", 1, 2, 2)).unwrap(),
            ["None \"a\\nb\\n\""]
        );
        assert_eq!(
            outline(json!({}), text, record("a\nb", 1, 2, 9)).unwrap(),
            ["Some(1..=2) \"a\\nb\\n\""]
        );
        assert_eq!(outline(json!({}), text, record("a\nbcd", 1, 2, 2)), None);
        assert_eq!(
            outline(json!({}), text, record("a\nb", 2, 2, 3)),
            None,
            "another first line"
        );
        let part = outline(json!({"offset": "8"}), "8→a", record("a", 8, 1, 9));
        assert_eq!(
            part.unwrap(),
            ["Some(8..=8) \"a\\n\""],
            "an offset that isn't a number"
        );
        let long = "x".repeat(3000);
        let text = format!("     1→{long}");
        assert_eq!(outline(json!({}), &text, None), None);
        assert!(outline(json!({}), &text, record(&long, 1, 1, 1)).is_some());
    }

    #[test]
    fn attached_file_has_the_lines_of_the_record() {
        let attached = |start: usize, shown: usize| {
            let file = json!({"filePath": "/p/a", "content": "a\nb", "startLine": start, "numLines": shown, "totalLines": 9});
            let Excerpt { path, lines, text } = attached_file(&file).unwrap();
            format!("{path} {lines:?} {text:?}")
        };
        assert_eq!(attached(1, 9), "/p/a None \"a\\nb\"");
        assert_eq!(attached(1, 2), "/p/a Some(1..=2) \"a\\nb\\n\"");
        assert_eq!(attached(4, 2), "/p/a Some(4..=5) \"a\\nb\\n\"");
        assert_eq!(
            attached_file(&json!({"filePath": "/p/a", "content": "a"})),
            None,
            "unknown lines"
        );
    }

    #[test]
    fn unproved_output_stays_text() {
        assert_eq!(
            outline(json!({}), "     1→a\n     3→b", None),
            None,
            "a gap"
        );
        assert_eq!(
            outline(json!({"offset": 2}), "     1→a", None),
            None,
            "another first line than in the call"
        );
        assert_eq!(outline(json!({}), "     1→a\nand more", None), None);
        assert_eq!(outline(json!({}), "File does not exist.", None), None);
        assert_eq!(outline(json!({}), "", None), None);
        assert_eq!(pieces(&json!({}), "     1→a", None), None);
    }
}
