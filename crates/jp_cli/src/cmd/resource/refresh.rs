//! `jp resource refresh`: takes new snapshots of attachments.

use std::collections::{BTreeSet, HashMap};

use crate::{
    cmd::attachment::without_skip_hint,
    context::Context,
    error::{Code, SessionError},
    output::Output,
};
use jp_attachment::Place;
use jp_conversation::{
    Declaration, Stream,
    attachments::{Taken, newest_by_declaration},
    refresh::{self, RefreshTargets},
    resolution::{self, Plan},
};
use jp_session::{
    attachments::{
        declarations::{ConfiguredDeclarations, resolve_context},
        resolve::{EarlierDeclarations, resolve},
        store::BatchStore,
    },
    size,
};
use serde_json::json;

/// Resolves attachments again. The next message sends those that have changed.
pub(super) fn refresh(
    context: &Context<'_>,
    id: Option<&str>,
    wanted: &[String],
) -> Result<Code, SessionError> {
    let target = context.open_conversation(id)?;
    let place = target.find_place()?;
    let configured = target.read_configured(&place)?;
    let (excludes, declared): (Vec<_>, Vec<_>) =
        resolution::effective(target.stream(), &configured.declarations)
            .into_iter()
            .partition(Declaration::is_exclude);
    let targets = match wanted {
        [] => choose_all(&declared, &configured, context.output),
        wanted => choose_named(target.stream(), &declared, wanted, &place, &configured)?,
    };
    let batch = target.found.store.batch();
    let stamps = context.session.workspace.stamps();
    let content = BatchStore::new(&batch, &stamps);
    // A refresh of all attachments skips those that fail; a refresh by name fails.
    let resolving = resolve_context(target.setup(), &place, &content, wanted.is_empty())?;
    // In declared order, which is also the order of the resources in the next message.
    let resolve_in_order = declared
        .iter()
        .filter(|declaration| targets.contains_key(*declaration));
    let earlier = EarlierDeclarations {
        plan: Plan {
            resolve: resolve_in_order.cloned().collect(),
            excludes,
            ..Plan::default()
        },
        configured: &configured,
        is_new: false,
        named: id,
    };
    let resolved =
        resolve(target.setup(), earlier, Vec::new(), &resolving).map_err(without_skip_hint)?;
    let outcome = refresh::compare(
        target.stream(),
        &configured.declarations,
        &resolved.snapshots,
        resolved.delivered,
        &targets,
    );
    if let Some(delta) = outcome.delta {
        target.record(delta, batch)?;
    }
    report(&outcome.changed, &outcome.unchanged, context.output)?;
    Ok(match resolved.lacks_approval {
        // The warning about the missing approval was printed before, and the other attachments are refreshed.
        true => Code::Failed,
        false => Code::Done,
    })
}

/// Returns whether jp knows the source of a declaration, and not only its snapshot.
fn has_source(declaration: &Declaration, configured: &ConfiguredDeclarations) -> bool {
    !declaration.names_snapshot() || configured.sources.contains_key(declaration)
}

/// Chooses all attachments with a known source.
fn choose_all(
    declared: &[Declaration],
    configured: &ConfiguredDeclarations,
    output: &Output,
) -> RefreshTargets {
    let (chosen, skipped): (Vec<_>, Vec<_>) = declared
        .iter()
        .partition(|declaration| has_source(declaration, configured));
    if !skipped.is_empty() {
        output.status(&format!(
            "Skipped {} that can't be read again.",
            size::count(skipped.len(), "snapshot")
        ));
    }
    let targets = chosen
        .into_iter()
        .map(|declaration| (declaration.clone(), None));
    targets.collect()
}

/// Chooses what the user named: URIs and names of snapshots, or declarations as they were typed.
fn choose_named(
    stream: &Stream,
    declared: &[Declaration],
    wanted: &[String],
    place: &Place,
    configured: &ConfiguredDeclarations,
) -> Result<RefreshTargets, SessionError> {
    let newest = newest_by_declaration(stream);
    let mut targets = RefreshTargets::new();
    for text in wanted {
        if !add_targets(text, declared, &newest, place, &mut targets) {
            let text = jp_attachment::redact(text);
            return Err(
                SessionError::new(format!("{text} is not attached to the conversation"))
                    .with_hint("`jp attachment ls` lists the attachments."),
            );
        }
    }
    // Checked last, so that a text without a match is reported first.
    match targets
        .keys()
        .find(|declaration| !has_source(declaration, configured))
    {
        Some(declaration) => Err(SessionError::new(format!(
            "{declaration} can't be read again: its source is unknown"
        ))
        .with_hint("attach the file or the content again.")),
        None => Ok(targets),
    }
}

/// Adds the resources that a text names; returns whether there are any.
fn add_targets(
    text: &str,
    declared: &[Declaration],
    newest: &HashMap<&Declaration, Vec<Taken<'_>>>,
    place: &Place,
    targets: &mut RefreshTargets,
) -> bool {
    let possible = jp_attachment::possible_declarations(text, place);
    let mut is_found = false;
    for declaration in declared {
        if possible.iter().any(|text| text == declaration.as_str()) {
            // All resources of the declaration, even if an earlier text chose only some.
            targets.insert(declaration.clone(), None);
            is_found = true;
            continue;
        }
        let snapshots = newest.get(declaration).into_iter().flatten();
        let named = snapshots
            .filter(|(_, snapshot)| snapshot.uri == text || snapshot.name.as_deref() == Some(text));
        for (_, snapshot) in named {
            // `None` stands for all resources of the declaration, and stays if an earlier text chose it.
            let uris = targets
                .entry(declaration.clone())
                .or_insert_with(|| Some(BTreeSet::new()));
            uris.as_mut().map(|uris| uris.insert(snapshot.uri.clone()));
            is_found = true;
        }
    }
    is_found
}

fn report(changed: &[String], unchanged: &[String], output: &Output) -> Result<(), SessionError> {
    if output.is_json() {
        return output.json(&json!({"refreshed": changed, "unchanged": unchanged}));
    }
    for name in changed {
        output.status(&format!(
            "{name} has a new snapshot, which the next message sends."
        ));
    }
    let subject = match unchanged {
        [] => return Ok(()),
        [name] => format!("{name} is"),
        several => format!("{} are", size::count(several.len(), "resource")),
    };
    output.status(&format!("{subject} unchanged since the newest snapshot."));
    Ok(())
}
