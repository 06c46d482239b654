//! `refresh_resource`: takes a new snapshot of an attached resource.

use jp_resource::{Resource, uri};
use jp_tool::ContentBlock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::plan_action,
    declare::{declare, read_arguments},
    files::{Extent, Files, is_sensitive, mark},
    kind::Builtin,
    preview,
    refresh::{Consent, Refreshed, Refreshing},
};
use crate::{Preview, Tool, Toolbox, line::INTERRUPTED, plan::Plan};

#[derive(Deserialize)]
struct Arguments {
    uri: String,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The URI of the attached resource, as the conversation names it, or a file's path relative to the workspace root."},
        },
        "required": ["uri"],
        "additionalProperties": false,
    });
    let description = "Reads an attached resource again. The conversation holds a snapshot from an earlier time, and the source may have changed since.";
    // The user attached it, so `conversation.attachment.max_bytes` bounds it.
    Tool {
        max_binary_bytes: usize::MAX,
        ..declare(Builtin::RefreshResource, description, parameters)
    }
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { uri } = read_arguments(arguments)?;
    let refresh = toolbox
        .refresh
        .as_deref()
        .ok_or("No resource is attached, so there is nothing to refresh.")?;
    let Refreshing {
        uri,
        from,
        consent,
        take,
    } = refresh.plan(&uri)?;
    let files = &toolbox.files;
    let is_secret = files
        .path_from_uri(uri::split_fragment(&uri).0)
        .is_some_and(|path| is_sensitive(path.as_ref()));
    let is_sensitive = is_secret
        || match consent {
            Consent::Unneeded => false,
            Consent::OncePerTurn => !toolbox
                .decisions()
                .allowed
                .contains(Builtin::RefreshResource.name()),
            Consent::EachTime => true,
        };
    let preview = Preview::from_title(format!("refresh {}", preview::one_line(&from)));
    Ok(plan_action(preview, is_sensitive, move |line| {
        // The snapshot may come from a slow server, so it can be interrupted.
        let taken = take(line.cancel_flag());
        if line.is_cancelled() {
            return Err(INTERRUPTED.to_owned());
        }
        let Refreshed { resource, notices } = taken?;
        for notice in notices {
            line.notice(format!("`refresh_resource`: {notice}"));
        }
        Ok(vec![block(resource, files)])
    }))
}

/// Returns the MCP server that a call with these arguments reads from, if it does.
pub(crate) fn find_server(arguments: &Map<String, Value>, toolbox: &Toolbox) -> Option<String> {
    let Arguments { uri } = read_arguments(arguments).ok()?;
    toolbox.refresh.as_deref()?.server(&uri)
}

/// Makes the block. A file of the workspace is marked and remembered as seen.
fn block(mut resource: Resource, files: &Files) -> ContentBlock {
    // The user attached it for the model, even if the server's annotation says that it is only for
    // the user.
    if let Some(annotations) = resource
        .annotations
        .as_mut()
        .filter(|annotations| annotations.is_for_user())
    {
        annotations.audience = None;
    }
    let checksum = resource.checksum();
    let meta = files.path_from_uri(&resource.uri).map(|path| {
        let meta = mark(&path, checksum);
        files.lock_seen().record(path, checksum, Extent::Whole);
        meta
    });
    ContentBlock::Resource { resource, meta }
}
