//! Finds out which file and lines a tool's output shows.
//!
//! Each format has a module that proves its result: line numbers are consecutive, and the length
//! that the output states is correct. Output without a proof stays text.
//!
//! No format shows whether the last line of a range ends with a newline, and some don't show it for
//! the last line of a file. These modules assume the newline, because nearly all files have it.

pub mod cat_n;
pub mod claude_edit;
pub mod claude_read;
pub mod fenced;
mod numbered;
pub mod window;

use std::ops::RangeInclusive;

use jp_resource::{
    Resource, ResourceContent, mime,
    uri::{PathStyle, UriError, file_uri},
};
use jp_tool::{ContentBlock, StoredBlock};

/// The directory of relative paths if the recording doesn't say what they are relative to.
pub const ROOT: &str = "/workspace";

/// A part of a tool's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that isn't a file's.
    Text(String),
    /// A file, or some of its lines.
    Excerpt(Excerpt),
}

/// A file, or some of its lines, as a tool showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The path in the call or the tool's output.
    pub path: String,
    /// The numbers of the lines, from 1; `None` for the whole file.
    pub lines: Option<RangeInclusive<usize>>,
    /// The lines, without numbers.
    pub text: String,
}

impl Excerpt {
    fn whole_file(path: &str, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            lines: None,
            text: text.into(),
        }
    }

    /// Makes the block that a tool with resources would have returned.
    ///
    /// A relative path is relative to `directory`.
    pub fn into_block(self, directory: &str) -> Result<StoredBlock, UriError> {
        let mut uri = uri(&self.path, directory)?;
        match self.lines.map(RangeInclusive::into_inner) {
            Some((first, last)) if first == last => uri.push_str(&format!("#L{first}")),
            Some((first, last)) => uri.push_str(&format!("#L{first}-{last}")),
            None => {}
        }
        let mime_type = mime::from_path(&self.path).unwrap_or("text/plain");
        let resource = Resource::new(uri, ResourceContent::Text(self.text));
        Ok(ContentBlock::resource(resource.with_name(self.path).with_mime_type(mime_type)).into())
    }
}

impl Piece {
    /// Wraps text; returns `None` if it is empty.
    fn text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::Text(text.to_owned()))
    }
}

fn uri(path: &str, directory: &str) -> Result<String, UriError> {
    let has_drive =
        path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    if has_drive || path.starts_with(r"\\") {
        return file_uri(path, PathStyle::Windows);
    }
    if path.starts_with('/') {
        return file_uri(path, PathStyle::Unix);
    }
    file_uri(&format!("{directory}/{path}"), PathStyle::Unix)
}

/// Joins lines, each with a newline.
fn with_newlines(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Makes an excerpt of lines that may be a part of the file. Returns `None` if there are none.
///
/// A text that is split at its newlines has an empty part after the last one. Some tools number it
/// like a line. At the end of a range it looks like an empty line, so it is left out.
fn line_range(path: &str, first: usize, mut lines: &[&str]) -> Option<Excerpt> {
    if let [before @ .., ""] = lines {
        lines = before;
    }
    let last = first + lines.len().checked_sub(1)?;
    Some(Excerpt {
        path: path.to_owned(),
        lines: Some(first..=last),
        text: with_newlines(lines),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn any_output_is_read_without_losing_text(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "[File: a (2 lines total)]", "(1 more lines above)", "(1 more lines below)", "1:a", "2:b", "\r", "\n",
                    "\n", "     1\ta", "     2→", "```rs", "```", "... (starting from line #2) ...", "é",
                    "... (truncated after line #3) ...", "Here's the result of running `cat -n` on a:", "<system-reminder>",
                    "<response clipped>", "4294967295\t", "would have looked", "<<<<< START CURSOR >>>>>\n",
                ]),
                0..16,
            ),
            start in prop::option::of(any::<u64>()),
            end in prop::option::of(0u64..5),
        ) {
            let output = parts.concat();
            if let Some(pieces) = window::pieces(&output) {
                let words = pieces.iter().filter_map(|piece| match piece {
                    Piece::Text(text) => Some(text.as_str()),
                    Piece::Excerpt(_) => None,
                });
                let output = output.replace("\r\n", "\n");
                words.for_each(|words| assert!(output.contains(&words.replace("\r\n", "\n"))));
            }
            let _ = cat_n::pieces("view", &output);
            let input = json!({"path": "a", "file_path": "a", "start_line": start, "end_line": end, "offset": start});
            let _ = fenced::excerpt(&input, &output);
            let _ = claude_read::pieces(&input, &output, None);
            let _ = claude_edit::pieces(&output, &json!({"filePath": "a", "content": "a\n2:b"}));
        }
    }

    fn uri_of(path: &str, lines: Option<RangeInclusive<usize>>) -> String {
        let excerpt = Excerpt {
            path: path.to_owned(),
            lines,
            text: "x\n".to_owned(),
        };
        match excerpt.into_block(ROOT).unwrap() {
            StoredBlock::Resource { resource, .. } => resource.uri,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn excerpts_have_canonical_uris() {
        assert_eq!(uri_of("src/a b.rs", None), "file:///workspace/src/a%20b.rs");
        assert_eq!(uri_of("./src/../x", Some(7..=7)), "file:///workspace/x#L7");
        assert_eq!(
            uri_of("/testbed/x.py", Some(2..=9)),
            "file:///testbed/x.py#L2-9"
        );
        assert_eq!(uri_of(r"C:\x\y.rs", None), "file:///C:/x/y.rs");
    }
}
