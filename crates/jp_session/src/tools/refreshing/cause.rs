//! Why something was not read again, in words that a conversation may keep.

use crate::{error::chain, servers::reading, text::without_credentials};
use jp_attachment::{AttachError, BearError, McpError, Place};

/// Returns the cause as a fragment. It names no path outside the workspace, because results are
/// stored and may be read on other machines.
pub(crate) fn cause(error: &AttachError, place: &Place) -> String {
    match error {
        AttachError::Missing { .. } => "nothing is there any more".to_owned(),
        AttachError::NoMatch { .. } | AttachError::EmptyDirectory { .. } => {
            "no file is left there".to_owned()
        }
        AttachError::Io { action, source, .. } => format!("to {action} it failed: {source}"),
        AttachError::Special { kind, .. } => format!("there is a {kind} now"),
        AttachError::NotUtf8 { .. } => "its name is not UTF-8".to_owned(),
        AttachError::AllIgnored { rule, .. } => {
            format!(
                "the line `{}` of an ignore file leaves it out",
                rule.pattern.escape_debug()
            )
        }
        AttachError::AllSecret { .. } => "it looks like it holds secrets".to_owned(),
        AttachError::AllClosed { .. } => "only links to what is closed are left there".to_owned(),
        AttachError::AllExcluded { .. } => "it is excluded".to_owned(),
        AttachError::Secret { kind, line, .. } => {
            format!(
                "its line {line} holds what looks like {kind}, and conversation.attachment.secrets refuses that"
            )
        }
        AttachError::TooLarge { size, limit, .. } => format!(
            "it has {size} bytes now, more than the {limit} that conversation.attachment.max_bytes allows"
        ),
        AttachError::TooLong { limit, .. } => {
            format!(
                "it is longer than the {limit} bytes that conversation.attachment.max_bytes allows"
            )
        }
        AttachError::Changing { .. } => "it keeps changing while it is read".to_owned(),
        AttachError::Unsupported { scheme, .. } => format!("nothing here reads `{scheme}`"),
        AttachError::Http { source, .. } => without_credentials(&chain(&**source)),
        AttachError::Command { source, .. } => source.describe(&place.root),
        AttachError::Mcp {
            server,
            source: McpError::NoClient,
            ..
        } => format!(
            "nothing here reads the MCP server {server:?}; ask the person to attach what it has now as a file"
        ),
        AttachError::Mcp { source, .. } => reading::cause(source),
        AttachError::Bear { source, .. } => of_bear(source).to_owned(),
        AttachError::Malformed { reason, .. } => reason.clone(),
        AttachError::Interrupted => "it was interrupted".to_owned(),
        AttachError::TooManyFiles { .. } | AttachError::TooManyBytes { .. } => {
            "what it is a part of is more than may be attached at once".to_owned()
        }
        _ => "what attached it can't be read here".to_owned(),
    }
}

fn of_bear(error: &BearError) -> &'static str {
    match error {
        BearError::NotSupported | BearError::NoHome | BearError::NoDatabase(_) => {
            "notes of Bear are read where the app is, on macOS, and it is not here; ask the person to paste what the note says now"
        }
        BearError::Database { .. } | BearError::Schema { .. } => {
            "the database of Bear can't be read; ask the person to paste what the note says now"
        }
        BearError::NoNote | BearError::NoMatch => "there is no such note any more",
        BearError::Trashed => "the note is in the trash; ask the person to restore it in Bear",
        BearError::Locked => "the note is locked; ask the person to unlock it in Bear",
    }
}
