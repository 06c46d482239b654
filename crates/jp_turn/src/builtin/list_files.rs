//! `list_files`: lists a directory.

use std::{
    fmt::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use ignore::overrides::{Override, OverrideBuilder};
use jp_tool::ContentBlock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::plan_action,
    declare::{declare, read_arguments},
    files::{Entry, Spot, Walk, display_path, special_kind},
    kind::Builtin,
    limit::Limit,
    preview,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

/// The maximum number of listed entries: about 10,000 tokens. A model that needs more can name a
/// subdirectory.
const MAX_ENTRIES: usize = 1000;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "root")]
    path: String,
    depth: Option<usize>,
    glob: Option<String>,
}

pub(super) fn root() -> String {
    ".".to_owned()
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The directory, relative to the workspace root. Default: the root."},
            "depth": {"type": "integer", "minimum": 1, "description": "How many levels to list. Default: 1, or all levels with `glob`."},
            "glob": {"type": "string", "description": "Lists only the files that match, in the syntax of .gitignore: `*.rs`, `src/**/*.md`, `!*.lock`."},
        },
        "additionalProperties": false,
    });
    declare(
        Builtin::ListFiles,
        "Lists files and directories with their sizes. Skips ignored ones.",
        parameters,
    )
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { path, depth, glob } = read_arguments(arguments)?;
    let spot = toolbox.files.find_readable(&path)?;
    let globs = compile_globs(glob.as_deref())?;
    let preview = Preview::from_title(format!("list {}", spot.display()));
    let depth = depth.unwrap_or(if globs.is_empty() { 1 } else { usize::MAX });
    Ok(plan_action(preview, false, move |line| {
        let limit = Limit::new(tool, line);
        let walk = Walk {
            files: &toolbox.files,
            depth,
            is_moot: &|| limit.is_over(),
        };
        list(&walk, &spot, &globs, &limit).map(|text| vec![ContentBlock::text(text)])
    }))
}

/// Compiles the glob that files must match, if there is one.
pub(super) fn compile_globs(glob: Option<&str>) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new("");
    if let Some(glob) = glob {
        builder
            .add(glob)
            .map_err(|error| format!("`glob` is invalid: {error}."))?;
    }
    builder
        .build()
        .map_err(|error| format!("`glob` is invalid: {error}."))
}

/// Returns whether the globs select a file: it matches, and no directory above it is excluded.
pub(super) fn selects(globs: &Override, path: &Path) -> bool {
    let directories = path
        .ancestors()
        .skip(1)
        .filter(|directory| *directory != Path::new(""));
    let is_excluded = directories
        .map(|directory| globs.matched(directory, true))
        .any(|found| found.is_ignore());
    !is_excluded && !globs.matched(path, false).is_ignore()
}

fn list(
    walk: &Walk<'_>,
    spot: &Spot,
    globs: &Override,
    limit: &Limit<'_>,
) -> Result<String, String> {
    let mut entries: Vec<(PathBuf, String)> = Vec::new();
    let unreadable = walk.run(spot, &mut |entry| {
        let is_listed = match globs.is_empty() {
            true => true,
            false => !entry.kind.is_dir() && selects(globs, entry.path),
        };
        if is_listed {
            entries.push((entry.path.to_owned(), describe_entry(entry)));
        }
        ControlFlow::Continue(())
    })?;
    let unfinished = limit.describe_stop()?;
    entries.sort_by(|left, right| {
        left.0
            .as_os_str()
            .as_encoded_bytes()
            .cmp(right.0.as_os_str().as_encoded_bytes())
    });
    let mut text = String::new();
    for (_, entry) in entries.iter().take(MAX_ENTRIES) {
        text.push_str(entry);
        text.push('\n');
    }
    match entries.len() {
        0 if unfinished.is_some() => {}
        0 => _ = writeln!(text, "Nothing found. Ignored files are not listed."),
        all if all > MAX_ENTRIES => {
            _ = writeln!(
                text,
                "Not listed: {} more. Name a subdirectory or set `glob`.",
                all - MAX_ENTRIES
            );
        }
        _ => {}
    }
    if unreadable > 0 {
        _ = writeln!(text, "Directories that could not be read: {unreadable}.");
    }
    text.extend(unfinished.map(|unfinished| unfinished + "\n"));
    Ok(text)
}

fn describe_entry(entry: &Entry<'_>) -> String {
    let path = preview::one_line(&display_path(entry.path));
    if entry.kind.is_dir() {
        return format!("{path}/");
    }
    if entry.kind.is_symlink() {
        let target = entry
            .directory
            .read_link_contents(entry.name)
            .unwrap_or_default();
        if target.is_absolute() {
            // An absolute path is specific to this machine and may be private.
            return format!("{path} -> (an absolute path)");
        }
        return format!("{path} -> {}", preview::one_line(&target.to_string_lossy()));
    }
    match (
        special_kind(entry.kind),
        entry.directory.symlink_metadata(entry.name),
    ) {
        (Some(special), _) => format!("{path} ({special})"),
        (None, Ok(found)) if found.len() == 1 => format!("{path} (1 byte)"),
        (None, Ok(found)) => format!("{path} ({} bytes)", found.len()),
        (None, Err(_)) => path,
    }
}
