//! How each block of a thread is delivered, given what stands before it in the same request.

use std::{collections::HashMap, fmt};

use jp_resource::{Annotations, Checksum, Payload, Snapshot};
use jp_tool::{ContentBlock, StoredBlock};
use serde_json::Value;

use super::{
    Message, Policy, Shown, Texts,
    coverage::{Candidate, Coverage, Visible},
    lines::Span,
    render::one_line,
    superseded::{Dropped, Form},
    words,
};
/// How a block is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Its content, whole.
    Full(WhyFull),
    /// A reference to the same content.
    Reference {
        /// Where that stands.
        at: Place,
    },
    /// References to lines of other content; the lines that are not among them stand between.
    Lines {
        /// The lines that are referred to, in order; never empty.
        known: Vec<KnownLines>,
    },
    /// What changed since another version.
    Diff {
        /// Where that stands, whole.
        base: Place,
    },
    /// One line: it is outdated.
    Tombstone {
        /// Where the newer version stands, if it does.
        newer: Option<Place>,
    },
    /// One line: a compaction left it out.
    Compacted,
}

/// Why a block is delivered whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhyFull {
    /// It is no resource, so it has no identity.
    #[default]
    NoResource,
    /// References are switched off, for all or for the tool.
    SwitchedOff,
    /// It is smaller than what is referred to.
    Small,
    /// Nothing of it is visible.
    New,
    /// It was visible too many turns ago.
    TooFarBack,
    /// The model repeated a call whose result was a reference.
    AskedAgain,
    /// It changed, and what is visible of it can't be the base of a diff.
    Changed,
    /// It changed so much that a diff would be hardly shorter.
    ChangedMuch,
    /// Other lines of it are visible, but too few of these.
    FewLines,
    /// A reference would not be shorter.
    NotShorter,
}

/// Where content stands in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index of the message in the thread.
    pub message: usize,
    /// Index of the resource or block in the message.
    pub block: usize,
    /// The turn, from 1.
    pub turn: usize,
    /// The call that returned it; `None` for an attachment.
    pub call: Option<Call>,
    /// Its content's SHA-256.
    pub checksum: Checksum,
}

/// Lines of a resource that stand in other content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLines {
    /// The lines, as the resource counts them.
    pub ours: Span,
    /// Where that content stands.
    pub at: Place,
    /// The same lines as it counts them.
    pub theirs: Span,
}

/// Names a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The call's id. Not every provider is sent it, and older conversations use one several times.
    pub id: String,
    /// Which call of its turn it is, counted from 1.
    pub number: usize,
    /// The tool.
    pub tool: String,
}

impl Delivery {
    /// Returns the word for it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Full(_) => "full",
            Self::Reference { .. } => "reference",
            Self::Lines { .. } => "lines",
            Self::Diff { .. } => "diff",
            Self::Tombstone { .. } => "tombstone",
            Self::Compacted => "compacted",
        }
    }

    /// Returns where the content stands that this one builds on or points at.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        let (place, known): (_, &[KnownLines]) = match self {
            Self::Reference { at: place } | Self::Diff { base: place } => (Some(place), &[]),
            Self::Tombstone { newer } => (newer.as_ref(), &[]),
            Self::Lines { known } => (None, known),
            Self::Full(_) | Self::Compacted => (None, &[]),
        };
        place.into_iter().chain(known.iter().map(|known| &known.at))
    }
}

impl Default for Delivery {
    fn default() -> Self {
        Self::Full(WhyFull::default())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            None => write!(f, "in the attachments of turn {}", self.turn),
            Some(Call { id, number, tool }) => {
                let (tool, id) = (one_line(tool), one_line(id));
                write!(
                    f,
                    "in the result of call {number} of turn {} (`{tool}`, {id})",
                    self.turn
                )
            }
        }
    }
}

/// The field of a result's `_meta` that names the MCP server it is from. Only jp writes it.
pub const SERVER_MARK: &str = "computer.jp/server";

/// Delivers each resource of a thread, oldest first; `events` says which event each message is from.
pub(super) fn deliver(
    messages: &mut [Message<'_>],
    events: &[usize],
    dropped: &Dropped,
    policy: &Policy,
    texts: &mut dyn Texts,
) {
    let mut coverage = Coverage::default();
    let mut tombstones = Vec::new();
    for message in 0..messages.len() {
        if matches!(messages[message], Message::Assistant { .. }) {
            coverage.end_round();
        }
        let servers = servers(&messages[message]);
        for block in 0..messages[message].deliveries().len() {
            let Some(candidate) = candidate(messages, message, block, &servers, policy) else {
                continue;
            };
            if let Some(newer) = dropped.newer(&candidate, events[message]) {
                tombstones.push(((message, block), newer));
                continue;
            }
            let mut visible = Visible {
                messages,
                texts: &mut *texts,
            };
            let (delivery, text) = coverage.take(&candidate, policy, &mut visible);
            place(&mut messages[message], block, delivery, text);
        }
    }
    for ((message, block), newer) in tombstones {
        leave_out(messages, message, block, &newer);
    }
}

/// Replaces a snapshot with a line that names the first newer one that is fully visible.
fn leave_out(messages: &mut [Message<'_>], message: usize, block: usize, newer: &[(usize, usize)]) {
    let Some(snapshot) = messages[message].resource(block) else {
        return;
    };
    let older = Form::of(snapshot);
    let wholes = || {
        newer
            .iter()
            .filter_map(|(message, block)| whole(messages, *message, *block))
    };
    let replacing = wholes().find(|(_, form)| form.replaces(&older));
    // Where equal content stands in another form, the snapshot was itself a reference to that form.
    let newer = replacing
        .or_else(|| wholes().next())
        .map(|(place, _)| place);
    let text = words::tombstone(snapshot, newer.as_ref());
    place(
        &mut messages[message],
        block,
        Delivery::Tombstone { newer },
        Some(text),
    );
}

/// Returns where all of a resource is visible, and in which form: in its place, or where its reference points.
fn whole(messages: &[Message<'_>], message: usize, block: usize) -> Option<(Place, Form)> {
    let delivery = |place: &Place| &messages[place.message].deliveries()[place.block];
    let there = Place::of(messages, message, block)?;
    let place = match delivery(&there) {
        Delivery::Reference { at } => at.clone(),
        _ => there,
    };
    let shown = match &messages[place.message] {
        Message::Tool {
            response: Some(response),
            ..
        } => Shown::read_mark(&response.content[place.block]),
        _ => None,
    };
    let form = Form::shown(
        messages[place.message].resource(place.block)?,
        delivery(&place),
    );
    shown.is_none().then_some((place, form))
}

/// Describes a resource of a message; `None` for a block that is none. `servers` are those of its attachments.
pub(super) fn candidate<'m>(
    messages: &'m [Message<'_>],
    message: usize,
    block: usize,
    servers: &HashMap<usize, String>,
    policy: &Policy,
) -> Option<Candidate<'m>> {
    let is_for_user = |snapshot: &&Snapshot| {
        snapshot
            .annotations
            .as_ref()
            .is_some_and(Annotations::is_for_user)
    };
    // A model is not sent it, so nothing refers to it.
    let snapshot = messages[message]
        .resource(block)
        .filter(|snapshot| !is_for_user(snapshot))?;
    let place = Place::of(messages, message, block)?;
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
    fn of(messages: &[Message<'_>], message: usize, block: usize) -> Option<Self> {
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

/// Returns the MCP servers that attachments of a message are from: their declarations are `mcp+SERVER+URI`.
pub(super) fn servers(message: &Message<'_>) -> HashMap<usize, String> {
    let Message::User { request, .. } = message else {
        return HashMap::new();
    };
    let of_servers = request
        .delivered
        .iter()
        .filter_map(|delivered| Some((delivered.declaration.server()?, &delivered.resources)));
    of_servers
        .flat_map(|(server, resources)| resources.iter().map(|index| (*index, server.to_owned())))
        .collect()
}

/// Puts a text, where there is one, in the place of a resource's content.
fn place(message: &mut Message<'_>, block: usize, delivery: Delivery, text: Option<String>) {
    let formatted = text.map(|text| Some(Payload::Inline(text)));
    match message {
        Message::User {
            request,
            deliveries,
            ..
        } => {
            deliveries[block] = delivery;
            if let Some(formatted) = formatted {
                request.to_mut().resources[block].formatted = formatted;
            }
        }
        Message::Tool {
            response: Some(response),
            deliveries,
            ..
        } => {
            deliveries[block] = delivery;
            if let Some(formatted) = formatted {
                let block = &mut response.to_mut().content[block];
                Shown::mark(None, block);
                if let ContentBlock::Resource { resource, .. } = block {
                    resource.formatted = formatted;
                }
            }
        }
        _ => {}
    }
}

impl Message<'_> {
    /// Returns how its resources or blocks are delivered.
    #[must_use]
    pub fn deliveries(&self) -> &[Delivery] {
        match self {
            Self::User { deliveries, .. } | Self::Tool { deliveries, .. } => deliveries,
            Self::Assistant { .. } | Self::NoAnswer { .. } => &[],
        }
    }

    /// Returns a resource by its index among the resources or blocks.
    pub(super) fn resource(&self, block: usize) -> Option<&Snapshot> {
        match self {
            Self::User { request, .. } => request.resources.get(block),
            Self::Tool {
                response: Some(response),
                ..
            } => match response.content.get(block)? {
                StoredBlock::Resource { resource, .. } => Some(resource),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
