//! Which snapshots are left out because newer ones stand in the same request.

use std::collections::{HashMap, HashSet};

use jp_resource::Checksum;

use super::{
    Delivery, Message, Policy, SupersededPolicy, Texts, coverage::Candidate, delivered, delivery::candidate,
    hints::resource_bytes, tokens,
};
use crate::{Event, EventKind, Stream, Version};

/// The snapshots that are left out of a thread, each with the place of the newer one.
#[derive(Default)]
pub(super) struct Dropped {
    /// By URI: versions, each with the index of the event before which all of it is left out.
    versions: HashMap<String, HashMap<Checksum, usize>>,
    /// By URI: where those of its versions stand that are not left out, by the events that they are from.
    standing: HashMap<String, Vec<Standing>>,
}

struct Standing {
    event: usize,
    message: usize,
    block: usize,
}

/// Returns the versions that newer ones have replaced and that nothing in the request builds on, where leaving them out
/// saves as much as the policy wants.
///
/// Whoever records them in a `superseded` event leaves them out of the requests from there on.
#[must_use]
pub fn superseded(stream: &Stream, policy: &Policy, texts: &mut dyn Texts) -> Vec<Version> {
    if policy.superseded == SupersededPolicy::Keep {
        return Vec::new();
    }
    let recorded = Policy { superseded: SupersededPolicy::WhenCold, ..policy.clone() };
    let messages = delivered(stream, &recorded, texts).messages;
    let standing: Vec<_> = resources(&messages, policy).collect();
    let newest: HashMap<&str, Checksum> =
        standing.iter().map(|candidate| (&*candidate.snapshot.uri, candidate.place.checksum)).collect();
    let delivery =
        |candidate: &Candidate<'_>| &messages[candidate.place.message].deliveries()[candidate.place.block];
    let builds = |candidate: &&Candidate<'_>| {
        matches!(delivery(candidate), Delivery::Lines { .. } | Delivery::Diff { .. })
    };
    let bases = standing.iter().filter(builds).flat_map(|candidate| delivery(candidate).places());
    let bases: HashSet<_> = bases.map(|at| (at.message, at.block)).collect();
    let is_base =
        |candidate: &Candidate<'_>| bases.contains(&(candidate.place.message, candidate.place.block));
    let version = |candidate: &Candidate<'_>| (candidate.snapshot.uri.clone(), candidate.place.checksum);
    let mut settled: HashSet<(String, Checksum)> =
        standing.iter().filter(|candidate| is_base(candidate)).map(version).collect();
    let is_replaced = |candidate: &&Candidate<'_>| {
        let is_large = tokens(resource_bytes(candidate.snapshot)) >= policy.superseded_min_tokens;
        let is_whole = matches!(delivery(candidate), Delivery::Full(_));
        is_whole && is_large && newest[&*candidate.snapshot.uri] != candidate.place.checksum
    };
    let replaced = standing.iter().filter(is_replaced).map(version);
    let replaced = replaced.filter(|version| settled.insert(version.clone()));
    replaced.map(|(uri, checksum)| Version { uri, checksum }).collect()
}

fn resources<'m>(messages: &'m [Message<'_>], policy: &Policy) -> impl Iterator<Item = Candidate<'m>> {
    (0..messages.len()).flat_map(move |message| {
        let blocks = 0..messages[message].deliveries().len();
        blocks.filter_map(move |block| candidate(messages, message, block, policy))
    })
}

impl Dropped {
    /// Finds out what is left out: what was recorded, and what `always` adds.
    pub(super) fn new(events: &[Event], always: Vec<Version>, policy: &Policy) -> Self {
        let mut versions: HashMap<String, HashMap<Checksum, usize>> = HashMap::new();
        let mut add = |version: &Version, event: usize| {
            versions.entry(version.uri.clone()).or_default().insert(version.checksum, event);
        };
        if policy.superseded != SupersededPolicy::Keep {
            for (index, event) in events.iter().enumerate() {
                if let EventKind::Superseded(superseded) = &event.kind {
                    superseded.dropped.iter().for_each(|version| add(version, index));
                }
            }
        }
        always.iter().for_each(|version| add(version, events.len()));
        Self { versions, standing: HashMap::new() }
    }

    /// Notes where the versions of what is left out stand; `events` says which event each message is from.
    pub(super) fn find(&mut self, messages: &[Message<'_>], events: &[usize], policy: &Policy) {
        if self.versions.is_empty() {
            return;
        }
        for candidate in resources(messages, policy) {
            let (uri, place) = (&candidate.snapshot.uri, &candidate.place);
            let Some(versions) = self.versions.get(uri) else { continue };
            let event = events[place.message];
            if versions.get(&place.checksum).is_none_or(|end| event >= *end) {
                let standing = Standing { event, message: place.message, block: place.block };
                self.standing.entry(uri.clone()).or_default().push(standing);
            }
        }
        self.standing.values_mut().for_each(|standing| standing.sort_by_key(|standing| standing.event));
    }

    /// Returns where the newer version of what is left out stands; `None` where it is not left out.
    ///
    /// That is the newest one that stood there when the decision was made, so later ones change nothing.
    pub(super) fn newer(&self, candidate: &Candidate<'_>, event: usize) -> Option<(usize, usize)> {
        let uri = &candidate.snapshot.uri;
        let end = *self.versions.get(uri)?.get(&candidate.place.checksum).filter(|end| event < **end)?;
        let standing = self.standing.get(uri)?;
        let before = standing.partition_point(|standing| standing.event < end);
        let Standing { message, block, .. } = standing[..before].last()?;
        let is_after = (*message, *block) > (candidate.place.message, candidate.place.block);
        is_after.then_some((*message, *block))
    }
}
