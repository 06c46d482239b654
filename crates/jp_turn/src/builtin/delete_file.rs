//! `delete_file`: deletes a file or an empty directory.

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
    let spot = files.find_writable(&path, LastLink::Kept)?;
    let path = spot.display();
    let (what, checksum) = match &spot.found {
        Found::Directory(_) => (describe_directory(&spot)?, None),
        _ => {
            let content = spot.content()?;
            let (what, checksum) = describe_file(&content);
            if let Some(checksum) = checksum {
                files.lock_seen().check(&path, checksum)?;
            }
            check_kept(&content, checksum, &spot, files, line)?;
            (what, checksum)
        }
    };
    let preview = Preview::from_title(format!("delete {path} ({what})"));
    let is_sensitive = is_sensitive(&spot.path);
    Ok(plan_action(preview, is_sensitive, move |line| {
        if checksum.is_none() && !matches!(spot.found, Found::Directory(_)) {
            // The file is too large for a checksum, so ask git again. Do that before locking,
            // because git may take long.
            check_large(&spot, files, line)?;
        }
        let mut seen = files.lock_seen();
        if let Some(checksum) = checksum {
            // The file may have changed while the user decided.
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
fn describe_directory(spot: &Spot) -> Result<String, String> {
    let path = spot.display();
    let Found::Directory(directory) = &spot.found else {
        return Ok(String::new());
    };
    let entries = directory
        .entries()
        .map_err(|error| spot.describe_error("read", &error))?;
    match entries.count() {
        _ if path == "." => Err("The workspace root can't be deleted.".to_owned()),
        0 => Ok("an empty directory".to_owned()),
        entries => Err(format!(
            "{path} is a directory with {} in it. Only an empty directory can be deleted.",
            write_count(entries, "entry")
        )),
    }
}

/// Describes a file, and returns its checksum unless it is very large.
fn describe_file(content: &Content) -> (String, Option<Checksum>) {
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
    let path = spot.display();
    let is_empty = matches!(content, Content::Whole(bytes) if bytes.is_empty());
    let is_held = checksum.is_some_and(|checksum| files.lock_seen().holds_all_of(&path, checksum));
    if is_empty || is_held || files.git_has(spot, content, &|| line.is_cancelled()) {
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

/// Checks that git has the current content of a very large file.
fn check_large(spot: &Spot, files: &Files, line: &Line) -> Result<(), String> {
    check_kept(&spot.content()?, None, spot, files, line)
}
