//! `fs_read_file` of older versions of jp: a code fence. A range of lines has a line before and
//! after it:
//!
//! ```text
//! ... (starting from line #110) ...
//! ... (truncated after line #135) ...
//! ```
//!
//! The last line states a wrong end. The tool first removed the lines before `start_line`, then cut
//! the rest, with the line at its start, after `end_line` lines. So "lines 110 to 135" are in fact
//! lines 110 to 243. The tool wrote the last line even if the file ended before it.
//!
//! Still older versions left out all newlines of a range. Such output is a single line, and it
//! stays text.

use serde_json::Value;

use super::{Excerpt, line_range, numbered::line_number};

/// Returns the excerpt that the result `text` of a call with these arguments shows.
#[must_use]
pub fn excerpt(arguments: &Value, text: &str) -> Option<Excerpt> {
    let path = arguments.get("path")?.as_str()?;
    let (start, end) = (
        number(arguments, "start_line")?,
        number(arguments, "end_line")?,
    );
    let body = body(text)?;
    if start.is_none() && end.is_none() {
        return Some(Excerpt::whole_file(path, body));
    }
    read_part(path, body, start, end)
}

/// Reads an argument that may be missing; returns `None` if it isn't a line number.
#[expect(
    clippy::option_option,
    reason = "missing is one thing and unusable another"
)]
fn number(arguments: &Value, name: &str) -> Option<Option<usize>> {
    match arguments.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(value) => line_number(&value.as_u64()?.to_string())
            .filter(|number| *number > 0)
            .map(Some),
    }
}

/// Returns the text in the fence.
fn body(text: &str) -> Option<&str> {
    let (language, fenced) = text.strip_prefix("```")?.split_once('\n')?;
    let is_language = !language.contains(['`', ' ']);
    // The tool adds a newline to the file's own.
    fenced.strip_suffix("\n```\n").filter(|_| is_language)
}

fn read_part(path: &str, body: &str, start: Option<usize>, end: Option<usize>) -> Option<Excerpt> {
    let mut parts: Vec<&str> = body.split('\n').collect();
    if let Some(end) = end
        && parts.pop()? != format!("... (truncated after line #{end}) ...")
    {
        return None;
    }
    if let Some(start) = start {
        let is_start = parts.first()? == &format!("... (starting from line #{start}) ...");
        is_start.then(|| parts.remove(0))?;
    }
    // The tool counted the line at the start, too.
    let most = end.map(|end| end - usize::from(start.is_some()));
    let has_lost_its_newlines = parts.len() == 1 && most != Some(1);
    if most.is_some_and(|most| parts.len() > most) || has_lost_its_newlines {
        return None;
    }
    let (first, ends_with_the_file) = (start.unwrap_or(1), most != Some(parts.len()));
    if first == 1 && ends_with_the_file {
        return Some(Excerpt::whole_file(path, parts.join("\n")));
    }
    let mut excerpt = line_range(path, first, &parts)?;
    // The file's last line has no newline if the split left no empty part after it.
    if ends_with_the_file && parts.last() != Some(&"") {
        excerpt.text.pop();
    }
    Some(excerpt)
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use serde_json::json;

    use super::*;

    type Found<'a> = Option<(Option<RangeInclusive<usize>>, &'a str)>;

    fn check(arguments: Value, text: &str, expected: Found<'_>) {
        let mut arguments = arguments;
        arguments["path"] = json!("src/a.rs");
        let excerpt = excerpt(&arguments, text);
        let found = excerpt
            .as_ref()
            .map(|excerpt| (excerpt.lines.clone(), &*excerpt.text));
        assert_eq!(found, expected, "{arguments} {text:?}");
    }

    #[test]
    fn whole_file_is_the_text_in_the_fence() {
        check(json!({}), "```rs\na\nb\n\n```\n", Some((None, "a\nb\n")));
        check(
            json!({"start_line": null}),
            "```rs\na\nb\n```\n",
            Some((None, "a\nb")),
        );
        check(json!({}), "```\n\n```\n", Some((None, "")));
        check(
            json!({}),
            "```rs\na\r\nb\r\n\n```\n",
            Some((None, "a\r\nb\r\n")),
        );
        check(
            json!({}),
            "```md\n```sh\nx\n```\n\n```\n",
            Some((None, "```sh\nx\n```\n")),
        );
        let looks_like_a_part = "```\n... (starting from line #2) ...\n\n```\n";
        check(
            json!({}),
            looks_like_a_part,
            Some((None, "... (starting from line #2) ...\n")),
        );
    }

    #[test]
    fn range_ends_where_the_tool_cut_it() {
        let text = "```rs\n... (starting from line #3) ...\nc\nd\ne\n... (truncated after line #4) ...\n```\n";
        check(
            json!({"start_line": 3, "end_line": 4}),
            text,
            Some((Some(3..=5), "c\nd\ne\n")),
        );
        let text = "```rs\na\nb\n... (truncated after line #2) ...\n```\n";
        check(json!({"end_line": 2}), text, Some((Some(1..=2), "a\nb\n")));
        let text = "```rs\na\n... (truncated after line #1) ...\n```\n";
        check(json!({"end_line": 1}), text, Some((Some(1..=1), "a\n")));
    }

    #[test]
    fn empty_line_at_a_cut_is_left_out() {
        let text = "```rs\na\n\n... (truncated after line #2) ...\n```\n";
        check(json!({"end_line": 2}), text, Some((Some(1..=1), "a\n")));
    }

    #[test]
    fn range_that_reaches_the_end_ends_like_the_file() {
        let text = "```rs\n... (starting from line #3) ...\nc\nd\n\n... (truncated after line #9) ...\n```\n";
        check(
            json!({"start_line": 3, "end_line": 9}),
            text,
            Some((Some(3..=4), "c\nd\n")),
        );
        let text = "```rs\n... (starting from line #3) ...\nc\nd\n... (truncated after line #9) ...\n```\n";
        check(
            json!({"start_line": 3, "end_line": 9}),
            text,
            Some((Some(3..=4), "c\nd")),
        );
        let text = "```rs\n... (starting from line #3) ...\nc\nd\n\n```\n";
        check(
            json!({"start_line": 3}),
            text,
            Some((Some(3..=4), "c\nd\n")),
        );
    }

    #[test]
    fn range_of_all_lines_is_the_whole_file() {
        let text = "```rs\n... (starting from line #1) ...\na\nb\n\n... (truncated after line #9) ...\n```\n";
        check(
            json!({"start_line": 1, "end_line": 9}),
            text,
            Some((None, "a\nb\n")),
        );
        check(
            json!({"end_line": 9}),
            "```rs\na\nb\n... (truncated after line #9) ...\n```\n",
            Some((None, "a\nb")),
        );
    }

    #[test]
    fn unproved_output_stays_text() {
        let whole = "```rs\na\nb\n\n```\n";
        check(json!({"start_line": 2}), whole, None);
        check(json!({"end_line": 2}), whole, None);
        check(json!({"start_line": 0}), whole, None);
        check(json!({"start_line": "2"}), whole, None);
        check(json!({}), "File not found.", None);
        check(json!({}), "```rs\na\n", None);
        check(json!({}), "```rs (a.rs)\na\n```\n", None);
        let too_long = "```rs\na\nb\nc\n... (truncated after line #2) ...\n```\n";
        check(json!({"end_line": 2}), too_long, None);
        let glued =
            "```rs\n... (starting from line #2) ...bcd\n... (truncated after line #4) ...\n```\n";
        check(json!({"start_line": 2, "end_line": 4}), glued, None);
        check(
            json!({"end_line": 4}),
            "```rs\nabcd\n... (truncated after line #4) ...\n```\n",
            None,
        );
        check(
            json!({"start_line": 2}),
            "```rs\n... (starting from line #2) ...\nbcd\n```\n",
            None,
        );
        assert_eq!(excerpt(&json!({}), whole), None);
    }
}
