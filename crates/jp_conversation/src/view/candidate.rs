//! Describes a resource before its delivery, with the facts that decide it.

use std::collections::HashMap;

use jp_resource::{Annotations, Encoding, Payload, Snapshot};
use serde_json::Value;

use super::{Call, Message, Place, Policy, Shown};

/// The field of a result's `_meta` with the name of its MCP server. Only jp writes it.
pub const SERVER_MARK: &str = "computer.jp/server";

/// A resource whose delivery is to be decided.
pub(super) struct Candidate<'m> {
    pub(super) snapshot: &'m Snapshot,
    /// Its place in the request.
    pub(super) place: Place,
    /// Its MCP server.
    pub(super) server: Option<String>,
    /// The amount of it that is shown, if not all.
    pub(super) shown: Option<Shown>,
    /// True if it may become a reference.
    pub(super) is_covered: bool,
}

/// Describes a resource of a message; `None` if the block isn't a resource. `servers` are those of the
/// message's attachments.
pub(super) fn find_candidate<'m>(
    messages: &'m [Message<'_>],
    message: usize,
    block: usize,
    servers: &HashMap<usize, String>,
    policy: &Policy,
) -> Option<Candidate<'m>> {
    // A resource that is only for the user is not sent, so nothing may refer to it.
    let snapshot = messages[message]
        .resource(block)
        .filter(|snapshot| !is_for_user(snapshot))?;
    let place = Place::find(messages, message, block)?;
    Some(match &messages[message] {
        Message::Tool {
            call,
            response: Some(response),
            ..
        } => Candidate {
            snapshot,
            place,
            server: response
                .meta
                .get(SERVER_MARK)
                .and_then(Value::as_str)
                .map(str::to_owned),
            shown: Shown::read_mark(&response.content[block]),
            is_covered: policy.covers(&call.name),
        },
        _ => Candidate {
            snapshot,
            place,
            server: servers.get(&block).cloned(),
            shown: None,
            is_covered: policy.is_enabled,
        },
    })
}

impl Place {
    pub(super) fn find(messages: &[Message<'_>], message: usize, block: usize) -> Option<Self> {
        let checksum = messages[message].resource(block)?.blob_ref().checksum;
        let call = match &messages[message] {
            Message::Tool { number, call, .. } => Some(Call {
                id: call.id.clone(),
                number: *number,
                tool: call.name.clone(),
            }),
            _ => None,
        };
        Some(Self {
            message,
            block,
            turn: messages[message].turn(),
            call,
            checksum,
        })
    }
}

/// Returns the MCP servers of a message's attachments, from declarations of the form `mcp+SERVER+URI`.
pub(super) fn servers_of_attachments(message: &Message<'_>) -> HashMap<usize, String> {
    let Message::User { request, .. } = message else {
        return HashMap::new();
    };
    let mut servers = HashMap::new();
    for delivered in &request.delivered {
        if let Some(server) = delivered.declaration.server() {
            servers.extend(
                delivered
                    .resources
                    .iter()
                    .map(|index| (*index, server.to_owned())),
            );
        }
    }
    servers
}

fn is_for_user(snapshot: &Snapshot) -> bool {
    snapshot
        .annotations
        .as_ref()
        .is_some_and(Annotations::is_for_user)
}

pub(super) fn is_text(snapshot: &Snapshot) -> bool {
    match &snapshot.content {
        Payload::Inline(content) => content.as_text().is_some(),
        Payload::Stored(blob) => blob.encoding == Encoding::Utf8,
    }
}
