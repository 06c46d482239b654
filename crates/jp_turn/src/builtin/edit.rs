//! Applies an edit to a text. Pure.

use diffy::Patch;

/// The maximum number of lines that an error names.
const NAMED_PLACES: usize = 5;

/// The maximum number of occurrences that are counted: counting `aa…a` in a long line of `a` takes
/// quadratic time.
const COUNTED_PLACES: usize = 100;

/// A change of a text.
pub(super) enum Edit {
    /// Replaces a text that occurs once, or all its occurrences.
    Replacement { old: String, new: String, all: bool },
    /// Applies a unified diff.
    Patch(String),
}

/// Applies an edit to the content of the file at `path`. The error is for the model.
///
/// If all lines of a text end with `\r\n`, they still do afterwards, however the edit is written.
pub(super) fn apply(edit: &Edit, content: &str, path: &str) -> Result<String, String> {
    let new = match edit {
        Edit::Replacement { old, new, all } => replace(content, old, new, *all, path),
        Edit::Patch(patch) => apply_patch(content, patch, path),
    }?;
    match new == content {
        true => Err(format!("The edit would change nothing in {path}.")),
        false => Ok(new),
    }
}

/// Returns whether each line ends with `\r\n`.
pub(super) fn is_crlf(text: &str) -> bool {
    let ends = text.matches('\n').count();
    ends > 0 && ends == text.matches("\r\n").count()
}

fn to_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn to_crlf(text: &str) -> String {
    to_lf(text).replace('\n', "\r\n")
}

fn replace(content: &str, old: &str, new: &str, all: bool, path: &str) -> Result<String, String> {
    // In a text with mixed line ends, `old` may occur unchanged, or only with `\r\n`.
    let is_crlf = is_crlf(content) || (!content.contains(old) && content.contains(&to_crlf(old)));
    let (old, new) = match is_crlf {
        true => (to_crlf(old), to_crlf(new)),
        false => (old.to_owned(), new.to_owned()),
    };
    if old.is_empty() {
        let reason = format!(
            "`old` is empty, but {path} is not. Set `old` to the text that `new` replaces."
        );
        return if content.is_empty() {
            Ok(new)
        } else {
            Err(reason)
        };
    }
    let places = find_places(content, &old);
    match places.len() {
        0 => Err(format!(
            "`old` does not occur in {path}. It must match the file exactly, including whitespace. Read the file again."
        )),
        1 => Ok(content.replacen(&old, &new, 1)),
        _ if all => Ok(content.replace(&old, &new)),
        count => {
            let times = match count > COUNTED_PLACES {
                true => format!("more than {COUNTED_PLACES}"),
                false => count.to_string(),
            };
            let mut lines = places;
            lines.dedup();
            let named: Vec<_> = lines
                .iter()
                .take(NAMED_PLACES)
                .map(usize::to_string)
                .collect();
            let more = if lines.len() > NAMED_PLACES {
                ", …"
            } else {
                ""
            };
            Err(format!(
                "`old` occurs {times} times in {path} (lines: {}{more}). Include more of the text around it, or set `replace_all`.",
                named.join(", ")
            ))
        }
    }
}

/// Returns the lines in which a text occurs, at most about [`COUNTED_PLACES`]. Overlapping
/// occurrences count, too.
fn find_places(content: &str, text: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let (mut start, mut line, mut counted) = (0, 1, 0);
    while let Some(found) = content[start..].find(text)
        && places.len() <= COUNTED_PLACES
    {
        let at = start + found;
        line += content[counted..at].matches('\n').count();
        counted = at;
        places.push(line);
        // Continue one character later, because occurrences may overlap.
        start = at + content[at..].chars().next().map_or(1, char::len_utf8);
    }
    places
}

fn apply_patch(content: &str, patch: &str, path: &str) -> Result<String, String> {
    let is_crlf = is_crlf(content);
    let (base, patch) = match is_crlf {
        true => (to_lf(content), recount_lines(&to_lf(patch))),
        false => (content.to_owned(), recount_lines(patch)),
    };
    let patch = Patch::from_str(&patch)
        .map_err(|error| format!("`patch` is not a valid unified diff: {error}."))?;
    check_names(&patch, path)?;
    if patch.hunks().is_empty() {
        return Err(
            "`patch` has no hunks. Each hunk starts with a line like `@@ -1,3 +1,4 @@`.".to_owned(),
        );
    }
    let new = diffy::apply(&base, &patch)
        .or_else(|error| apply_without_final_newline(&base, &patch).ok_or(error));
    let new = new.map_err(|error| {
        format!("The patch does not apply to {path}: {error}. Its context lines must match the file exactly. Read the file again.")
    })?;
    Ok(if is_crlf { to_crlf(&new) } else { new })
}

/// Corrects the line counts in the headers of hunks. Models often count wrong, but their lines are
/// right.
fn recount_lines(patch: &str) -> String {
    let lines: Vec<_> = patch.trim_end_matches('\n').split('\n').collect();
    let mut written = String::with_capacity(patch.len());
    for (index, line) in lines.iter().enumerate() {
        match parse_hunk_header(line) {
            Some((old, new, rest)) => {
                let body = lines[index + 1..]
                    .iter()
                    .take_while(|line| is_hunk_line(line));
                let (mut old_count, mut new_count) = (0, 0);
                for line in body {
                    old_count += usize::from(!line.starts_with(['+', '\\']));
                    new_count += usize::from(!line.starts_with(['-', '\\']));
                }
                written.push_str(&format!(
                    "@@ -{old},{old_count} +{new},{new_count} @@{rest}"
                ));
            }
            None => written.push_str(line),
        }
        written.push('\n');
    }
    written
}

/// Parses the header of a hunk: its starts in the old and the new text, and the rest of the line.
fn parse_hunk_header(line: &str) -> Option<(usize, usize, &str)> {
    let (ranges, rest) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    Some((parse_start(old)?, parse_start(new)?, rest))
}

/// Returns the first line of a range; its count may be missing.
fn parse_start(range: &str) -> Option<usize> {
    range.split(',').next()?.parse().ok()
}

fn is_hunk_line(line: &str) -> bool {
    line.is_empty() || line.starts_with([' ', '+', '-', '\\'])
}

/// Applies a patch without the marker `\ No newline at end of file` to a text without a final
/// newline.
fn apply_without_final_newline(base: &str, patch: &Patch<'_, str>) -> Option<String> {
    let ended = (!base.is_empty() && !base.ends_with('\n')).then(|| format!("{base}\n"))?;
    let mut new = diffy::apply(&ended, patch).ok()?;
    if new.ends_with('\n') {
        new.pop();
    }
    Some(new)
}

/// Refuses a patch whose header names another file.
fn check_names(patch: &Patch<'_, str>, path: &str) -> Result<(), String> {
    for name in [patch.original(), patch.modified()].into_iter().flatten() {
        let bare = name
            .strip_prefix("a/")
            .or(name.strip_prefix("b/"))
            .unwrap_or(name);
        if ![name, bare]
            .iter()
            .any(|name| *name == path || path.ends_with(&format!("/{name}")))
        {
            return Err(format!(
                "The patch is for {name:?}, but the call is for {path}. One call edits one file."
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replacement(old: &str, new: &str, all: bool) -> Edit {
        Edit::Replacement {
            old: old.to_owned(),
            new: new.to_owned(),
            all,
        }
    }

    fn replaced_in(content: &str, old: &str, new: &str) -> Result<String, String> {
        apply(&replacement(old, new, false), content, "a.rs")
    }

    fn patched_in(content: &str, patch: &str) -> Result<String, String> {
        apply(&Edit::Patch(patch.to_owned()), content, "src/a.rs")
    }

    #[test]
    fn old_occurs_exactly_once() {
        assert_eq!(replaced_in("a\nb\n", "b", "c").as_deref(), Ok("a\nc\n"));
        insta::assert_snapshot!(replaced_in("a\n", "x", "y").unwrap_err(), @"`old` does not occur in a.rs. It must match the file exactly, including whitespace. Read the file again.");
        insta::assert_snapshot!(replaced_in("x\na\nx x\n", "x", "y").unwrap_err(), @"`old` occurs 3 times in a.rs (lines: 1, 3). Include more of the text around it, or set `replace_all`.");
        insta::assert_snapshot!(replaced_in("aaa", "aa", "b").unwrap_err(), @"`old` occurs 2 times in a.rs (lines: 1). Include more of the text around it, or set `replace_all`.");
        insta::assert_snapshot!(replaced_in(&"x\n".repeat(9), "x", "y").unwrap_err(), @"`old` occurs 9 times in a.rs (lines: 1, 2, 3, 4, 5, …). Include more of the text around it, or set `replace_all`.");
        insta::assert_snapshot!(replaced_in("a", "a", "a").unwrap_err(), @"The edit would change nothing in a.rs.");
        insta::assert_snapshot!(replaced_in("a", "", "b").unwrap_err(), @"`old` is empty, but a.rs is not. Set `old` to the text that `new` replaces.");
        assert_eq!(replaced_in("", "", "b").as_deref(), Ok("b"));
        assert_eq!(
            apply(&replacement("x", "y", true), "x\nx", "a.rs").as_deref(),
            Ok("y\ny")
        );
    }

    #[test]
    fn line_ends_stay_the_same() {
        assert_eq!(
            replaced_in("a\r\nb\r\n", "a\nb", "a\nc\nd").as_deref(),
            Ok("a\r\nc\r\nd\r\n")
        );
        assert_eq!(
            replaced_in("a\r\nb", "b", "b\nc").as_deref(),
            Ok("a\r\nb\r\nc")
        );
        assert_eq!(
            replaced_in("a\nb\r\nc\r\n", "b\nc", "x\ny").as_deref(),
            Ok("a\nx\r\ny\r\n")
        );
        assert_eq!(
            replaced_in("a\nb\r\n", "a", "x\ny").as_deref(),
            Ok("x\ny\nb\r\n")
        );
        assert_eq!(
            patched_in("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n").as_deref(),
            Ok("a\r\nc\r\n")
        );
    }

    #[test]
    fn no_final_newline_is_invented() {
        let patch = "@@ -1,2 +1,2 @@\n-a\n+x\n b";
        assert_eq!(patched_in("a\nb", patch).as_deref(), Ok("x\nb"));
        assert_eq!(patched_in("a\nb\n", patch).as_deref(), Ok("x\nb\n"));
        let said = "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n";
        assert_eq!(patched_in("a\nb", said).as_deref(), Ok("a\nc"));
    }

    #[test]
    fn patch_that_does_not_fit_names_its_hunk() {
        let patch = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+x\n@@ -3 +3 @@\n-c\n+y\n";
        assert_eq!(patched_in("a\nb\nc\n", patch).as_deref(), Ok("x\nb\ny\n"));
        insta::assert_snapshot!(patched_in("a\nb\nd\n", patch).unwrap_err(), @"The patch does not apply to src/a.rs: error applying hunk #2. Its context lines must match the file exactly. Read the file again.");
        insta::assert_snapshot!(patched_in("a\n", "@@ -1 +1 @@\n-b\n+x\n").unwrap_err(), @"The patch does not apply to src/a.rs: error applying hunk #1. Its context lines must match the file exactly. Read the file again.");
        insta::assert_snapshot!(patched_in("a\n", "@@ one @@\n-a\n+x\n").unwrap_err(), @"`patch` is not a valid unified diff: error parsing patch at byte 0: unable to parse hunk header.");
        insta::assert_snapshot!(patched_in("a\n", "Sure!").unwrap_err(), @"`patch` has no hunks. Each hunk starts with a line like `@@ -1,3 +1,4 @@`.");
        let other = "--- a/src/b.rs\n+++ b/src/b.rs\n@@ -1 +1 @@\n-a\n+x\n";
        insta::assert_snapshot!(patched_in("a\n", other).unwrap_err(), @r#"The patch is for "a/src/b.rs", but the call is for src/a.rs. One call edits one file."#);
        let gone = "--- a/src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        insta::assert_snapshot!(patched_in("a\n", gone).unwrap_err(), @r#"The patch is for "/dev/null", but the call is for src/a.rs. One call edits one file."#);
    }

    #[test]
    fn hunk_that_miscounts_its_lines_means_its_lines() {
        let patch = "@@ -1,9 +1,9 @@ fn a()\n a\n-b\n+x\n\n c\n@@ -9,1 +9,7 @@\n-d\n+y\n\n";
        assert_eq!(
            patched_in("a\nb\n\nc\nd\n", patch).as_deref(),
            Ok("a\nx\n\nc\ny\n")
        );
    }

    proptest! {
        #[test]
        fn diff_of_two_texts_applies(old in "([ab]{0,2}\n){0,8}[ab]?", new in "([ab]{0,2}\n){0,8}[ab]?") {
            let mut options = diffy::DiffOptions::new();
            options.set_original_filename("a.rs").set_modified_filename("a.rs");
            let patch = options.create_patch(&old, &new).to_string();
            if old != new {
                prop_assert_eq!(apply(&Edit::Patch(patch), &old, "a.rs"), Ok(new));
            }
        }

        #[test]
        fn no_patch_panics(patch in "(@@ -[0-9],[0-9] \\+[0-9],[0-9] @@\n)?([ +-]?[ab\n\\\\]{0,4}\n){0,6}", content in "[ab\n\r]{0,12}") {
            _ = patched_in(&content, &patch);
        }
    }
}
