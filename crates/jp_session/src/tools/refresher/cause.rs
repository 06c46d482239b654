//! Words the reasons why a resource was not refreshed, for models.

use crate::{error::chain, servers::reading, text::without_credentials};
use jp_attachment::{AttachError, BearError, McpError, Place};

/// Returns the cause as a fragment. It names no path outside the workspace, because results are
/// stored and may be read on other machines.
pub(crate) fn cause(error: &AttachError, place: &Place) -> String {
    match error {
        AttachError::Missing { .. } => "it no longer exists".to_owned(),
        AttachError::NoMatch { .. } | AttachError::EmptyDirectory { .. } => {
            "no file is left there".to_owned()
        }
        AttachError::Io { action, source, .. } => format!("failed to {action} it: {source}"),
        AttachError::Special { kind, .. } => format!("it is a {kind} now"),
        AttachError::NotUtf8 { .. } => "its name is not UTF-8".to_owned(),
        AttachError::AllIgnored { rule, .. } => {
            format!(
                "the line `{}` of an ignore file excludes it",
                rule.pattern.escape_debug()
            )
        }
        AttachError::AllSecret { .. } => "it seems to contain secrets".to_owned(),
        AttachError::AllClosed { .. } => "only links to unreadable files are left there".to_owned(),
        AttachError::AllExcluded { .. } => "it is excluded".to_owned(),
        AttachError::Secret { kind, line, .. } => {
            format!(
                "line {line} seems to contain {kind}, and conversation.attachment.secrets refuses that"
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
        AttachError::Changing { .. } => "it keeps changing while jp reads it".to_owned(),
        AttachError::Unsupported { scheme, .. } => format!("jp can't read `{scheme}`"),
        AttachError::Http { source, .. } => without_credentials(&chain(&**source)),
        // The path of a program may contain the user's name, so only the part below the root stays.
        AttachError::Command { source, .. } => source.describe(&place.root),
        AttachError::Mcp {
            server,
            source: McpError::NoClient,
            ..
        } => format!(
            "the MCP server {server:?} is not configured; ask the user to attach the current content as a file"
        ),
        AttachError::Mcp { source, .. } => reading::cause(source),
        AttachError::Bear { source, .. } => bear_cause(source).to_owned(),
        AttachError::Malformed { reason, .. } => reason.clone(),
        AttachError::Interrupted => "it was interrupted".to_owned(),
        AttachError::TooManyFiles { .. } | AttachError::TooManyBytes { .. } => {
            "its declaration covers more than may be attached at once".to_owned()
        }
        // Other errors are about the declaration as a whole, and their texts may contain paths.
        _ => "its declaration can't be read here".to_owned(),
    }
}

fn bear_cause(error: &BearError) -> &'static str {
    match error {
        BearError::NotSupported | BearError::NoHome | BearError::NoDatabase(_) => {
            "Bear is not available on this machine; ask the user to paste the current text of the note"
        }
        BearError::Database { .. } | BearError::Schema { .. } => {
            "the database of Bear can't be read; ask the user to paste the current text of the note"
        }
        BearError::NoNote | BearError::NoMatch => "the note no longer exists",
        BearError::Trashed => "the note is in the trash; ask the user to restore it in Bear",
        BearError::Locked => "the note is locked; ask the user to unlock it in Bear",
    }
}
