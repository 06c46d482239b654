//! Finds the snapshots that a request leaves out because it has newer ones.

use std::collections::{HashMap, HashSet};

use jp_resource::{Checksum, Snapshot};

use super::{
    Delivery, Message, Policy, SupersededPolicy,
    candidate::{Candidate, find_candidate, is_text, servers_of_attachments},
    size::{resource_bytes, tokens},
};
use crate::{Event, EventKind, Version};

/// A URI with its MCP server. Another server's content may have the same URI.
type Identity = (String, Option<String>);

/// The snapshots that a thread leaves out.
#[derive(Default)]
pub(super) struct Dropped {
    versions: HashMap<Identity, Outdated>,
}

/// The versions of one resource that are left out.
#[derive(Default)]
struct Outdated {
    /// The index of the event before which each version is left out.
    ends: HashMap<Checksum, usize>,
    /// The last of these events.
    end: usize,
    /// The remaining blocks that were in the thread at the last decision, oldest first.
    standing: Vec<StandingBlock>,
}

/// A block that is not left out.
struct StandingBlock {
    message: usize,
    block: usize,
    checksum: Checksum,
    form: Form,
    /// True if only its head and tail are shown.
    is_cut: bool,
}

/// The form in which a model sees a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// As plain text.
    Text,
    /// As formatted text.
    Formatted,
    /// As binary content of this type.
    Binary(Option<String>),
}

impl Form {
    /// Returns the form in which a resource is delivered whole.
    pub(super) fn from_snapshot(snapshot: &Snapshot) -> Self {
        if snapshot.formatted.is_some() {
            Self::Formatted
        } else if is_text(snapshot) {
            Self::Text
        } else {
            Self::Binary(snapshot.mime_type.clone())
        }
    }

    /// Returns the form of a resource that is delivered, but not as a reference.
    pub(super) fn from_delivery(snapshot: &Snapshot, delivery: &Delivery) -> Self {
        match delivery {
            // Only text is compared, and jp wrote the text in its place.
            Delivery::Diff { .. } | Delivery::Lines { .. } => Self::Text,
            _ => Self::from_snapshot(snapshot),
        }
    }

    /// Returns true if a newer version in this form replaces an older one in another.
    ///
    /// Text shows all of a version. Any other form only replaces the same form, because not every model accepts
    /// every type, and a formatted text may omit content.
    pub(super) fn replaces(&self, older: &Self) -> bool {
        *self == Self::Text || self == older
    }
}

/// Returns the versions that newer ones have replaced, among the messages of a request.
pub(super) fn outdated_versions(messages: &[Message<'_>], policy: &Policy) -> Vec<Version> {
    let standing = Standing::new(messages, policy);
    let kept = standing.versions_to_keep();
    let mut gone: HashSet<usize> = HashSet::new();
    for (index, block) in standing.blocks.iter().enumerate() {
        // All blocks of a version stay or go together, because decisions name versions.
        if kept.contains(&standing.version(block)) {
            continue;
        }
        let is_large = tokens(resource_bytes(block.snapshot)) >= policy.superseded_min_tokens;
        // Blocks are sorted from the oldest, so the bases of a block are decided before it.
        let is_gone = match standing.delivery(block) {
            Delivery::Full(_) => is_large,
            delivery => standing.bases(delivery).any(|base| gone.contains(&base)),
        };
        if is_gone {
            gone.insert(index);
        }
    }
    let mut named = HashSet::new();
    let gone = standing
        .blocks
        .iter()
        .enumerate()
        .filter(|(index, _)| gone.contains(index));
    let gone = gone
        .map(|(_, block)| standing.version(block))
        // A version may be in several blocks.
        .filter(|version| named.insert(*version));
    gone.map(|((uri, server), checksum)| Version {
        uri: uri.to_owned(),
        checksum,
        server: server.map(str::to_owned),
    })
    .collect()
}

/// The remaining resources of a thread, oldest first.
struct Standing<'m, 'a> {
    messages: &'m [Message<'a>],
    blocks: Vec<Candidate<'m>>,
    /// The index of each by its message and block.
    indexes: HashMap<(usize, usize), usize>,
    /// The last message in which all of a version of a resource is visible, by its form.
    wholes: HashMap<(&'m str, Option<String>, Form), usize>,
}

/// A version of a resource: its URI, its server and its checksum.
type VersionOf<'s> = ((&'s str, Option<&'s str>), Checksum);

impl<'m, 'a> Standing<'m, 'a> {
    fn new(messages: &'m [Message<'a>], policy: &Policy) -> Self {
        let blocks: Vec<_> = resources(messages, policy)
            .filter(|block| !matches!(delivery(messages, block), Delivery::Tombstone { .. }))
            .collect();
        let indexes = blocks
            .iter()
            .enumerate()
            .map(|(index, block)| ((block.place.message, block.place.block), index))
            .collect();
        let mut standing = Self {
            messages,
            blocks,
            indexes,
            wholes: HashMap::new(),
        };
        let wholes = standing
            .blocks
            .iter()
            .filter(|block| standing.is_whole(block));
        let wholes = wholes.map(|block| {
            (
                standing.key(block, standing.form(block)),
                block.place.message,
            )
        });
        standing.wholes = wholes.collect();
        standing
    }

    fn delivery(&self, block: &Candidate<'_>) -> &'m Delivery {
        delivery(self.messages, block)
    }

    fn key(&self, block: &Candidate<'m>, form: Form) -> (&'m str, Option<String>, Form) {
        (&block.snapshot.uri, block.server.clone(), form)
    }

    fn version<'s>(&'s self, block: &'s Candidate<'m>) -> VersionOf<'s> {
        (
            (&block.snapshot.uri, block.server.as_deref()),
            block.place.checksum,
        )
    }

    /// Returns the target of a reference, or the block itself.
    fn shown_block<'s>(&'s self, block: &'s Candidate<'m>) -> &'s Candidate<'m> {
        match self.delivery(block) {
            reference @ Delivery::Reference { .. } => self
                .bases(reference)
                .next()
                .map_or(block, |base| &self.blocks[base]),
            _ => block,
        }
    }

    /// Returns true if all of a block's version is visible, here or in other places.
    fn is_whole(&self, block: &Candidate<'m>) -> bool {
        self.shown_block(block).shown.is_none()
    }

    fn form(&self, block: &Candidate<'m>) -> Form {
        let shown = self.shown_block(block);
        Form::from_delivery(shown.snapshot, self.delivery(shown))
    }

    /// Returns true if a newer version is visible whole. Contents of one message may share a URI; they aren't
    /// versions of each other.
    fn is_outdated(&self, block: &Candidate<'m>) -> bool {
        // Text replaces every form. Other forms only replace themselves.
        self.is_whole_after(block, Form::Text) || self.is_whole_after(block, self.form(block))
    }

    /// Returns true if a later message shows all of a version in this form.
    fn is_whole_after(&self, block: &Candidate<'m>, form: Form) -> bool {
        self.wholes
            .get(&self.key(block, form))
            .is_some_and(|message| *message > block.place.message)
    }

    /// Returns the indexes of the resources that a delivery builds on.
    fn bases(&self, delivery: &'m Delivery) -> impl Iterator<Item = usize> {
        let builds = matches!(
            delivery,
            Delivery::Lines { .. } | Delivery::Diff { .. } | Delivery::Reference { .. }
        );
        let places = delivery.places().filter(move |_| builds);
        places.filter_map(|place| self.indexes.get(&(place.message, place.block)).copied())
    }

    /// Returns the versions that no newer one replaces, and those that they build on.
    fn versions_to_keep(&self) -> HashSet<VersionOf<'_>> {
        let remaining = self.blocks.iter().filter(|block| !self.is_outdated(block));
        let mut kept: HashSet<VersionOf<'_>> = remaining.map(|block| self.version(block)).collect();
        let mut needed: HashSet<usize> = HashSet::new();
        // From the newest back, because a base precedes the block that builds on it.
        for (index, block) in self.blocks.iter().enumerate().rev() {
            if kept.contains(&self.version(block)) || needed.contains(&index) {
                needed.extend(self.bases(self.delivery(block)));
            }
        }
        kept.extend(
            needed
                .into_iter()
                .map(|index| self.version(&self.blocks[index])),
        );
        kept
    }
}

fn delivery<'m>(messages: &'m [Message<'_>], block: &Candidate<'_>) -> &'m Delivery {
    &messages[block.place.message].deliveries()[block.place.block]
}

fn resources<'m>(
    messages: &'m [Message<'_>],
    policy: &Policy,
) -> impl Iterator<Item = Candidate<'m>> {
    (0..messages.len()).flat_map(move |message| {
        let servers = servers_of_attachments(&messages[message]);
        let blocks = 0..messages[message].deliveries().len();
        blocks.filter_map(move |block| find_candidate(messages, message, block, &servers, policy))
    })
}

impl Dropped {
    /// Finds the versions to leave out: recorded ones and those in `always`. `origins` has the index of each message's
    /// event.
    pub(super) fn new(
        events: &[Event],
        always: Vec<Version>,
        messages: &[Message<'_>],
        origins: &[usize],
        policy: &Policy,
    ) -> Self {
        let mut dropped = Self::default();
        if policy.superseded != SupersededPolicy::Keep {
            for (index, event) in events.iter().enumerate() {
                if let EventKind::Superseded(superseded) = &event.kind {
                    superseded
                        .dropped
                        .iter()
                        .for_each(|version| dropped.add(version, index));
                }
            }
        }
        always
            .iter()
            .for_each(|version| dropped.add(version, events.len()));
        if !dropped.versions.is_empty() {
            dropped.find_standing(messages, origins, policy);
        }
        dropped
    }

    fn add(&mut self, version: &Version, event: usize) {
        let identity = (version.uri.clone(), version.server.clone());
        let outdated = self.versions.entry(identity).or_default();
        outdated.ends.insert(version.checksum, event);
        outdated.end = outdated.end.max(event);
    }

    /// Finds the blocks that existed at the last decision about each resource. Later versions change nothing.
    fn find_standing(&mut self, messages: &[Message<'_>], origins: &[usize], policy: &Policy) {
        for candidate in resources(messages, policy) {
            let (message, block, checksum) = (
                candidate.place.message,
                candidate.place.block,
                candidate.place.checksum,
            );
            let identity = (candidate.snapshot.uri.clone(), candidate.server.clone());
            let Some(outdated) = self.versions.get_mut(&identity) else {
                continue;
            };
            // Blocks after the decision can't have been its reason, and would change old requests.
            if origins[message] < outdated.end && !outdated.is_named(checksum, origins[message]) {
                let (form, is_cut) = (
                    Form::from_snapshot(candidate.snapshot),
                    candidate.shown.is_some(),
                );
                outdated.standing.push(StandingBlock {
                    message,
                    block,
                    checksum,
                    form,
                    is_cut,
                });
            }
        }
    }

    /// Returns the messages and blocks of the versions that replace a resource, the newest first. `None` if the resource
    /// is not left out.
    ///
    /// If only parts of newer versions are visible, the resource stays, although a decision names it; earlier versions of
    /// jp made such decisions. After a compaction there may be no newer version.
    pub(super) fn newer(
        &self,
        candidate: &Candidate<'_>,
        event: usize,
    ) -> Option<Vec<(usize, usize)>> {
        if self.versions.is_empty() {
            return None;
        }
        let identity = (candidate.snapshot.uri.clone(), candidate.server.clone());
        let outdated = self.versions.get(&identity)?;
        if !outdated.is_named(candidate.place.checksum, event) {
            return None;
        }
        let (message, form) = (
            candidate.place.message,
            Form::from_snapshot(candidate.snapshot),
        );
        let later = outdated
            .standing
            .iter()
            .rev()
            .filter(|block| block.message > message);
        let whole = later.filter(|block| {
            outdated
                .whole(block)
                .is_some_and(|whole| whole.form.replaces(&form))
        });
        let newer: Vec<_> = whole.map(|block| (block.message, block.block)).collect();
        let has_parts = outdated
            .standing
            .last()
            .is_some_and(|block| block.message >= message);
        (!newer.is_empty() || !has_parts).then_some(newer)
    }
}

impl Outdated {
    /// Returns true if a decision names a version.
    fn is_named(&self, checksum: Checksum, event: usize) -> bool {
        self.ends.get(&checksum).is_some_and(|end| event < *end)
    }

    /// Returns a block that shows all of a block's version: the block itself, or an earlier one that a reference would
    /// name.
    fn whole<'s>(&'s self, block: &'s StandingBlock) -> Option<&'s StandingBlock> {
        if !block.is_cut {
            return Some(block);
        }
        let at = (block.message, block.block);
        let before = self
            .standing
            .iter()
            .take_while(|other| (other.message, other.block) < at);
        before
            .filter(|other| other.checksum == block.checksum && !other.is_cut)
            .last()
    }
}
