//! `Read` of Claude Code: numbered lines, maybe followed by a reminder to the model.
//!
//! What stands after the file's last newline is numbered like a line. Without a limit at most 2000 lines come, and very
//! long lines are cut; where the transcript has the file's content beside the result, that proves what was shown.

use serde_json::Value;

use super::{
    Excerpt, Piece, numbered,
    numbered::{Numbered, Style},
    range,
};

const MOST_LINES: usize = 2000;
const CUT_LINE_CHARS: usize = 2000;
const REMINDER: &str = "<system-reminder>";

/// Returns what the result `text` of a call with this input shows; `record` is what the transcript says of the file.
#[must_use]
pub fn pieces(input: &Value, text: &str, record: Option<&Value>) -> Option<Vec<Piece>> {
    let path = input.get("file_path")?.as_str()?;
    let (style, first) = Style::of_columns(text)?;
    let read = numbered::read(text, style, first);
    let said_first = record.and_then(|record| number(record, "startLine"));
    if first != said_first.unwrap_or_else(|| wanted_first(input)) || !is_reminder(read.rest) {
        return None;
    }
    let excerpt = match record
        .and_then(|record| record.get("content"))
        .and_then(Value::as_str)
    {
        Some(content) => proved(path, &read, content, record?),
        None => unproved(path, &read, input),
    }?;
    Some(
        [Piece::Excerpt(excerpt)]
            .into_iter()
            .chain(Piece::text(read.rest))
            .collect(),
    )
}

fn wanted_first(input: &Value) -> usize {
    let offset = input
        .get("offset")
        .and_then(Value::as_u64)
        .and_then(|offset| usize::try_from(offset).ok());
    offset.unwrap_or(1).max(1)
}

fn is_reminder(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with(REMINDER)
}

/// Returns the file that a person attached; `record` is what the transcript says of it.
#[must_use]
pub fn attached(record: &Value) -> Option<Excerpt> {
    let (path, content) = (
        record.get("filePath")?.as_str()?,
        record.get("content")?.as_str()?,
    );
    if is_whole(record) {
        return Some(Excerpt {
            path: path.to_owned(),
            lines: None,
            text: content.to_owned(),
        });
    }
    let lines: Vec<&str> = content.split('\n').collect();
    range(path, number(record, "startLine")?, &lines)
}

/// Makes an excerpt of lines that are those of the record.
fn proved(path: &str, read: &Numbered<'_>, content: &str, record: &Value) -> Option<Excerpt> {
    let shown = read.lines.join("\n");
    if content != shown && content.strip_suffix('\n') != Some(&*shown) {
        return None;
    }
    match read.first == 1 && is_whole(record) {
        true => Some(Excerpt {
            path: path.to_owned(),
            lines: None,
            text: content.to_owned(),
        }),
        false => range(path, read.first, &read.lines),
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

fn unproved(path: &str, read: &Numbered<'_>, input: &Value) -> Option<Excerpt> {
    if read
        .lines
        .iter()
        .any(|line| line.chars().count() >= CUT_LINE_CHARS)
    {
        return None;
    }
    let limit = input
        .get("limit")
        .and_then(Value::as_u64)
        .and_then(|limit| usize::try_from(limit).ok());
    let is_whole = read.first == 1 && read.lines.len() < limit.unwrap_or(MOST_LINES);
    match is_whole {
        true => Some(Excerpt {
            path: path.to_owned(),
            lines: None,
            text: read.lines.join("\n"),
        }),
        false => range(path, read.first, &read.lines),
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
    fn part_has_the_lines_of_its_numbers() {
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
    fn record_of_the_file_proves_what_was_shown() {
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
            "an offset that is no number"
        );
        let long = "x".repeat(3000);
        let text = format!("     1→{long}");
        assert_eq!(outline(json!({}), &text, None), None);
        assert!(outline(json!({}), &text, record(&long, 1, 1, 1)).is_some());
    }

    #[test]
    fn attached_file_is_what_the_record_says() {
        let attached = |start: usize, shown: usize| {
            let file = json!({"filePath": "/p/a", "content": "a\nb", "startLine": start, "numLines": shown, "totalLines": 9});
            let Excerpt { path, lines, text } = super::attached(&file).unwrap();
            format!("{path} {lines:?} {text:?}")
        };
        assert_eq!(attached(1, 9), "/p/a None \"a\\nb\"");
        assert_eq!(attached(1, 2), "/p/a Some(1..=2) \"a\\nb\\n\"");
        assert_eq!(attached(4, 2), "/p/a Some(4..=5) \"a\\nb\\n\"");
        assert_eq!(
            super::attached(&json!({"filePath": "/p/a", "content": "a"})),
            None,
            "of no known lines"
        );
    }

    #[test]
    fn what_does_not_fit_stays_text() {
        assert_eq!(
            outline(json!({}), "     1→a\n     3→b", None),
            None,
            "a gap"
        );
        assert_eq!(
            outline(json!({"offset": 2}), "     1→a", None),
            None,
            "another line than was asked for"
        );
        assert_eq!(outline(json!({}), "     1→a\nand more", None), None);
        assert_eq!(outline(json!({}), "File does not exist.", None), None);
        assert_eq!(outline(json!({}), "", None), None);
        assert_eq!(pieces(&json!({}), "     1→a", None), None);
    }
}
