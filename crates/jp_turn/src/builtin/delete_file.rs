//! `delete_file`: a file, or a directory that is empty.

use jp_resource::Checksum;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Builtin, counted,
    files::{Content, Found, LastLink, Spot, gone_mark, is_sensitive},
    marked, offered, parsed, planned,
};
use crate::{Preview, Tool, Toolbox, call::Plan};

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
    offered(Builtin::DeleteFile, "Deletes a file or an empty directory.", parameters)
}

pub(super) fn plan<'a>(arguments: &Map<String, Value>, toolbox: &'a Toolbox) -> Result<Plan<'a>, String> {
    let Arguments { path } = parsed(arguments)?;
    let files = &toolbox.files;
    let spot = files.writable(&path, LastLink::Kept)?;
    let path = spot.shown();
    let (what, checksum) = match &spot.found {
        Found::Directory(_) => (deletable_directory(&spot)?, None),
        _ => file(&spot)?,
    };
    if let Some(checksum) = checksum {
        files.changing().check(&path, checksum)?;
    }
    let preview = Preview { title: format!("delete {path} ({what})"), detail: None };
    let is_sensitive = is_sensitive(&spot.path);
    Ok(planned(preview, is_sensitive, move |_| {
        let mut seen = files.changing();
        if let Some(checksum) = checksum {
            spot.check_unchanged(checksum)?;
        }
        spot.remove()?;
        seen.forget(&path);
        Ok(vec![marked(format!("Deleted {path}."), gone_mark(&path))])
    }))
}

/// Describes a directory that may be deleted.
fn deletable_directory(spot: &Spot) -> Result<String, String> {
    let path = spot.shown();
    let Found::Directory(directory) = &spot.found else { return Ok(String::new()) };
    let entries = directory.entries().map_err(|error| format!("{path} can't be read: {error}."))?;
    match entries.count() {
        _ if path == "." => Err("The workspace itself is not deleted.".to_owned()),
        0 => Ok("an empty directory".to_owned()),
        entries => Err(format!(
            "{path} is a directory with {} in it; only an empty one is deleted.",
            counted(entries, "entry")
        )),
    }
}

/// Describes a file, with its checksum unless it is very large.
fn file(spot: &Spot) -> Result<(String, Option<Checksum>), String> {
    Ok(match spot.content()? {
        Content::TooLarge { size } => (format!("{size} bytes"), None),
        Content::Whole(bytes) => {
            let lines = counted(String::from_utf8_lossy(&bytes).lines().count(), "line");
            let what = format!("{}, {lines}", counted(bytes.len(), "byte"));
            (what, Some(Checksum::of(&bytes)))
        }
    })
}
