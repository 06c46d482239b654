//! Decides which declarations a query resolves.
//!
//! It resolves the attachments of the query itself, and each declaration that no request has delivered since
//! it was last added.

use std::{
    collections::{HashMap, HashSet},
    slice,
};

use jp_resource::Snapshot;
use serde_json::{Map, Value};

use crate::{ConfigDelta, Declaration, EventKind, Stream, attachments::NewestContents};

/// The plan for a query's declarations, in declared order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Declarations to resolve now.
    pub resolve: Vec<Declaration>,
    /// Patterns that resolved files must not match.
    pub excludes: Vec<Declaration>,
    /// Snapshots to deliver without resolving: the newest ones of sources that can't be found again, and those
    /// that the user refreshed.
    pub copies: Vec<(Declaration, Vec<Snapshot>)>,
    /// Declarations without a snapshot whose source can't be found again. The user must attach them again.
    pub lost: Vec<Declaration>,
}

impl Plan {
    /// Resolves files outside the workspace that can be found because the configuration names them.
    #[must_use]
    pub fn resolve_found(mut self, is_found: impl Fn(&Declaration) -> bool) -> Self {
        let is_found =
            |declaration: &Declaration| declaration.names_snapshot() && is_found(declaration);
        let copies = self
            .copies
            .extract_if(.., |(declaration, _)| is_found(declaration));
        self.resolve
            .extend(copies.map(|(declaration, _)| declaration));
        self.resolve.extend(
            self.lost
                .extract_if(.., |declaration| is_found(declaration)),
        );
        self
    }

    /// Returns the declarations that the next request delivers.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.resolve
            .iter()
            .chain(self.copies.iter().map(|(declaration, _)| declaration))
    }
}

/// Decides what to resolve for the next request.
///
/// `configured` are the declarations of configuration files, and `explicit` those of the query, in stored
/// form.
#[must_use]
pub fn plan(stream: &Stream, configured: &[Declaration], explicit: &[Declaration]) -> Plan {
    let mut plan = Plan::default();
    let delivered = last_deliveries(stream);
    let snapshots = newest_snapshots(stream);
    let typed: HashSet<&Declaration> = explicit.iter().collect();
    let declared = collect_declared(stream, configured);
    let mut copies: Vec<(Declaration, Vec<TakenByHand>)> = Vec::new();
    let pending = declared
        .into_iter()
        .filter(|declared| !declared.is_delivered(&delivered));
    for Declared {
        declaration, taken, ..
    } in pending
    {
        // Declarations of the query are resolved below, in the order of the command line.
        if typed.contains(&declaration) || declaration.is_exclude() {
            continue;
        }
        // Delivered snapshots are not delivered again.
        let since = delivered.get(&declaration).copied();
        let taken = taken.into_iter().filter(|event| Some(*event) > since);
        let taken = taken_by_hand(
            taken.map(|event| (event, &stream.events()[event].kind)),
            &declaration,
        );
        // The user refreshed this snapshot, so it takes precedence over the current source.
        if !taken.is_empty() {
            copies.push((declaration, taken));
        } else if !declaration.names_snapshot() {
            plan.resolve.push(declaration);
        } else if let Some(snapshot) = snapshots.get(declaration.as_str()) {
            copies.push((
                declaration,
                vec![TakenByHand {
                    event: 0,
                    snapshot: (*snapshot).clone(),
                }],
            ));
        } else {
            plan.lost.push(declaration);
        }
    }
    // One message must not have two versions of a URI.
    share_newest(&mut copies);
    for (declaration, taken) in copies {
        let snapshots = taken.into_iter().map(|taken| taken.snapshot).collect();
        plan.copies.push((declaration, snapshots));
    }
    let attached = explicit
        .iter()
        .filter(|declaration| !declaration.is_exclude())
        .cloned();
    plan.resolve.extend(attached);
    plan.excludes = effective(stream, configured);
    plan.excludes.extend(explicit.iter().cloned());
    plan.excludes.retain(Declaration::is_exclude);
    dedup(&mut plan.resolve);
    dedup(&mut plan.excludes);
    plan
}

/// A snapshot that the user refreshed, with the index of its event.
#[derive(Debug, Clone)]
struct TakenByHand {
    event: usize,
    snapshot: Snapshot,
}

/// Returns the newest snapshots of a declaration that the user refreshed.
fn taken_by_hand<'e>(
    events: impl Iterator<Item = (usize, &'e EventKind)>,
    declaration: &Declaration,
) -> Vec<TakenByHand> {
    let mut newest = NewestContents::default();
    for (event, kind) in events {
        if let EventKind::ConfigDelta(delta) = kind {
            newest.update(event, delta.taken_of(declaration));
        }
    }
    newest
        .into_contents()
        .map(|(event, snapshot)| TakenByHand {
            event,
            snapshot: snapshot.clone(),
        })
        .collect()
}

/// Gives each declaration the newest snapshot of a resource that several have, because one message must have
/// one version of it.
///
/// Contents of a declaration that share a URI stay together, unchanged.
fn share_newest(copies: &mut [(Declaration, Vec<TakenByHand>)]) {
    let mut newest: HashMap<(Option<String>, String), TakenByHand> = HashMap::new();
    for (declaration, taken) in copies.iter() {
        for one in unique_uris(taken).map(|index| &taken[index]) {
            let server = declaration.server().map(str::to_owned);
            let known = newest
                .entry((server, one.snapshot.uri.clone()))
                .or_insert_with(|| one.clone());
            if known.event < one.event {
                known.clone_from(one);
            }
        }
    }
    for (declaration, taken) in copies {
        for index in unique_uris(taken).collect::<Vec<_>>() {
            let server = declaration.server().map(str::to_owned);
            if let Some(newest) = newest.get(&(server, taken[index].snapshot.uri.clone())) {
                taken[index].clone_from(newest);
            }
        }
    }
}

/// Returns the indexes of the snapshots with a unique URI.
fn unique_uris(taken: &[TakenByHand]) -> impl Iterator<Item = usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    taken
        .iter()
        .for_each(|one| *counts.entry(&one.snapshot.uri).or_default() += 1);
    taken
        .iter()
        .enumerate()
        .filter(move |(_, one)| counts.get(one.snapshot.uri.as_str()) == Some(&1))
        .map(|(index, _)| index)
}

impl ConfigDelta {
    /// Returns the snapshots of a declaration that the user refreshed.
    pub fn taken_of(&self, declaration: &Declaration) -> impl Iterator<Item = &Snapshot> {
        let delivered = self
            .delivered
            .iter()
            .filter(move |delivered| delivered.declaration == *declaration);
        delivered.flat_map(|delivered| {
            delivered
                .resources
                .iter()
                .filter_map(|index| self.resources.get(*index))
        })
    }

    /// Returns true if the user refreshed snapshots of a declaration.
    fn has_taken(&self, declaration: &Declaration) -> bool {
        self.delivered
            .iter()
            .any(|delivered| delivered.declaration == *declaration)
    }
}

/// Returns the declarations in effect: configured ones and those that the conversation added, without those
/// that it removed.
#[must_use]
pub fn effective(stream: &Stream, configured: &[Declaration]) -> Vec<Declaration> {
    collect_declared(stream, configured)
        .into_iter()
        .map(|declared| declared.declaration)
        .collect()
}

/// Returns the declarations in effect whose changes jp reports to the model.
///
/// `refresh = "notify"` in the conversation's tables or in the configuration (`notifying`) selects them. The
/// conversation's value takes precedence.
#[must_use]
pub fn declarations_to_watch(
    stream: &Stream,
    configured: &[Declaration],
    notifying: &HashSet<Declaration>,
) -> Vec<Declaration> {
    let mut settings: HashMap<Declaration, bool> = HashMap::new();
    for event in stream.events() {
        if let EventKind::ConfigDelta(delta) = &event.kind {
            settings.extend(Change::added_values(delta).iter().filter_map(|value| {
                let refresh = value.get("refresh")?;
                Some((Declaration::from_json(value).ok()?, refresh == "notify"))
            }));
        }
    }
    let mut declared = effective(stream, configured);
    declared.retain(|one| {
        settings
            .get(one)
            .copied()
            .unwrap_or_else(|| notifying.contains(one))
    });
    declared
}

/// Returns the conversation's declarations that can't be parsed, in their stored form, with the reasons.
#[must_use]
pub fn unreadable_declarations(stream: &Stream) -> Vec<(&Value, String)> {
    let deltas = stream
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ConfigDelta(delta) => Some(delta),
            _ => None,
        });
    let written = deltas.flat_map(|delta| {
        Change::added_values(delta)
            .iter()
            .chain(Change::removed_values(delta))
    });
    written
        .filter_map(|value| Some((value, Declaration::from_json(value).err()?)))
        .collect()
}

/// Returns true if the conversation ever had an attachment or a declaration of one, even if it was removed.
#[must_use]
pub fn has_attached(stream: &Stream) -> bool {
    stream.events().iter().any(|event| match &event.kind {
        EventKind::ChatRequest(request) => {
            !request.resources.is_empty() || !request.delivered.is_empty()
        }
        EventKind::ConfigDelta(delta) => !Change::from_delta(delta).add.is_empty(),
        _ => false,
    })
}

/// Returns the newest snapshot of each URI that the stream holds.
#[must_use]
pub fn newest_snapshots(stream: &Stream) -> HashMap<&str, &Snapshot> {
    let mut newest = HashMap::new();
    for event in stream.events() {
        let snapshots = match &event.kind {
            EventKind::ChatRequest(request) => &request.resources,
            EventKind::ConfigDelta(delta) => &delta.resources,
            _ => continue,
        };
        newest.extend(
            snapshots
                .iter()
                .map(|snapshot| (snapshot.uri.as_str(), snapshot)),
        );
    }
    newest
}

/// A change of a conversation's declarations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Declarations to add, or to deliver again.
    pub add: Vec<Declaration>,
    /// Declarations to remove.
    pub remove: Vec<Declaration>,
}

impl Change {
    /// Returns the delta that adds declarations, or `None` if there are none.
    #[must_use]
    pub fn delta_that_adds(add: Vec<Declaration>) -> Option<ConfigDelta> {
        let change = Self {
            add,
            ..Self::default()
        };
        (!change.add.is_empty()).then(|| change.into_delta())
    }

    /// Returns the change as a configuration delta.
    #[must_use]
    pub fn into_delta(self) -> ConfigDelta {
        let mut attachments = Map::new();
        for (key, declarations) in [("add", self.add), ("remove", self.remove)] {
            if !declarations.is_empty() {
                let list: Value = declarations.iter().map(Declaration::as_str).collect();
                attachments.insert(key.to_owned(), list);
            }
        }
        let conversation = Map::from_iter([("attachments".to_owned(), Value::Object(attachments))]);
        let delta = Map::from_iter([("conversation".to_owned(), Value::Object(conversation))]);
        ConfigDelta {
            delta,
            ..ConfigDelta::default()
        }
    }

    /// Reads the change in a delta. Older deltas list all declarations, which counts as adding them. Leaves out
    /// declarations that can't be parsed ([`unreadable_declarations`]).
    fn from_delta(delta: &ConfigDelta) -> Self {
        Self {
            add: read_declarations(Self::added_values(delta)),
            remove: read_declarations(Self::removed_values(delta)),
        }
    }

    /// Returns the added declarations of a delta in their stored form.
    fn added_values(delta: &ConfigDelta) -> &[Value] {
        list_entries(match delta.attachments() {
            Some(Value::Object(change)) => change.get("value").or_else(|| change.get("add")),
            listed => listed,
        })
    }

    /// Returns the removed declarations of a delta in their stored form.
    fn removed_values(delta: &ConfigDelta) -> &[Value] {
        list_entries(delta.attachments().and_then(|change| change.get("remove")))
    }
}

fn read_declarations(list: &[Value]) -> Vec<Declaration> {
    list.iter()
        .filter_map(|value| Declaration::from_json(value).ok())
        .collect()
}

/// Returns the entries of a list. Any other value counts as the only entry.
fn list_entries(value: Option<&Value>) -> &[Value] {
    match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(values)) => values,
        Some(value) => slice::from_ref(value),
    }
}

impl ConfigDelta {
    fn attachments(&self) -> Option<&Value> {
        self.delta
            .get("conversation")
            .and_then(|value| value.get("attachments"))
    }
}

struct Declared {
    declaration: Declaration,
    /// The last event that added it; `None` if it is configured.
    added: Option<usize>,
    /// The events since it was last attached that have snapshots which the user refreshed.
    taken: Vec<usize>,
}

impl Declared {
    fn is_delivered(&self, last_deliveries: &HashMap<&Declaration, usize>) -> bool {
        last_deliveries
            .get(&self.declaration)
            .is_some_and(|event| Some(*event) > self.added)
    }
}

/// Returns the last event that delivered each declaration.
fn last_deliveries(stream: &Stream) -> HashMap<&Declaration, usize> {
    let mut last = HashMap::new();
    for (index, event) in stream.events().iter().enumerate() {
        if let EventKind::ChatRequest(request) = &event.kind {
            last.extend(
                request
                    .delivered
                    .iter()
                    .map(|delivered| (&delivered.declaration, index)),
            );
        }
    }
    last
}

fn collect_declared(stream: &Stream, configured: &[Declaration]) -> Vec<Declared> {
    let mut list = DeclaredList::default();
    configured
        .iter()
        .for_each(|declaration| list.add(declaration.clone(), None));
    for (index, event) in stream.events().iter().enumerate() {
        if let EventKind::ConfigDelta(delta) = &event.kind {
            let change = Change::from_delta(delta);
            list.remove(&change.remove);
            for declaration in change.add {
                if delta.has_taken(&declaration) {
                    list.take(declaration, index);
                } else {
                    list.add(declaration, Some(index));
                }
            }
        }
    }
    list.entries
}

/// Declarations in the order of their first addition, with the index of each.
#[derive(Default)]
struct DeclaredList {
    entries: Vec<Declared>,
    places: HashMap<Declaration, usize>,
}

impl DeclaredList {
    fn add(&mut self, declaration: Declaration, added: Option<usize>) {
        let entry = self.entry(declaration);
        entry.added = added;
        entry.taken.clear();
    }

    /// Adds a declaration with snapshots that the user refreshed.
    fn take(&mut self, declaration: Declaration, event: usize) {
        let entry = self.entry(declaration);
        entry.added = Some(event);
        entry.taken.push(event);
    }

    fn entry(&mut self, declaration: Declaration) -> &mut Declared {
        let next = self.entries.len();
        // A declaration that is added again keeps its place.
        let place = *self.places.entry(declaration.clone()).or_insert(next);
        if place == next {
            self.entries.push(Declared {
                declaration,
                added: None,
                taken: Vec::new(),
            });
        }
        &mut self.entries[place]
    }

    fn remove(&mut self, removed: &[Declaration]) {
        if removed.is_empty() {
            return;
        }
        // Removal moves later entries, so their places change.
        let removed: HashSet<_> = removed.iter().collect();
        self.entries
            .retain(|entry| !removed.contains(&entry.declaration));
        let places = self
            .entries
            .iter()
            .enumerate()
            .map(|(place, entry)| (entry.declaration.clone(), place));
        self.places = places.collect();
    }
}

fn dedup(declarations: &mut Vec<Declaration>) {
    let mut seen = HashSet::new();
    declarations.retain(|declaration| seen.insert(declaration.clone()));
}

#[cfg(test)]
mod tests {
    use jp_resource::{Payload, Resource, ResourceContent};
    use serde_json::json;

    use super::*;
    use crate::{ChatRequest, Delivered, Event};

    fn event(kind: EventKind) -> Event {
        Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind)
    }

    fn names(names: &[&str]) -> Vec<Declaration> {
        names.iter().map(|name| Declaration::new(*name)).collect()
    }

    fn change(add: &[&str], remove: &[&str]) -> Event {
        event(EventKind::ConfigDelta(
            Change {
                add: names(add),
                remove: names(remove),
            }
            .into_delta(),
        ))
    }

    fn delivered(declarations: &[&str]) -> Event {
        let snapshot =
            |uri: &&str| Resource::new(*uri, Payload::Inline(ResourceContent::Text("x".into())));
        let entry = |(index, declaration)| Delivered {
            declaration,
            resources: vec![index],
        };
        event(EventKind::ChatRequest(ChatRequest {
            content: "go".into(),
            resources: declarations.iter().map(snapshot).collect(),
            delivered: names(declarations)
                .into_iter()
                .enumerate()
                .map(entry)
                .collect(),
            ..ChatRequest::default()
        }))
    }

    fn resolved(events: &[Event], configured: &[&str], explicit: &[&str]) -> Vec<String> {
        let stream = Stream::from_events(events.to_vec());
        let plan = plan(&stream, &names(configured), &names(explicit));
        plan.resolve.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn new_conversation_resolves_everything_declared() {
        assert_eq!(
            resolved(&[], &["file:a", "file:b"], &["file:c"]),
            ["file:a", "file:b", "file:c"]
        );
    }

    #[test]
    fn attachment_of_a_follow_up_is_resolved() {
        let history = [delivered(&["file:a"])];
        assert_eq!(resolved(&history, &["file:a"], &["file:b"]), ["file:b"]);
    }

    #[test]
    fn reattached_file_is_resolved_again() {
        let history = [change(&["file:a"], &[]), delivered(&["file:a"])];
        assert_eq!(resolved(&history, &[], &["file:a"]), ["file:a"]);
        assert_eq!(resolved(&history, &["file:a"], &["file:a"]), ["file:a"]);
    }

    #[test]
    fn follow_up_without_attachments_resolves_nothing() {
        let history = [
            delivered(&["file:a"]),
            change(&["file:b"], &[]),
            delivered(&["file:b"]),
        ];
        assert_eq!(resolved(&history, &["file:a"], &[]), Vec::<String>::new());
    }

    #[test]
    fn fork_resolves_missing_snapshots() {
        let history = [change(&["file:a"], &[]), delivered(&["file:a"])];
        assert_eq!(resolved(&history, &[], &[]), Vec::<String>::new());
        assert_eq!(resolved(&history[..1], &[], &[]), ["file:a"]);
    }

    #[test]
    fn removed_declaration_stays_removed_until_it_is_added_again() {
        let history = [delivered(&["file:a"]), change(&[], &["file:a"])];
        assert_eq!(resolved(&history, &["file:a"], &[]), Vec::<String>::new());
        assert_eq!(
            effective(&Stream::from_events(history.to_vec()), &names(&["file:a"])),
            []
        );
        let readded = [
            history[0].clone(),
            history[1].clone(),
            change(&["file:a"], &[]),
        ];
        assert_eq!(resolved(&readded, &["file:a"], &[]), ["file:a"]);
    }

    #[test]
    fn declaration_added_to_a_file_later_is_resolved_at_the_next_request() {
        assert_eq!(
            resolved(&[delivered(&["file:a"])], &["file:a", "file:b"], &[]),
            ["file:b"]
        );
    }

    #[test]
    fn tables_decide_which_changes_are_reported() {
        let delta = |value: Value| {
            let delta = json!({"conversation": {"attachments": {"add": [value]}}});
            let delta = delta.as_object().cloned().unwrap();
            event(EventKind::ConfigDelta(ConfigDelta {
                delta,
                ..ConfigDelta::default()
            }))
        };
        let table = |path: &str, refresh: &str| {
            delta(json!({"type": "file", "path": path, "refresh": refresh}))
        };
        let say_so = names(&["file:a", "file:b", "file:c"]).into_iter().collect();
        let history = [
            delta(json!("file:a")),
            table("b", "manual"),
            table("d", "notify"),
            table("e", "notify"),
        ];
        let removed = change(&[], &["file:c", "file:e"]);
        let stream = Stream::from_events([&history[..], &[removed]].concat());
        let configured = names(&["file:a", "file:b", "file:c", "file:x"]);
        assert_eq!(
            declarations_to_watch(&stream, &configured, &say_so),
            names(&["file:a", "file:d"])
        );
    }

    #[test]
    fn malformed_declarations_are_skipped() {
        let delta = |attachments: Value| {
            let delta = json!({"conversation": {"attachments": attachments}});
            let delta = delta.as_object().cloned().unwrap();
            event(EventKind::ConfigDelta(ConfigDelta {
                delta,
                ..ConfigDelta::default()
            }))
        };
        let stream = Stream::from_events(vec![
            delta(json!({"add": ["file:a", {"type": "file"}, "file:b"], "remove": [1]})),
            delta(json!({"add": 2})),
            delta(json!([true])),
        ]);
        assert_eq!(effective(&stream, &[]), names(&["file:a", "file:b"]));
        let unreadable = unreadable_declarations(&stream);
        let told: Vec<_> = unreadable
            .iter()
            .map(|(value, why)| format!("{value}: {why}"))
            .collect();
        assert_eq!(
            told,
            [
                r#"{"type":"file"}: a declaration table needs `path` as a string"#,
                "1: a declaration is a string or a table, not 1",
                "2: a declaration is a string or a table, not 2",
                "true: a declaration is a string or a table, not true",
            ]
        );
    }

    #[test]
    fn glob_that_delivered_several_files_counts_as_delivered() {
        let mut request = ChatRequest::new("go");
        request.delivered = vec![Delivered {
            declaration: Declaration::new("file:src/*.rs"),
            resources: vec![],
        }];
        assert_eq!(
            resolved(
                &[event(EventKind::ChatRequest(request))],
                &["file:src/*.rs"],
                &[]
            ),
            Vec::<String>::new()
        );
    }

    #[test]
    fn old_conversation_is_resolved_once() {
        let delta = |value| {
            let delta = json!({"conversation": {"attachments": value}});
            event(EventKind::ConfigDelta(ConfigDelta {
                delta: delta.as_object().cloned().unwrap(),
                resources: vec![],
                ..ConfigDelta::default()
            }))
        };
        let request = event(EventKind::ChatRequest(ChatRequest::new("old")));
        for value in [
            json!(["file:a"]),
            json!({"value": ["file:a"], "strategy": "replace"}),
        ] {
            let history = [delta(value), request.clone()];
            assert_eq!(resolved(&history, &[], &[]), ["file:a"]);
            let continued = [history[0].clone(), request.clone(), delivered(&["file:a"])];
            assert_eq!(resolved(&continued, &[], &[]), Vec::<String>::new());
        }
    }

    #[test]
    fn newest_snapshot_of_an_external_file_is_copied() {
        let external = "external:00/notes.md";
        let mut change = Change {
            add: names(&[external]),
            remove: vec![],
        }
        .into_delta();
        let lost = Stream::from_events(vec![event(EventKind::ConfigDelta(change.clone()))]);
        assert_eq!(
            plan(&lost, &[], &[]),
            Plan {
                lost: names(&[external]),
                ..Plan::default()
            }
        );

        let snapshot = Resource::new(external, Payload::Inline(ResourceContent::Text("x".into())));
        change.resources.push(snapshot.clone());
        let kept = Stream::from_events(vec![event(EventKind::ConfigDelta(change))]);
        let copies = vec![(Declaration::new(external), vec![snapshot])];
        assert_eq!(
            plan(&kept, &[], &[]),
            Plan {
                copies,
                ..Plan::default()
            }
        );
    }

    #[test]
    fn excludes_of_all_layers_apply() {
        let history = Stream::from_events(vec![change(&["file:b?exclude"], &[])]);
        let plan = plan(
            &history,
            &names(&["file:a?exclude"]),
            &names(&["file:c?exclude", "file:src/"]),
        );
        assert_eq!(plan.resolve, names(&["file:src/"]));
        assert_eq!(
            plan.excludes,
            names(&["file:a?exclude", "file:b?exclude", "file:c?exclude"])
        );
    }

    #[test]
    fn snapshots_taken_by_hand_are_delivered_once() {
        let snapshot = |text: &str| {
            Resource::new(
                "file:///d/a",
                Payload::Inline(ResourceContent::Text(text.into())),
            )
        };
        let refreshed = event(EventKind::ConfigDelta(ConfigDelta {
            resources: vec![snapshot("new")],
            delivered: vec![Delivered {
                declaration: Declaration::new("file:d/"),
                resources: vec![0],
            }],
            ..Change {
                add: names(&["file:d/"]),
                ..Change::default()
            }
            .into_delta()
        }));
        let history = [
            change(&["file:d/"], &[]),
            delivered(&["file:d/"]),
            refreshed,
        ];
        let planned = |events: &[Event]| plan(&Stream::from_events(events.to_vec()), &[], &[]);
        let copies = vec![(Declaration::new("file:d/"), vec![snapshot("new")])];
        assert_eq!(
            planned(&history),
            Plan {
                copies,
                ..Plan::default()
            }
        );
        let sent = [&history[..], &[delivered(&["file:d/"])]].concat();
        assert_eq!(planned(&sent), Plan::default());
        // Attached anew, it is resolved anew.
        let again = [&history[..], &[change(&["file:d/"], &[])]].concat();
        assert_eq!(planned(&again).resolve, names(&["file:d/"]));
    }

    /// Snapshots of `file:d/` taken by hand, each of a URI and a text.
    fn refreshed(snapshots: &[(&str, &str)]) -> Event {
        let taken = |(uri, text): &(&str, &str)| {
            Resource::new(
                *uri,
                Payload::Inline(ResourceContent::Text((*text).to_owned())),
            )
        };
        let delivered = Delivered {
            declaration: Declaration::new("file:d/"),
            resources: (0..snapshots.len()).collect(),
        };
        event(EventKind::ConfigDelta(ConfigDelta {
            resources: snapshots.iter().map(taken).collect(),
            delivered: vec![delivered],
            ..Change {
                add: names(&["file:d/"]),
                ..Change::default()
            }
            .into_delta()
        }))
    }

    /// Returns the URI and the text of what the next message takes of `file:d/` without resolving it.
    fn copied(history: &[Event]) -> Vec<(String, String)> {
        let plan = plan(&Stream::from_events(history.to_vec()), &[], &[]);
        let text = |snapshot: Snapshot| match snapshot.content {
            Payload::Inline(ResourceContent::Text(text)) => (snapshot.uri, text),
            content => panic!("{content:?}"),
        };
        plan.copies
            .into_iter()
            .flat_map(|(_, snapshots)| snapshots)
            .map(text)
            .collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(uri, text)| ((*uri).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn newest_refreshed_snapshots_are_delivered_together() {
        let history = [
            change(&["file:d/"], &[]),
            refreshed(&[("file:///d/old", "sent")]),
            delivered(&["file:d/"]),
            refreshed(&[("file:///d/a", "1")]),
            refreshed(&[("file:///d/b", "1"), ("file:///d/a", "2")]),
        ];
        assert_eq!(
            copied(&history),
            pairs(&[("file:///d/a", "2"), ("file:///d/b", "1")])
        );
    }

    #[test]
    fn refreshed_snapshots_that_share_a_uri_are_all_kept() {
        let history = [
            refreshed(&[("x://y", "one"), ("x://y", "two")]),
            refreshed(&[("x://y", "1"), ("x://z", "z"), ("x://y", "2")]),
        ];
        assert_eq!(
            copied(&history[..1]),
            pairs(&[("x://y", "one"), ("x://y", "two")])
        );
        assert_eq!(
            copied(&history),
            pairs(&[("x://y", "1"), ("x://y", "2"), ("x://z", "z")])
        );
    }

    #[test]
    fn declarations_of_one_file_share_its_newest_snapshot() {
        let snapshot = |text: &str| {
            Resource::new(
                "file:///d/a",
                Payload::Inline(ResourceContent::Text(text.to_owned())),
            )
        };
        let taken = |declarations: &[&str], text: &str| {
            let entry = |declaration| Delivered {
                declaration,
                resources: vec![0],
            };
            event(EventKind::ConfigDelta(ConfigDelta {
                resources: vec![snapshot(text)],
                delivered: names(declarations).into_iter().map(entry).collect(),
                ..Change {
                    add: names(declarations),
                    ..Change::default()
                }
                .into_delta()
            }))
        };
        let (both, server) = (["file:d/", "file:d/a"], "mcp+docs+file:///d/a");
        let history = [
            taken(&both, "1"),
            taken(&both[1..], "2"),
            taken(&[server], "3"),
        ];
        let copy = |name: &str, text: &str| (Declaration::new(name), vec![snapshot(text)]);
        let plan = plan(&Stream::from_events(history.to_vec()), &[], &[]);
        assert_eq!(
            plan.copies,
            [
                copy("file:d/", "2"),
                copy("file:d/a", "2"),
                copy(server, "3")
            ]
        );
    }

    #[test]
    fn removed_contents_are_not_delivered() {
        let history = [
            refreshed(&[("x://y", "one"), ("x://y", "two"), ("x://z", "z")]),
            refreshed(&[("x://y", "1")]),
            refreshed(&[("x://y", "1"), ("x://y", "2")]),
        ];
        assert_eq!(
            copied(&history[..2]),
            pairs(&[("x://y", "1"), ("x://z", "z")])
        );
        assert_eq!(
            copied(&history),
            pairs(&[("x://y", "1"), ("x://y", "2"), ("x://z", "z")])
        );
    }
}
