//! Which snapshots are left out because newer ones stand in the same request.

use std::collections::{HashMap, HashSet};

use jp_resource::Checksum;

use super::{
    Delivery, Message, Policy, SupersededPolicy, Texts,
    coverage::Candidate,
    delivered,
    delivery::{candidate, servers},
    hints::resource_bytes,
    tokens,
};
use crate::{Event, EventKind, Stream, Version};

/// A URI and the MCP server that it is from: another server's content may have the same URI.
type Identity = (String, Option<String>);

/// The snapshots that are left out of a thread, each with the place of the newer one.
#[derive(Default)]
pub(super) struct Dropped {
    versions: HashMap<Identity, Outdated>,
}

/// What is left out of one resource.
#[derive(Default)]
struct Outdated {
    /// Before which event each version is left out.
    ends: HashMap<Checksum, usize>,
    /// The last of these events.
    end: usize,
    /// Where the newest version stands that is not left out: its message and block.
    newest: Option<(usize, usize)>,
}

/// Returns the versions that newer ones have replaced, where leaving them out saves as much as the policy wants.
///
/// A version that a newest one in the request builds on stays; those that only outdated ones build on go together with
/// them. Whoever records them in a `superseded` event leaves them out of the requests from there on.
#[must_use]
pub fn superseded(stream: &Stream, policy: &Policy, texts: &mut dyn Texts) -> Vec<Version> {
    if policy.superseded == SupersededPolicy::Keep {
        return Vec::new();
    }
    let recorded = Policy { superseded: SupersededPolicy::WhenCold, ..policy.clone() };
    let messages = delivered(stream, &recorded, texts).messages;
    let standing = Standing::of(&messages, policy);
    let needed = standing.needed();
    let mut gone: HashSet<usize> = HashSet::new();
    for (index, block) in standing.blocks.iter().enumerate() {
        if standing.is_newest(block) || needed.contains(&standing.version(block)) {
            continue;
        }
        let is_large = tokens(resource_bytes(block.snapshot)) >= policy.superseded_min_tokens;
        let is_gone = match standing.delivery(block) {
            Delivery::Full(_) => is_large,
            delivery => standing.bases(delivery).any(|base| gone.contains(&base)),
        };
        if is_gone {
            gone.insert(index);
        }
    }
    let mut named = HashSet::new();
    let gone = standing.blocks.iter().enumerate().filter(|(index, _)| gone.contains(index));
    let gone = gone.map(|(_, block)| standing.version(block)).filter(|version| named.insert(*version));
    gone.map(|((uri, server), checksum)| Version {
        uri: uri.to_owned(),
        checksum,
        server: server.map(str::to_owned),
    })
    .collect()
}

/// The resources of a thread, oldest first.
struct Standing<'m, 'a> {
    messages: &'m [Message<'a>],
    blocks: Vec<Candidate<'m>>,
    /// The index of each by its message and block.
    indexes: HashMap<(usize, usize), usize>,
    newest: HashMap<(&'m str, Option<String>), Checksum>,
}

/// A version of a resource: its URI, its server and its checksum.
type VersionOf<'s> = ((&'s str, Option<&'s str>), Checksum);

impl<'m, 'a> Standing<'m, 'a> {
    fn of(messages: &'m [Message<'a>], policy: &Policy) -> Self {
        let blocks: Vec<_> = resources(messages, policy).collect();
        let place = |block: &Candidate<'_>| (block.place.message, block.place.block);
        let indexes = blocks.iter().enumerate().map(|(index, block)| (place(block), index)).collect();
        let identity = |block: &Candidate<'m>| (block.snapshot.uri.as_str(), block.server.clone());
        let newest = blocks.iter().map(|block| (identity(block), block.place.checksum)).collect();
        Self { messages, blocks, indexes, newest }
    }

    fn delivery(&self, block: &Candidate<'_>) -> &'m Delivery {
        &self.messages[block.place.message].deliveries()[block.place.block]
    }

    fn version<'s>(&'s self, block: &'s Candidate<'m>) -> VersionOf<'s> {
        ((&block.snapshot.uri, block.server.as_deref()), block.place.checksum)
    }

    fn is_newest(&self, block: &Candidate<'m>) -> bool {
        self.newest[&(block.snapshot.uri.as_str(), block.server.clone())] == block.place.checksum
    }

    /// Returns the resources that one builds on.
    fn bases(&self, delivery: &'m Delivery) -> impl Iterator<Item = usize> {
        let builds =
            matches!(delivery, Delivery::Lines { .. } | Delivery::Diff { .. } | Delivery::Reference { .. });
        let places = delivery.places().filter(move |_| builds);
        places.filter_map(|place| self.indexes.get(&(place.message, place.block)).copied())
    }

    /// Returns the versions that it takes to know the newest ones: what builds on another stands after it.
    fn needed(&self) -> HashSet<VersionOf<'_>> {
        let mut needed: HashSet<usize> = HashSet::new();
        for (index, block) in self.blocks.iter().enumerate().rev() {
            if self.is_newest(block) || needed.contains(&index) {
                needed.extend(self.bases(self.delivery(block)));
            }
        }
        let needed = needed.into_iter().map(|index| self.version(&self.blocks[index]));
        needed.collect()
    }
}

fn resources<'m>(messages: &'m [Message<'_>], policy: &Policy) -> impl Iterator<Item = Candidate<'m>> {
    (0..messages.len()).flat_map(move |message| {
        let servers = servers(&messages[message]);
        let blocks = 0..messages[message].deliveries().len();
        blocks.filter_map(move |block| candidate(messages, message, block, &servers, policy))
    })
}

impl Dropped {
    /// Finds out what is left out of messages: what was recorded, and what `always` adds. `origins` says which event each
    /// message is from.
    pub(super) fn of(
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
                    superseded.dropped.iter().for_each(|version| dropped.add(version, index));
                }
            }
        }
        always.iter().for_each(|version| dropped.add(version, events.len()));
        if !dropped.versions.is_empty() {
            dropped.find_newest(messages, origins, policy);
        }
        dropped
    }

    fn add(&mut self, version: &Version, event: usize) {
        let identity = (version.uri.clone(), version.server.clone());
        let outdated = self.versions.entry(identity).or_default();
        outdated.ends.insert(version.checksum, event);
        outdated.end = outdated.end.max(event);
    }

    /// Finds what stood there when the last decision on a resource was made: later versions change nothing.
    fn find_newest(&mut self, messages: &[Message<'_>], origins: &[usize], policy: &Policy) {
        for candidate in resources(messages, policy) {
            let place = &candidate.place;
            let event = origins[place.message];
            let identity = (candidate.snapshot.uri.clone(), candidate.server.clone());
            let Some(outdated) = self.versions.get_mut(&identity) else { continue };
            if event < outdated.end && !outdated.leaves_out(place.checksum, event) {
                outdated.newest = Some((place.message, place.block));
            }
        }
    }

    /// Returns where the newer version of what is left out stands, if it does; `None` for what is not left out.
    #[expect(
        clippy::option_option,
        reason = "left out with a newer version, left out without one, or not left out"
    )]
    pub(super) fn newer(&self, candidate: &Candidate<'_>, event: usize) -> Option<Option<(usize, usize)>> {
        if self.versions.is_empty() {
            return None;
        }
        let identity = (candidate.snapshot.uri.clone(), candidate.server.clone());
        let outdated = self.versions.get(&identity)?;
        let this = (candidate.place.message, candidate.place.block);
        let newer = || outdated.newest.filter(|newest| *newest > this);
        outdated.leaves_out(candidate.place.checksum, event).then(newer)
    }
}

impl Outdated {
    fn leaves_out(&self, checksum: Checksum, event: usize) -> bool {
        self.ends.get(&checksum).is_some_and(|end| event < *end)
    }
}
