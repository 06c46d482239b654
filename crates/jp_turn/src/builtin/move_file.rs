//! `move_file`: a file to where nothing is.

use jp_resource::Checksum;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::{mark_block, plan_action},
    declare::{declare, read_arguments},
    files::{Content, Found, LastLink, gone_mark, is_sensitive, moved_mark},
    kind::Builtin,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    to: String,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace root."},
            "to": {"type": "string", "description": "Its new path; missing directories are made."},
        },
        "required": ["path", "to"],
        "additionalProperties": false,
    });
    declare(
        Builtin::MoveFile,
        "Moves or renames a file; refuses a new path that exists.",
        parameters,
    )
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { path, to } = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.writable(&path, LastLink::Kept)?;
    let target = files.writable(&to, LastLink::Kept)?;
    let (path, to) = (spot.shown(), target.shown());
    if matches!(spot.found, Found::Directory(_)) {
        return Err(format!("{path} is a directory; only files are moved."));
    }
    if !matches!(target.found, Found::Nothing { .. }) {
        return Err(format!(
            "{to} exists; choose another path, or delete it first."
        ));
    }
    let checksum = match spot.content()? {
        Content::Whole(bytes) => Some(Checksum::compute(&bytes)),
        Content::TooLarge { .. } => None,
    };
    if let Some(checksum) = checksum {
        files.changing().check(&path, checksum)?;
    }
    let preview = Preview {
        title: format!("move {path} to {to}"),
        detail: None,
    };
    let is_sensitive = is_sensitive(&spot.path);
    Ok(plan_action(preview, is_sensitive, move |_| {
        let mut seen = files.changing();
        if let Some(checksum) = checksum {
            spot.check_unchanged(checksum)?;
        }
        spot.move_to(&target)?;
        let was_seen = seen.forget(&path);
        let mark = match was_seen {
            Some(file) => {
                seen.moved(to.clone(), file);
                moved_mark(&path, &to, file.checksum)
            }
            None => gone_mark(&path),
        };
        Ok(vec![mark_block(format!("Moved {path} to {to}."), mark)])
    }))
}
