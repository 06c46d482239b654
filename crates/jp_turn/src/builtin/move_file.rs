//! `move_file`: moves or renames a file.

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
            "to": {"type": "string", "description": "Its new path. Missing directories are created."},
        },
        "required": ["path", "to"],
        "additionalProperties": false,
    });
    declare(
        Builtin::MoveFile,
        "Moves or renames a file. Fails if the new path exists.",
        parameters,
    )
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { path, to } = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.find_writable(&path, LastLink::Kept)?;
    let target = files.find_writable(&to, LastLink::Kept)?;
    let (path, to) = (spot.display(), target.display());
    if matches!(spot.found, Found::Directory(_)) {
        return Err(format!("{path} is a directory. Only files can be moved."));
    }
    if !matches!(target.found, Found::Nothing { .. }) {
        return Err(format!(
            "{to} already exists. Choose another path, or delete it first."
        ));
    }
    let checksum = match spot.content()? {
        Content::Whole(bytes) => Some(Checksum::compute(&bytes)),
        Content::TooLarge { .. } => None,
    };
    if let Some(checksum) = checksum {
        files.lock_seen().check(&path, checksum)?;
    }
    let preview = Preview::from_title(format!("move {path} to {to}"));
    let is_sensitive = is_sensitive(&spot.path);
    Ok(plan_action(preview, is_sensitive, move |_| {
        let mut seen = files.lock_seen();
        if let Some(checksum) = checksum {
            // The file may have changed while the user decided.
            spot.check_unchanged(checksum)?;
        }
        spot.move_to(&target)?;
        let was_seen = seen.forget(&path);
        let mark = match was_seen {
            Some(file) => {
                seen.record_move(to.clone(), file);
                moved_mark(&path, &to, file.checksum)
            }
            None => gone_mark(&path),
        };
        Ok(vec![mark_block(format!("Moved {path} to {to}."), mark)])
    }))
}
