//! `jp resource refresh`: new snapshots by hand.

use std::collections::{BTreeSet, HashMap};

use jp_conversation::{
    ConfigDelta, Declaration, Delivered, Stream,
    resolution::{self, Change, Plan},
};
use jp_resource::Snapshot;
use serde_json::json;

use crate::{
    cmd::{
        attachment::{Delivery, deliveries, record},
        query::{
            declarations::{configured, place, resolving},
            resolve::{Attachments, Earlier, Keeper, resolve},
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
        snapshots.iter().for_each(|declaration| context.output.warn(&unrepeatable(declaration).message));
        Targets { declarations: resolvable, uris: None }
    } else {
        let targets = Targets::find(stream, &declared, wanted, &place)?;
        if let Some(declaration) = targets.declarations.iter().find(|declaration| !can_resolve(declaration)) {
            return Err(unrepeatable(declaration));
        }
        targets
    };
    let batch = found.store.batch();
    let stamps = context.workspace.stamps();
    let keeper = Keeper { batch: &batch, stamps: &stamps };
    let plan = Plan { resolve: targets.declarations.clone(), excludes, ..Plan::default() };
    let earlier = Earlier { plan, configured: &configured, is_new: false };
    let resolving = resolving(&config, &place, &keeper, false);
    let taken = resolve(context, earlier, Vec::new(), &resolving)
        .map_err(crate::cmd::attachment::without_skipping)?;
    let outcome = Outcome::of(stream, taken, targets.uris.as_ref());
    let report = json!({"refreshed": &outcome.changed, "unchanged": &outcome.unchanged});
    if let Some(delta) = outcome.delta {
        record(context, &found, delta, batch)?;
    }
    if context.output.is_json() {
        context.output.json(&report)?;
        return Ok(Code::Done);
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
    Ok(Code::Done)
}

fn unrepeatable(declaration: &Declaration) -> Failure {
    Failure::new(format!("{declaration} names a snapshot: nothing says where it is from"))
        .with_hint("attach the file, or what it is of, once more.")
}

/// What is to be refreshed.
struct Targets {
    declarations: Vec<Declaration>,
    /// Only these of what the declarations give.
    uris: Option<BTreeSet<String>>,
}

impl Targets {
    /// Finds what a person means: URIs and names of snapshots, or declarations as they were typed.
    fn find(
        stream: &Stream,
        declared: &[Declaration],
        wanted: &[String],
        place: &jp_attachment::Place,
    ) -> Result<Self, Failure> {
        let mut declarations = Vec::new();
        let mut uris = BTreeSet::new();
        let deliveries = deliveries(stream);
        for text in wanted {
            let mut is_found = false;
            for (_, resources, delivered) in &deliveries {
                for delivered in delivered.iter().filter(|one| declared.contains(&one.declaration)) {
                    let given = delivered.resources.iter().filter_map(|index| resources.get(*index));
                    let meant = given.filter(|one| one.uri == *text || one.name.as_ref() == Some(text));
                    for snapshot in meant {
                        is_found = true;
                        uris.insert(snapshot.uri.clone());
                        declarations.push(delivered.declaration.clone());
                    }
                }
            }
            let meant = jp_attachment::possible_declarations(text, place);
            for declaration in declared.iter().filter(|one| meant.iter().any(|meant| meant == one.as_str())) {
                is_found = true;
                declarations.push(declaration.clone());
                uris.extend(given_by(&deliveries, declaration).map(|snapshot| snapshot.uri.clone()));
            }
            if !is_found {
                return Err(Failure::new(format!("{text} is not attached to the conversation"))
                    .with_hint("`jp attachment ls` lists what is."));
            }
        }
        let mut seen = BTreeSet::new();
        declarations.retain(|declaration| seen.insert(declaration.clone()));
        // A declaration that has given nothing yet is wanted whole.
        let is_whole =
            declarations.iter().any(|declaration| given_by(&deliveries, declaration).next().is_none());
        Ok(Self { declarations, uris: (!is_whole).then_some(uris) })
    }
}

fn given_by<'a>(
    deliveries: &'a [Delivery<'a>],
    declaration: &'a Declaration,
) -> impl Iterator<Item = &'a Snapshot> {
    deliveries.iter().flat_map(move |(_, resources, delivered)| {
        let given = delivered.iter().filter(move |one| one.declaration == *declaration);
        given.flat_map(|one| one.resources.iter().filter_map(|index| resources.get(*index)))
    })
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
    /// Keeps what differs from the newest snapshots.
    fn of(stream: &Stream, taken: Attachments, uris: Option<&BTreeSet<String>>) -> Self {
        let newest = resolution::newest_snapshots(stream);
        let mut outcome = Self { changed: Vec::new(), unchanged: Vec::new(), delta: None };
        let mut kept = HashMap::new();
        let mut delta = ConfigDelta::default();
        for (index, snapshot) in taken.snapshots.into_iter().enumerate() {
            let known = newest.get(snapshot.uri.as_str());
            let is_unchanged = known.is_some_and(|known| known.blob_ref() == snapshot.blob_ref());
            match snapshot.label().to_owned() {
                _ if uris.is_some_and(|uris| !uris.contains(&snapshot.uri)) => {}
                name if is_unchanged => outcome.unchanged.push(name),
                name => {
                    outcome.changed.push(name);
                    kept.insert(index, delta.resources.len());
                    delta.resources.push(snapshot);
                }
            }
        }
        for Delivered { declaration, resources } in taken.delivered {
            let resources: Vec<usize> =
                resources.iter().filter_map(|index| kept.get(index)).copied().collect();
            if !resources.is_empty() {
                delta.delivered.push(Delivered { declaration, resources });
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
