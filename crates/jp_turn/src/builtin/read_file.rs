//! `read_file`: reads a file, or some of its lines.

use std::{
    io::{BufRead, BufReader, Read},
    iter,
};

use jp_attachment::classify;
use jp_conversation::view::END_MARK;
use jp_resource::{Checksum, ResourceContent};
use jp_tool::ContentBlock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::plan_action,
    declare::{declare, read_arguments},
    files::{Content, Extent, Files, Lines, MAX_BYTES, Spot, is_sensitive},
    kind::Builtin,
    limit::Limit,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    first_line: Option<usize>,
    last_line: Option<usize>,
}

/// The lines to read.
#[derive(Clone, Copy)]
struct Range {
    first: usize,
    /// The last line; `None` for the end of the file.
    last: Option<usize>,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace root."},
            "first_line": {"type": "integer", "minimum": 1, "description": "The first line to read."},
            "last_line": {"type": "integer", "minimum": 1, "description": "The last line to read."},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    declare(
        Builtin::ReadFile,
        "Reads a file of the workspace, or some of its lines.",
        parameters,
    )
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let arguments: Arguments = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.find_readable(&arguments.path)?;
    spot.check_file()?;
    let range = read_range(&arguments)?;
    let preview = Preview::from_title(format!("read {}", spot.display()));
    let is_sensitive = is_sensitive(&spot.path);
    Ok(plan_action(preview, is_sensitive, move |line| {
        let limit = Limit::new(tool, line);
        let block = match range {
            None => read_whole(files, &spot),
            Some(range) => read_part(files, &spot, range, &limit),
        }?;
        Ok(iter::once(block)
            .chain(limit.describe_stop()?.map(ContentBlock::text))
            .collect())
    }))
}

fn read_range(arguments: &Arguments) -> Result<Option<Range>, String> {
    match (arguments.first_line, arguments.last_line) {
        (None, None) => Ok(None),
        (Some(first), Some(last)) if last < first => Err(format!(
            "`last_line` ({last}) is before `first_line` ({first})."
        )),
        (first, last) => Ok(Some(Range {
            first: first.unwrap_or(1),
            last,
        })),
    }
}

fn read_whole(files: &Files, spot: &Spot) -> Result<ContentBlock, String> {
    let bytes = match spot.content()? {
        Content::Whole(bytes) => bytes,
        Content::TooLarge { size } => {
            return Err(format!(
                "{} has {size} bytes. At most {MAX_BYTES} can be read at once. Read some of its lines with `first_line` and `last_line`, or use `search_files`.",
                spot.display()
            ));
        }
    };
    let checksum = remember(files, spot, &bytes, Extent::Whole);
    let (content, mime_type) = classify(bytes, &spot.display());
    files.block(spot, content, mime_type, None, Some(checksum))
}

/// Reads some lines. A file that is too large to be read at once is not remembered as seen.
fn read_part(
    files: &Files,
    spot: &Spot,
    range: Range,
    limit: &Limit<'_>,
) -> Result<ContentBlock, String> {
    let (part, checksum) = match spot.content()? {
        Content::Whole(bytes) => {
            let part = read_lines(bytes.as_slice(), range, spot, limit)?;
            let extent = if part.0 == bytes {
                Extent::Whole
            } else {
                Extent::Part
            };
            (part, Some(remember(files, spot, &bytes, extent)))
        }
        Content::TooLarge { .. } => (read_lines(spot.open()?, range, spot, limit)?, None),
    };
    let (text, lines) = part;
    let text = String::from_utf8(text).map_err(|_| {
        format!(
            "{} is not UTF-8 text, so it has no lines. Read the whole file.",
            spot.display()
        )
    })?;
    // Lines are read with their ends, so only a file's last one can lack its newline.
    let is_unended = !text.is_empty() && !text.ends_with('\n');
    let (content, mime_type) = (
        ResourceContent::Text(text),
        classify(Vec::new(), &spot.display()).1,
    );
    let mut block = files.block(spot, content, mime_type, Some(lines), checksum)?;
    if let ContentBlock::Resource { resource, .. } = &mut block
        && is_unended
    {
        resource
            .meta
            .get_or_insert_default()
            .insert(END_MARK.to_owned(), true.into());
    }
    Ok(block)
}

fn remember(files: &Files, spot: &Spot, bytes: &[u8], extent: Extent) -> Checksum {
    let checksum = Checksum::compute(bytes);
    files.lock_seen().record(spot.display(), checksum, extent);
    checksum
}

/// Reads lines with their ends. The last line may be past the end of the file, the first may not.
/// If the time is over, returns the lines so far.
fn read_lines(
    source: impl Read,
    range: Range,
    spot: &Spot,
    limit: &Limit<'_>,
) -> Result<(Vec<u8>, Lines), String> {
    let mut source = BufReader::new(source);
    let (mut text, mut line, mut passed) = (Vec::new(), 0, Vec::new());
    while range.last.is_none_or(|last| line < last) && !limit.is_over() {
        let is_wanted = line + 1 >= range.first;
        passed.clear();
        let into = if is_wanted { &mut text } else { &mut passed };
        let left = (MAX_BYTES + 1).saturating_sub(into.len() as u64);
        if source
            .by_ref()
            .take(left)
            .read_until(b'\n', into)
            .map_err(|error| spot.describe_error("read", &error))?
            == 0
        {
            break;
        }
        if into.len() as u64 > MAX_BYTES {
            return Err(format!(
                "These lines of {} have more than {MAX_BYTES} bytes. Read fewer lines at a time.",
                spot.display()
            ));
        }
        line += 1;
    }
    match limit.describe_stop()? {
        _ if line >= range.first => Ok((
            text,
            Lines {
                first: range.first,
                last: line,
            },
        )),
        Some(unfinished) => Err(unfinished),
        None => Err(format!(
            "{} has {line} lines, so there is no line {}.",
            spot.display(),
            range.first
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::line::Line;

    /// A text without end; when three lines are read of it, the time is over.
    struct Endless<'a> {
        lines: usize,
        limit: &'a Limit<'a>,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.lines += 1;
            if self.lines == 3 {
                self.limit.run_out();
            }
            (&b"line\n"[..]).read(buffer)
        }
    }

    #[test]
    fn read_that_runs_out_of_time_returns_its_lines() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::open(root.path(), &[]).unwrap();
        let spot = files.find_readable("a").unwrap();
        let (tool, line) = (tool(), Line::unheard(false));
        let limit = Limit::new(&tool, &line);
        let read = |first: usize| {
            read_lines(
                Endless {
                    lines: 0,
                    limit: &limit,
                },
                Range { first, last: None },
                &spot,
                &limit,
            )
        };
        assert_eq!(
            read(2),
            Ok((b"line\n".repeat(2), Lines { first: 2, last: 3 }))
        );
        insta::assert_snapshot!(read(2).unwrap_err(), @"Not finished: the call took more than 120 s. Ask for less. The user can raise the limit with `conversation.tools.read_file.timeout_secs`.");
    }
}
