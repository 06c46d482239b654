//! `jp resource refresh`: new snapshots by hand.

use std::collections::BTreeSet;

use crate::{
    cmd::attachment::record,
    context::Context,
    error::{Code, Failure},
};
use jp_conversation::{
    Declaration, Stream,
    attachments::newest_by_declaration,
    refresh::{self, RefreshTargets},
    resolution::{self, Plan},
};
use jp_resource::Snapshot;
use jp_session::{
    attachments::{
        declarations::{place, read_configured, resolve_context},
        resolve::{Attachments, EarlierDeclarations, resolve},
        store::BatchStore,
    },
    size,
};
use serde_json::json;

/// Resolves what was asked for again; what has changed goes with the next message.
pub(super) fn refresh(
    context: &Context<'_>,
    id: Option<&str>,
    wanted: &[String],
) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let config = context.session.config(Some(&conversation), &[])?;
    let place = place(context.setup(&config))?;
    let configured = read_configured(&config, &place)?;
    let stream = &conversation.stream;
    let mut declared = resolution::effective(stream, &configured.declarations);
    let excludes: Vec<_> = declared
        .extract_if(.., |declaration| declaration.is_exclude())
        .collect();
    let can_resolve = |declaration: &Declaration| {
        !declaration.names_snapshot() || configured.sources.contains_key(declaration)
    };
    let targets = if wanted.is_empty() {
        let (resolvable, snapshots): (Vec<_>, Vec<_>) = declared.into_iter().partition(can_resolve);
        if !snapshots.is_empty() {
            let left = size::count(snapshots.len(), "snapshot");
            context.output.status(&format!(
                "{left} of what can't be read again stay as they are."
            ));
        }
        resolvable
            .into_iter()
            .map(|declaration| (declaration, None))
            .collect()
    } else {
        let targets = targets(stream, &declared, wanted, &place)?;
        if let Some(declaration) = targets.keys().find(|declaration| !can_resolve(declaration)) {
            return Err(unrepeatable(declaration));
        }
        targets
    };
    let resolve_these: Vec<_> = declarations_in_order(stream, &configured.declarations, &targets);
    let batch = found.store.batch();
    let stamps = context.session.workspace.stamps();
    let keeper = BatchStore::new(&batch, &stamps);
    let plan = Plan {
        resolve: resolve_these,
        excludes,
        ..Plan::default()
    };
    let earlier = EarlierDeclarations {
        plan,
        configured: &configured,
        is_new: false,
        named: id,
    };
    // One that fails does not keep the others old.
    let resolving = resolve_context(context.setup(&config), &place, &keeper, wanted.is_empty())?;
    let taken = resolve(context.setup(&config), earlier, Vec::new(), &resolving)
        .map_err(crate::cmd::attachment::without_skipping)?;
    let code = if taken.lacks_approval {
        Code::Failed
    } else {
        Code::Done
    };
    let Attachments {
        snapshots,
        delivered,
        ..
    } = taken;
    let outcome = refresh::compare(
        stream,
        &configured.declarations,
        &snapshots,
        delivered,
        &targets,
    );
    let report = json!({"refreshed": &outcome.changed, "unchanged": &outcome.unchanged});
    if let Some(delta) = outcome.delta {
        record(context, &found, delta, batch)?;
    }
    if context.output.is_json() {
        context.output.json(&report)?;
        return Ok(code);
    }
    for name in &outcome.changed {
        context.output.status(&format!(
            "{name} has a new snapshot, which goes with the next message."
        ));
    }
    if !outcome.unchanged.is_empty() {
        let unchanged = outcome.unchanged.len();
        let text = if unchanged == 1 {
            outcome.unchanged[0].clone()
        } else {
            size::count(unchanged, "resource")
        };
        let verb = if unchanged == 1 { "is" } else { "are" };
        context.output.status(&format!(
            "{text} {verb} unchanged since the newest snapshot."
        ));
    }
    Ok(code)
}

fn unrepeatable(declaration: &Declaration) -> Failure {
    Failure::new(format!(
        "{declaration} can't be read again: nothing says where it is from"
    ))
    .with_hint("attach the file, or what it is of, once more.")
}

/// Finds what a person means: URIs and names of snapshots, or declarations as they were typed.
fn targets(
    stream: &Stream,
    declared: &[Declaration],
    wanted: &[String],
    place: &jp_attachment::Place,
) -> Result<RefreshTargets, Failure> {
    let newest = newest_by_declaration(stream);
    let mut targets = RefreshTargets::new();
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
            let is_meant = |snapshot: &&Snapshot| {
                snapshot.uri == *text || snapshot.name.as_ref() == Some(text)
            };
            for snapshot in given.map(|(_, snapshot)| *snapshot).filter(is_meant) {
                is_found = true;
                let uris = targets
                    .entry(declaration.clone())
                    .or_insert_with(|| Some(BTreeSet::new()));
                uris.as_mut().map(|uris| uris.insert(snapshot.uri.clone()));
            }
        }
        if !is_found {
            let text = jp_attachment::redacted(text);
            return Err(
                Failure::new(format!("{text} is not attached to the conversation"))
                    .with_hint("`jp attachment ls` lists what is."),
            );
        }
    }
    Ok(targets)
}

/// Returns the targets in declared order.
fn declarations_in_order(
    stream: &Stream,
    configured: &[Declaration],
    targets: &RefreshTargets,
) -> Vec<Declaration> {
    let declared = resolution::effective(stream, configured);
    declared
        .into_iter()
        .filter(|declaration| targets.contains_key(declaration))
        .collect()
}
