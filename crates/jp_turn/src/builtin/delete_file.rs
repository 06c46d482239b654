//! `delete_file`: a file, or a directory that is empty.

use jp_resource::Checksum;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::{mark_block, plan_action, write_count},
    declare::{declare, read_arguments},
    files::{Content, Files, Found, LastLink, Spot, gone_mark, is_sensitive},
    kind::Builtin,
};
use crate::{
    Preview, Tool, Toolbox,
    line::{INTERRUPTED, Line},
    plan::Plan,
};

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file or directory, relative to the workspace root."},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    declare(
        Builtin::DeleteFile,
        "Deletes an empty directory, or a file if git has its content or you have read all of it.",
        parameters,
    )
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
    line: &Line,
) -> Result<Plan<'a>, String> {
    let Arguments { path } = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.writable(&path, LastLink::Kept)?;
    let path = spot.shown();
    let (what, checksum) = match &spot.found {
        Found::Directory(_) => (deletable_directory(&spot)?, None),
        _ => {
            let content = spot.content()?;
            let (what, checksum) = described(&content);
            if let Some(checksum) = checksum {
                files.changing().check(&path, checksum)?;
            }
            check_kept(&content, checksum, &spot, files, line)?;
            (what, checksum)
        }
    };
    let preview = Preview {
        title: format!("delete {path} ({what})"),
        detail: None,
    };
    let is_sensitive = is_sensitive(&spot.path);
    Ok(plan_action(preview, is_sensitive, move |line| {
        if checksum.is_none() && !matches!(spot.found, Found::Directory(_)) {
            // It is too large to be known by a checksum. No other call waits for git meanwhile.
            check_large(&spot, files, line)?;
        }
        let mut seen = files.changing();
        if let Some(checksum) = checksum {
            spot.check_unchanged(checksum)?;
        }
        spot.remove()?;
        seen.forget(&path);
        Ok(vec![mark_block(
            format!("Deleted {path}."),
            gone_mark(&path),
        )])
    }))
}

/// Describes a directory that may be deleted.
fn deletable_directory(spot: &Spot) -> Result<String, String> {
    let path = spot.shown();
    let Found::Directory(directory) = &spot.found else {
        return Ok(String::new());
    };
    let entries = directory
        .entries()
        .map_err(|error| format!("{path} can't be read: {error}."))?;
    match entries.count() {
        _ if path == "." => Err("The workspace itself is not deleted.".to_owned()),
        0 => Ok("an empty directory".to_owned()),
        entries => Err(format!(
            "{path} is a directory with {} in it; only an empty one is deleted.",
            write_count(entries, "entry")
        )),
    }
}

/// Describes a file, with its checksum unless it is very large.
fn described(content: &Content) -> (String, Option<Checksum>) {
    match content {
        Content::TooLarge { size } => (format!("{size} bytes"), None),
        Content::Whole(bytes) => {
            let lines = write_count(String::from_utf8_lossy(bytes).lines().count(), "line");
            let what = format!("{}, {lines}", write_count(bytes.len(), "byte"));
            (what, Some(Checksum::compute(bytes)))
        }
    }
}

/// Refuses to delete the only copy of a file's content: neither the conversation nor git has it.
fn check_kept(
    content: &Content,
    checksum: Option<Checksum>,
    spot: &Spot,
    files: &Files,
    line: &Line,
) -> Result<(), String> {
    let path = spot.shown();
    let is_empty = matches!(content, Content::Whole(bytes) if bytes.is_empty());
    let is_held =
        || checksum.is_some_and(|checksum| files.changing().holds_all_of(&path, checksum));
    if is_empty || is_held() || files.git_has(spot, content, &|| line.is_cancelled()) {
        return Ok(());
    }
    // If the call was cancelled, git was ended before it could answer.
    if line.is_cancelled() {
        return Err(INTERRUPTED.to_owned());
    }
    let lost = format!(
        "{path} was not deleted: git does not have its content, and you have not read all of it, so the content would be lost."
    );
    Err(match content {
        Content::Whole(_) => {
            format!(
                "{lost} Read the whole file with `read_file` first, then call `delete_file` again."
            )
        }
        Content::TooLarge { .. } => {
            format!("{lost} It is too large for `read_file`: ask the user to delete it.")
        }
    })
}

/// Checks again that git has a very large file, as it is now.
fn check_large(spot: &Spot, files: &Files, line: &Line) -> Result<(), String> {
    check_kept(&spot.content()?, None, spot, files, line)
}
