//! `edit_file`: an exact replacement, or a unified diff.

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

/// How many places the model is shown of what it changed.
const MAX_REGIONS: usize = 10;
/// How many lines it is shown of each.
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
            "old": {"type": "string", "description": "The exact text to replace; it must occur once."},
            "new": {"type": "string", "description": "The text to put in its place."},
            "replace_all": {"type": "boolean", "description": "Replaces every occurrence of `old`."},
            "patch": {"type": "string", "description": "Instead of `old` and `new`: a unified diff of this file."},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let description = "Changes a text file: replaces `old` by `new`, or applies a `patch`.";
    declare(Builtin::EditFile, description, parameters)
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let arguments: Arguments = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.writable(&arguments.path, LastLink::Followed)?;
    let path = spot.shown();
    let old = text(&spot)?;
    let checksum = Checksum::compute(old.as_bytes());
    files.changing().check(&path, checksum)?;
    let new = edit::applied(&edit(arguments)?, &old, &path)?;
    if new.len() as u64 > MAX_BYTES {
        return Err(format!(
            "{path} would have {} bytes, and a file may have {MAX_BYTES}.",
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
        let mut seen = files.changing();
        spot.replace(checksum, new.as_bytes())?;
        let checksum = Checksum::compute(new.as_bytes());
        seen.saw(path.clone(), checksum, Extent::Change);
        result(files, &spot, &new, &differences)
    }))
}

fn edit(arguments: Arguments) -> Result<Edit, String> {
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

fn text(spot: &Spot) -> Result<String, String> {
    let path = spot.shown();
    match spot.content()? {
        Content::Whole(bytes) => String::from_utf8(bytes)
            .map_err(|_| format!("{path} is not UTF-8 text, and nothing else is edited.")),
        Content::TooLarge { size } => Err(format!(
            "{path} has {size} bytes, and at most {MAX_BYTES} are edited."
        )),
    }
}

/// Tells what was done, and shows what stands there now.
fn result(
    files: &Files,
    spot: &Spot,
    new: &str,
    differences: &[Difference],
) -> Result<Vec<ContentBlock>, String> {
    let (path, checksum) = (spot.shown(), Checksum::compute(new.as_bytes()));
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
    let (regions, hidden) = shown(compare::regions(differences, new));
    if let Some(hidden) = hidden {
        done.push_str(&format!(" Not shown here: {hidden}."));
    }
    let mut blocks = vec![describe_change(done, &path, checksum)];
    let mime_type = classify(Vec::new(), &path).1;
    for lines in regions {
        let content = ResourceContent::Text(excerpt(new, lines));
        blocks.push(files.block(spot, content, mime_type, Some(lines), Some(checksum))?);
    }
    Ok(blocks)
}

/// Returns the first of the places that changed, and what of them is left out.
fn shown(mut regions: Vec<Lines>) -> (Vec<Lines>, Option<String>) {
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

fn excerpt(text: &str, Lines { first, last }: Lines) -> String {
    text.split_inclusive('\n')
        .skip(first - 1)
        .take(last + 1 - first)
        .collect()
}
