//! `jp resource refresh`: new snapshots by hand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jp_conversation::{
    ConfigDelta, Declaration, Delivered, Stream,
    delivered::newest_by_declaration,
    resolution::{self, Change, Plan},
};
use jp_resource::{BlobRef, Snapshot};
use serde_json::json;

use crate::{
    cmd::{
        attachment::record,
        query::{
            declarations::{configured, place, resolving},
            keeper::Keeper,
            resolve::{Attachments, Earlier, resolve},
        },
    },
    error::{Code, Failure},
    size,
    workspace::Context,
};

/// Resolves what was asked for again; what has changed goes with the next message.
pub(super) fn refresh(context: &Context<'_>, id: Option<&str>, wanted: &[String]) -> Result<Code, Failure> {
    let found = context.selected(id)?;
    let conversation = context.read(&found)?;
    let config = context.config(Some(&conversation), &[])?;
    let place = place(context, &config)?;
    let configured = configured(&config, &place)?;
    let stream = &conversation.stream;
    let mut declared = resolution::effective(stream, &configured.declarations);
    let excludes: Vec<_> = declared.extract_if(.., |declaration| declaration.is_exclude()).collect();
    let can_resolve = |declaration: &Declaration| {
        !declaration.names_snapshot() || configured.sources.contains_key(declaration)
    };
    let targets = if wanted.is_empty() {
        let (resolvable, snapshots): (Vec<_>, Vec<_>) = declared.into_iter().partition(can_resolve);
        if !snapshots.is_empty() {
            let left = size::count(snapshots.len(), "snapshot");
            context.output.status(&format!("{left} of what can't be read again stay as they are."));
        }
        resolvable.into_iter().map(|declaration| (declaration, None)).collect()
    } else {
        let targets = targets(stream, &declared, wanted, &place)?;
        if let Some(declaration) = targets.keys().find(|declaration| !can_resolve(declaration)) {
            return Err(unrepeatable(declaration));
        }
        targets
    };
    let resolve_these: Vec<_> = declarations_in_order(stream, &configured.declarations, &targets);
    let batch = found.store.batch();
    let stamps = context.workspace.stamps();
    let keeper = Keeper::new(&batch, &stamps);
    let plan = Plan { resolve: resolve_these, excludes, ..Plan::default() };
    let earlier = Earlier { plan, configured: &configured, is_new: false, named: id };
    // One that fails does not keep the others old.
    let resolving = resolving(context, &config, &place, &keeper, wanted.is_empty())?;
    let taken = resolve(context, &config, earlier, Vec::new(), &resolving)
        .map_err(crate::cmd::attachment::without_skipping)?;
    let code = if taken.lacks_approval { Code::Failed } else { Code::Done };
    let outcome = Outcome::of(stream, &pending(stream, &configured.declarations), taken, &targets);
    let report = json!({"refreshed": &outcome.changed, "unchanged": &outcome.unchanged});
    if let Some(delta) = outcome.delta {
        record(context, &found, delta, batch)?;
    }
    if context.output.is_json() {
        context.output.json(&report)?;
        return Ok(code);
    }
    for name in &outcome.changed {
        context.output.status(&format!("{name} has a new snapshot, which goes with the next message."));
    }
    if !outcome.unchanged.is_empty() {
        let unchanged = outcome.unchanged.len();
        let text =
            if unchanged == 1 { outcome.unchanged[0].clone() } else { size::count(unchanged, "resource") };
        let verb = if unchanged == 1 { "is" } else { "are" };
        context.output.status(&format!("{text} {verb} unchanged since the newest snapshot."));
    }
    Ok(code)
}

fn unrepeatable(declaration: &Declaration) -> Failure {
    Failure::new(format!("{declaration} can't be read again: nothing says where it is from"))
        .with_hint("attach the file, or what it is of, once more.")
}

/// What is to be refreshed: declarations, and which URIs of what each gives, where not all.
type Targets = BTreeMap<Declaration, Option<BTreeSet<String>>>;

/// Finds what a person means: URIs and names of snapshots, or declarations as they were typed.
fn targets(
    stream: &Stream,
    declared: &[Declaration],
    wanted: &[String],
    place: &jp_attachment::Place,
) -> Result<Targets, Failure> {
    let newest = newest_by_declaration(stream);
    let mut targets = Targets::new();
    for text in wanted {
        let mut is_found = false;
        let meant = jp_attachment::possible_declarations(text, place);
        for declaration in declared {
            if meant.iter().any(|meant| meant == declaration.as_str()) {
                is_found = true;
                targets.insert(declaration.clone(), None);
                continue;
            }
            let given = newest.get(declaration).into_iter().flatten();
            let is_meant =
                |snapshot: &&Snapshot| snapshot.uri == *text || snapshot.name.as_ref() == Some(text);
            for snapshot in given.map(|(_, snapshot)| *snapshot).filter(is_meant) {
                is_found = true;
                let uris = targets.entry(declaration.clone()).or_insert_with(|| Some(BTreeSet::new()));
                uris.as_mut().map(|uris| uris.insert(snapshot.uri.clone()));
            }
        }
        if !is_found {
            let text = jp_attachment::redacted(text);
            return Err(Failure::new(format!("{text} is not attached to the conversation"))
                .with_hint("`jp attachment ls` lists what is."));
        }
    }
    Ok(targets)
}

/// Returns the targets in declared order.
fn declarations_in_order(stream: &Stream, configured: &[Declaration], targets: &Targets) -> Vec<Declaration> {
    let declared = resolution::effective(stream, configured);
    declared.into_iter().filter(|declaration| targets.contains_key(declaration)).collect()
}

/// Returns the declarations that the next message would resolve.
fn pending(stream: &Stream, configured: &[Declaration]) -> HashSet<Declaration> {
    resolution::plan(stream, configured, &[]).resolve.into_iter().collect()
}

/// What refreshing found out.
struct Outcome {
    /// Names of what has changed or is new.
    changed: Vec<String>,
    unchanged: Vec<String>,
    /// What to record, if anything has changed.
    delta: Option<ConfigDelta>,
}

impl Outcome {
    /// Keeps what differs from the newest snapshots that each declaration gave.
    ///
    /// A declaration that the next message would resolve is kept whole: nothing of it counts as sent.
    fn of(stream: &Stream, pending: &HashSet<Declaration>, taken: Attachments, targets: &Targets) -> Self {
        let newest = newest_by_declaration(stream);
        let mut outcome = Self { changed: Vec::new(), unchanged: Vec::new(), delta: None };
        let mut kept = HashMap::new();
        let mut delta = ConfigDelta::default();
        for Delivered { declaration, resources } in taken.delivered {
            let is_pending = pending.contains(&declaration);
            let known = newest.get(&declaration).into_iter().flatten().filter(|_| !is_pending);
            let known: Vec<&Snapshot> = known.map(|(_, snapshot)| *snapshot).collect();
            let given: Vec<&Snapshot> = resources.iter().map(|index| &taken.snapshots[*index]).collect();
            let versions: HashSet<(&str, BlobRef)> =
                known.iter().map(|snapshot| (snapshot.uri.as_str(), snapshot.blob_ref())).collect();
            let is_known = |snapshot: &Snapshot| versions.contains(&(&snapshot.uri, snapshot.blob_ref()));
            // Contents of one resource of an MCP server may share a URI: they are taken together, as only
            // their order and their number tell them apart.
            let new: HashSet<&str> =
                given.iter().filter(|one| !is_known(one)).map(|one| one.uri.as_str()).collect();
            let (before, now) = (counts(&known), counts(&given));
            let is_resized = |uri: &&str| before.get(uri) != now.get(uri) && !new.contains(uri);
            let mut resized: HashSet<&str> = now.keys().copied().filter(is_resized).collect();
            let stale: HashSet<&str> = new.union(&resized).copied().collect();
            let wanted = targets.get(&declaration).and_then(Option::as_ref).filter(|_| !is_pending);
            let mut changed = Vec::new();
            for index in resources {
                let snapshot = &taken.snapshots[index];
                if wanted.is_some_and(|uris| !uris.contains(&snapshot.uri)) {
                    continue;
                }
                if !stale.contains(snapshot.uri.as_str()) {
                    outcome.unchanged.push(snapshot.label().to_owned());
                    continue;
                }
                changed.push(*kept.entry(index).or_insert_with(|| {
                    let is_told = !is_known(snapshot) || resized.remove(snapshot.uri.as_str());
                    outcome.changed.extend(is_told.then(|| snapshot.label().to_owned()));
                    delta.resources.push(snapshot.clone());
                    delta.resources.len() - 1
                }));
            }
            if !changed.is_empty() {
                delta.delivered.push(Delivered { declaration, resources: changed });
            }
        }
        if !delta.delivered.is_empty() {
            let add = delta.delivered.iter().map(|one| one.declaration.clone()).collect();
            delta.delta = Change { add, ..Change::default() }.into_delta().delta;
            outcome.delta = Some(delta);
        }
        outcome
    }
}

/// Returns how many contents each URI has.
fn counts<'s>(snapshots: &[&'s Snapshot]) -> HashMap<&'s str, usize> {
    let mut counts = HashMap::new();
    snapshots.iter().for_each(|snapshot| *counts.entry(snapshot.uri.as_str()).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use jp_conversation::{Event, EventKind};
    use jp_resource::{Payload, Resource, ResourceContent};

    use super::*;

    /// What one declaration gave: a URI and a text each.
    fn taken(contents: &[(&str, &str)]) -> Attachments {
        let snapshot = |(uri, text): &(&str, &str)| {
            Resource::new(*uri, Payload::Inline(ResourceContent::Text((*text).to_owned())))
        };
        let resources = (0..contents.len()).collect();
        Attachments {
            snapshots: contents.iter().map(snapshot).collect(),
            delivered: vec![Delivered { declaration: Declaration::new("mcp+docs+x://y"), resources }],
            lacks_approval: false,
        }
    }

    /// What is found out where each of `before` was taken, one after the other, and `after` is there now.
    fn outcome(before: &[&[(&str, &str)]], after: &[(&str, &str)]) -> Outcome {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let known = before.iter().map(|contents| {
            let Attachments { snapshots: resources, delivered, .. } = taken(contents);
            let known = ConfigDelta { resources, delivered, ..ConfigDelta::default() };
            Event::new(now, EventKind::ConfigDelta(known))
        });
        let stream = Stream::from_events(known.collect());
        Outcome::of(&stream, &HashSet::new(), taken(after), &Targets::new())
    }

    #[test]
    fn contents_that_share_a_uri_are_kept_together_if_one_has_changed() {
        let outcome = outcome(
            &[&[("x://y", "one"), ("x://y", "two"), ("x://z", "z")]],
            &[("x://y", "one"), ("x://y", "2"), ("x://z", "z")],
        );
        let kept = taken(&[("x://y", "one"), ("x://y", "2")]);
        let delta = outcome.delta.unwrap();
        assert_eq!((delta.resources, delta.delivered), (kept.snapshots, kept.delivered));
        assert_eq!(
            (outcome.changed, outcome.unchanged),
            (vec!["x://y".to_owned()], vec!["x://z".to_owned()])
        );
    }

    #[test]
    fn resource_with_fewer_contents_has_changed() {
        let before = [("x://y", "one"), ("x://y", "two"), ("x://y", "two"), ("x://z", "z")];
        for after in [&before[..1], &before[..2]] {
            let shrunk = outcome(&[&before], after);
            assert_eq!(shrunk.delta.unwrap().resources, taken(after).snapshots);
            assert_eq!((shrunk.changed, shrunk.unchanged), (vec!["x://y".to_owned()], vec![]));
            assert!(outcome(&[&before, after], after).delta.is_none(), "that was taken already");
        }
        assert!(outcome(&[&before], &before).delta.is_none());
    }
}
