//! `edit_file`: replaces text exactly, or applies a unified diff.

use jp_attachment::classify;
use jp_resource::{Checksum, ResourceContent};
use jp_tool::ContentBlock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::{describe_change, plan_action, write_count},
    compare::{self, Difference, compare},
    declare::{declare, read_arguments},
    edit::{self, Edit},
    files::{Content, Extent, Files, LastLink, Lines, MAX_BYTES, Spot, is_sensitive},
    kind::Builtin,
    preview,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

/// The maximum number of changed places in a result. The model wrote the change, so it only checks
/// where it went.
const MAX_REGIONS: usize = 10;
/// The maximum number of lines of each.
const MAX_LINES: usize = 200;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old: Option<String>,
    new: Option<String>,
    #[serde(default)]
    replace_all: bool,
    patch: Option<String>,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace root."},
            "old": {"type": "string", "description": "The exact text to replace. It must occur once, unless `replace_all` is set."},
            "new": {"type": "string", "description": "The text that replaces `old`."},
            "replace_all": {"type": "boolean", "description": "Replaces every occurrence of `old`."},
            "patch": {"type": "string", "description": "Instead of `old` and `new`: a unified diff of this file."},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let description = "Edits a text file: replaces `old` with `new`, or applies `patch`.";
    declare(Builtin::EditFile, description, parameters)
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let arguments: Arguments = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.find_writable(&arguments.path, LastLink::Followed)?;
    let path = spot.display();
    let old = read_text(&spot)?;
    let checksum = Checksum::compute(old.as_bytes());
    files.lock_seen().check(&path, checksum)?;
    let new = edit::apply(&read_edit(arguments)?, &old, &path)?;
    if new.len() as u64 > MAX_BYTES {
        return Err(format!(
            "{path} would have {} bytes. The limit for a file is {MAX_BYTES}.",
            new.len()
        ));
    }
    let differences = compare(&old, &new);
    let detail = preview::diff(&path, &old, &new, &differences);
    let preview = Preview {
        title: format!("edit {path}"),
        detail: Some(detail),
    };
    let is_sensitive = is_sensitive(&spot.path);
    Ok(plan_action(preview, is_sensitive, move |_| {
        let mut seen = files.lock_seen();
        // `replace` checks the file again: it may have changed while the user decided.
        spot.replace(checksum, new.as_bytes())?;
        let checksum = Checksum::compute(new.as_bytes());
        seen.record(path.clone(), checksum, Extent::Change);
        report(files, &spot, &new, &differences)
    }))
}

fn read_edit(arguments: Arguments) -> Result<Edit, String> {
    match arguments {
        Arguments {
            patch: Some(patch),
            old: None,
            new: None,
            ..
        } => Ok(Edit::Patch(patch)),
        Arguments {
            patch: None,
            old: Some(old),
            new: Some(new),
            replace_all,
            ..
        } => Ok(Edit::Replacement {
            old,
            new,
            all: replace_all,
        }),
        _ => Err("Give either both `old` and `new`, or `patch`.".to_owned()),
    }
}

fn read_text(spot: &Spot) -> Result<String, String> {
    let path = spot.display();
    match spot.content()? {
        Content::Whole(bytes) => String::from_utf8(bytes)
            .map_err(|_| format!("{path} is not UTF-8 text, so it can't be edited.")),
        Content::TooLarge { size } => Err(format!(
            "{path} has {size} bytes. The limit for editing is {MAX_BYTES}."
        )),
    }
}

/// Describes the change, and shows the changed places.
fn report(
    files: &Files,
    spot: &Spot,
    new: &str,
    differences: &[Difference],
) -> Result<Vec<ContentBlock>, String> {
    let (path, checksum) = (spot.display(), Checksum::compute(new.as_bytes()));
    let added = differences
        .iter()
        .map(|difference| difference.new.len())
        .sum();
    let removed: usize = differences
        .iter()
        .map(|difference| difference.old.len())
        .sum();
    let mut done = format!(
        "Edited {path}: {} added, {removed} removed.",
        write_count(added, "line")
    );
    let (regions, hidden) = limit_regions(compare::regions(differences, new));
    if let Some(hidden) = hidden {
        done.push_str(&format!(" Not shown here: {hidden}."));
    }
    let mut blocks = vec![describe_change(done, &path, checksum)];
    let mime_type = classify(Vec::new(), &path).1;
    for lines in regions {
        let content = ResourceContent::Text(extract_lines(new, lines));
        blocks.push(files.block(spot, content, mime_type, Some(lines), Some(checksum))?);
    }
    Ok(blocks)
}

/// Returns the first changed places, and a description of the others.
fn limit_regions(mut regions: Vec<Lines>) -> (Vec<Lines>, Option<String>) {
    let places = regions.len().saturating_sub(MAX_REGIONS);
    regions.truncate(MAX_REGIONS);
    let mut lines = 0;
    for region in &mut regions {
        let last = region.last.min(region.first + MAX_LINES - 1);
        lines += region.last - last;
        region.last = last;
    }
    let hidden: Vec<_> = [(lines, "more line"), (places, "more changed place")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| write_count(count, noun))
        .collect();
    (regions, (!hidden.is_empty()).then(|| hidden.join(" and ")))
}

fn extract_lines(text: &str, Lines { first, last }: Lines) -> String {
    text.split_inclusive('\n')
        .skip(first - 1)
        .take(last + 1 - first)
        .collect()
}
