//! `create_file`: creates a file.

use jp_resource::Checksum;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::{describe_change, plan_action},
    compare::compare,
    declare::{declare, read_arguments},
    files::{Extent, Found, LastLink, MAX_BYTES},
    kind::Builtin,
    preview,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The new file, relative to the workspace root. Missing directories are created."},
            "content": {"type": "string"},
        },
        "required": ["path", "content"],
        "additionalProperties": false,
    });
    declare(
        Builtin::CreateFile,
        "Creates a file. Fails if the path exists.",
        parameters,
    )
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { path, content } = read_arguments(arguments)?;
    let files = &toolbox.files;
    let spot = files.find_writable(&path, LastLink::Followed)?;
    let path = spot.display();
    match spot.found {
        Found::Nothing { .. } => {}
        Found::File => {
            return Err(format!(
                "{path} already exists. Use `edit_file` to change it."
            ));
        }
        _ => return Err(format!("{path} already exists and is not a file.")),
    }
    if content.len() as u64 > MAX_BYTES {
        return Err(format!(
            "The content has {} bytes. The limit for a file is {MAX_BYTES}.",
            content.len()
        ));
    }
    let detail = preview::diff(&path, "", &content, &compare("", &content));
    let preview = Preview {
        title: format!("create {path}"),
        detail: Some(detail),
    };
    Ok(plan_action(preview, false, move |_| {
        let mut seen = files.lock_seen();
        spot.create(content.as_bytes())?;
        let checksum = Checksum::compute(content.as_bytes());
        // The model wrote the content, so it has seen the whole file.
        seen.record(path.clone(), checksum, Extent::Whole);
        let done = format!(
            "Created {path}: {}.",
            super::action::write_count(content.lines().count(), "line")
        );
        Ok(vec![describe_change(done, &path, checksum)])
    }))
}
