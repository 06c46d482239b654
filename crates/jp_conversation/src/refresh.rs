//! Finds the new snapshots of a refresh.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jp_resource::{BlobRef, Snapshot};

use crate::{
    ConfigDelta, Declaration, Delivered, Stream,
    attachments::newest_by_declaration,
    resolution::{self, Change},
};

/// Declarations to refresh, each with its wanted URIs; `None` means all of them.
pub type RefreshTargets = BTreeMap<Declaration, Option<BTreeSet<String>>>;

/// The result of comparing refreshed snapshots with those of the conversation.
#[derive(Debug, Default)]
pub struct Refresh {
    /// The labels of changed and new snapshots.
    pub changed: Vec<String>,
    /// The labels of unchanged snapshots.
    pub unchanged: Vec<String>,
    /// The event to record, if anything changed.
    pub delta: Option<ConfigDelta>,
}

/// Compares snapshots with the newest ones of their declarations, and keeps those that differ.
///
/// `delivered` has the declarations with their indexes in `snapshots`; `configured` are the declarations of
/// the configuration. If the next message would resolve a declaration, all its snapshots are kept, because
/// none of them was sent.
#[must_use]
pub fn compare(
    stream: &Stream,
    configured: &[Declaration],
    snapshots: &[Snapshot],
    delivered: Vec<Delivered>,
    targets: &RefreshTargets,
) -> Refresh {
    let newest = newest_by_declaration(stream);
    let pending: HashSet<_> = resolution::plan(stream, configured, &[])
        .resolve
        .into_iter()
        .collect();
    let mut refresh = Refresh::default();
    let mut delta = ConfigDelta::default();
    // Indexes in the delta by indexes in `snapshots`. Two declarations may have the same snapshot.
    let mut kept = HashMap::new();
    for Delivered {
        declaration,
        resources,
    } in delivered
    {
        // The next message delivers these snapshots instead of resolving it, so it needs all of them,
        // known or not.
        let is_pending = pending.contains(&declaration);
        let known = newest
            .get(&declaration)
            .into_iter()
            .flatten()
            .filter(|_| !is_pending);
        let known = Known::new(&known.map(|(_, snapshot)| *snapshot).collect::<Vec<_>>());
        let given: Vec<&Snapshot> = resources.iter().map(|index| &snapshots[*index]).collect();
        let mut stale = Stale::find(&known, &given);
        let wanted = targets
            .get(&declaration)
            .and_then(Option::as_ref)
            .filter(|_| !is_pending);
        let mut changed = Vec::new();
        for index in resources {
            let snapshot = &snapshots[index];
            let uri = snapshot.uri.as_str();
            if wanted.is_some_and(|uris| !uris.contains(uri)) {
                continue;
            }
            if !stale.has(uri) {
                refresh.unchanged.push(snapshot.label().to_owned());
                continue;
            }
            changed.push(*kept.entry(index).or_insert_with(|| {
                // It is unknown which contents of a resized resource differ, so its label is listed once.
                if !known.has(snapshot) || stale.take_resized(uri) {
                    refresh.changed.push(snapshot.label().to_owned());
                }
                delta.resources.push(snapshot.clone());
                delta.resources.len() - 1
            }));
        }
        if !changed.is_empty() {
            delta.delivered.push(Delivered {
                declaration,
                resources: changed,
            });
        }
    }
    if !delta.delivered.is_empty() {
        let add = delta
            .delivered
            .iter()
            .map(|one| one.declaration.clone())
            .collect();
        delta.delta = Change {
            add,
            ..Change::default()
        }
        .into_delta()
        .delta;
        refresh.delta = Some(delta);
    }
    refresh
}

/// The earlier contents of a declaration.
struct Known<'s> {
    versions: HashSet<(&'s str, BlobRef)>,
    counts: HashMap<&'s str, usize>,
}

impl<'s> Known<'s> {
    fn new(snapshots: &[&'s Snapshot]) -> Self {
        let versions = snapshots
            .iter()
            .map(|snapshot| (snapshot.uri.as_str(), snapshot.blob_ref()));
        Self {
            versions: versions.collect(),
            counts: count_contents(snapshots),
        }
    }

    fn has(&self, snapshot: &Snapshot) -> bool {
        self.versions
            .contains(&(&snapshot.uri, snapshot.blob_ref()))
    }
}

/// The URIs of a declaration with changed contents.
///
/// Contents of one MCP resource may share a URI. They are kept or left out together, because only their order
/// and number distinguish them.
struct Stale<'s> {
    /// The URIs with a version that the conversation doesn't have.
    new: HashSet<&'s str>,
    /// The URIs with known versions, but another number of them; true until the label is listed.
    resized: HashMap<&'s str, bool>,
}

impl<'s> Stale<'s> {
    fn find(known: &Known<'_>, given: &[&'s Snapshot]) -> Self {
        let new: HashSet<&str> = given
            .iter()
            .filter(|one| !known.has(one))
            .map(|one| one.uri.as_str())
            .collect();
        let now = count_contents(given);
        let is_resized = |uri: &&str| known.counts.get(uri) != now.get(uri) && !new.contains(uri);
        let resized = now
            .keys()
            .copied()
            .filter(is_resized)
            .map(|uri| (uri, true))
            .collect();
        Self { new, resized }
    }

    fn has(&self, uri: &str) -> bool {
        self.new.contains(uri) || self.resized.contains_key(uri)
    }

    /// Returns true if a resized URI isn't listed yet, and marks it as listed.
    fn take_resized(&mut self, uri: &str) -> bool {
        self.resized.get_mut(uri).is_some_and(std::mem::take)
    }
}

/// Returns the number of contents of each URI.
fn count_contents<'s>(snapshots: &[&'s Snapshot]) -> HashMap<&'s str, usize> {
    let mut counts = HashMap::new();
    snapshots
        .iter()
        .for_each(|snapshot| *counts.entry(snapshot.uri.as_str()).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use jp_resource::{Payload, Resource, ResourceContent};

    use super::*;
    use crate::{Event, EventKind};

    /// The snapshots of one declaration: a URI and a text each.
    fn taken(contents: &[(&str, &str)]) -> (Vec<Snapshot>, Vec<Delivered>) {
        let snapshot = |(uri, text): &(&str, &str)| {
            Resource::new(
                *uri,
                Payload::Inline(ResourceContent::Text((*text).to_owned())),
            )
        };
        let resources = (0..contents.len()).collect();
        let delivered = vec![Delivered {
            declaration: Declaration::new("mcp+docs+x://y"),
            resources,
        }];
        (contents.iter().map(snapshot).collect(), delivered)
    }

    /// Refreshes a conversation that took each of `before`, one after the other; `after` is there now.
    fn refresh(before: &[&[(&str, &str)]], after: &[(&str, &str)]) -> Refresh {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let known = before.iter().map(|contents| {
            let (resources, delivered) = taken(contents);
            let known = ConfigDelta {
                resources,
                delivered,
                ..ConfigDelta::default()
            };
            Event::new(now, EventKind::ConfigDelta(known))
        });
        let stream = Stream::from_events(known.collect());
        let (snapshots, delivered) = taken(after);
        compare(&stream, &[], &snapshots, delivered, &RefreshTargets::new())
    }

    #[test]
    fn contents_that_share_a_uri_are_kept_together() {
        let refreshed = refresh(
            &[&[("x://y", "one"), ("x://y", "two"), ("x://z", "z")]],
            &[("x://y", "one"), ("x://y", "2"), ("x://z", "z")],
        );
        let kept = taken(&[("x://y", "one"), ("x://y", "2")]);
        let delta = refreshed.delta.unwrap();
        assert_eq!((delta.resources, delta.delivered), kept);
        assert_eq!(
            (refreshed.changed, refreshed.unchanged),
            (vec!["x://y".to_owned()], vec!["x://z".to_owned()])
        );
    }

    #[test]
    fn resource_with_fewer_contents_has_changed() {
        let before = [
            ("x://y", "one"),
            ("x://y", "two"),
            ("x://y", "two"),
            ("x://z", "z"),
        ];
        for after in [&before[..1], &before[..2]] {
            let shrunk = refresh(&[&before], after);
            assert_eq!(shrunk.delta.unwrap().resources, taken(after).0);
            assert_eq!(
                (shrunk.changed, shrunk.unchanged),
                (vec!["x://y".to_owned()], vec![])
            );
            assert!(
                refresh(&[&before, after], after).delta.is_none(),
                "that was taken already"
            );
        }
        assert!(refresh(&[&before], &before).delta.is_none());
    }
}
