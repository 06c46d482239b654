//! `refresh_resource`: a new snapshot of something that is attached to the conversation.

use std::{fmt, sync::atomic::AtomicBool};

use jp_resource::{Resource, uri};
use jp_tool::ContentBlock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Builtin,
    files::{Extent, Files, is_sensitive, mark},
    offered, parsed, planned, preview,
};
use crate::{
    Preview, Tool, Toolbox,
    call::{INTERRUPTED, Plan},
};

/// Takes new snapshots of what is attached to a conversation.
///
/// A toolbox has it of whoever knows what was declared, and whose word it takes to reach there.
pub trait Refresh: fmt::Debug + Send + Sync {
    /// Finds out what a new snapshot of a resource takes, named by its URI, its path or its name; reads nothing of it yet.
    ///
    /// Refuses what the conversation does not hold, and what can't be read again. The error is a sentence for the model.
    fn plan(&self, name: &str) -> Result<Refreshing<'_>, String>;

    /// Returns the MCP server of a resource, named as for [`Self::plan`]; nothing is planned.
    fn server(&self, name: &str) -> Option<String>;
}

/// What a new snapshot takes.
pub struct Refreshing<'a> {
    /// What is meant, by the URI that the conversation has for it.
    pub uri: String,
    /// What is reached for, for the person who is asked: a file's name, a URL, a command line.
    pub from: String,
    /// Whether they are asked.
    pub consent: Consent,
    /// Takes it, and ends early once the flag is set. The error is a sentence for the model.
    pub take: Take<'a>,
}

type Take<'a> = Box<dyn Fn(&AtomicBool) -> Result<Refreshed, String> + 'a>;

/// Whether the person is asked before a resource is refreshed, though the tool runs unattended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// They are not.
    Unneeded,
    /// They are, until they say that it holds for the rest of the turn.
    OncePerTurn,
    /// They are, each time.
    EachTime,
}

/// A new snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Refreshed {
    /// The resource, under the URI that the conversation has for it.
    pub resource: Resource,
    /// What the person should know, as fragments.
    pub notices: Vec<String>,
}

impl fmt::Debug for Refreshing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            uri, from, consent, ..
        } = self;
        f.debug_struct("Refreshing")
            .field("uri", uri)
            .field("from", from)
            .field("consent", consent)
            .finish_non_exhaustive()
    }
}

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
    let description = "Reads a resource that is attached to the conversation again: what is attached is a snapshot, taken when it was attached, and its source may have changed since.";
    // The user attached it, so `conversation.attachment.max_bytes` bounds it.
    Tool {
        max_binary_bytes: usize::MAX,
        ..offered(Builtin::RefreshResource, description, parameters)
    }
}

pub(super) fn plan<'a>(
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { uri } = parsed(arguments)?;
    let refresh = toolbox
        .refresh
        .as_deref()
        .ok_or("Nothing is attached that could be refreshed.")?;
    let Refreshing {
        uri,
        from,
        consent,
        take,
    } = refresh.plan(&uri)?;
    let files = &toolbox.files;
    let is_secret = files
        .path_of(uri::split_fragment(&uri).0)
        .is_some_and(|path| is_sensitive(path.as_ref()));
    let is_sensitive = is_secret
        || match consent {
            Consent::Unneeded => false,
            Consent::OncePerTurn => !toolbox
                .said()
                .allowed
                .contains(Builtin::RefreshResource.name()),
            Consent::EachTime => true,
        };
    let preview = Preview {
        title: format!("refresh {}", preview::one_line(&from)),
        detail: None,
    };
    Ok(planned(preview, is_sensitive, move |line| {
        let taken = take(line.cancelled());
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
pub(crate) fn refreshed_server(
    arguments: &Map<String, Value>,
    toolbox: &Toolbox,
) -> Option<String> {
    let Arguments { uri } = parsed(arguments).ok()?;
    toolbox.refresh.as_deref()?.server(&uri)
}

/// Makes the block, which says of a file of the workspace that all of it was seen.
fn block(mut resource: Resource, files: &Files) -> ContentBlock {
    // The user attached it for the model, whomever its server means it for.
    if let Some(annotations) = resource
        .annotations
        .as_mut()
        .filter(|annotations| annotations.is_for_user())
    {
        annotations.audience = None;
    }
    let checksum = resource.checksum();
    let meta = files.path_of(&resource.uri).map(|path| {
        let meta = mark(&path, checksum);
        files.changing().saw(path, checksum, Extent::Whole);
        meta
    });
    ContentBlock::Resource { resource, meta }
}
