//! `jp attachment`.

mod print;

use std::collections::{HashMap, HashSet};

use crate::{
    args::Attachment,
    context::Context,
    error::{Code, Failure},
    output::table,
};
use jp_attachment::{Declared, Source};
use jp_conversation::{
    ConfigDelta, Declaration, Event, EventKind, Stream,
    attachments::newest_by_declaration,
    resolution::{self, Change, Plan},
};
use jp_resource::Snapshot;
use jp_session::{
    attachments::{
        advice,
        approval::list_approvals,
        declarations::{
            ConfiguredDeclarations, place, read_configured, resolve_context, warn_of_unreadable,
        },
        resolve::{EarlierDeclarations, detach_command, parse, resolve, stored_forms},
        store::BatchStore,
        template::expand_with_given_values,
    },
    lock,
    servers::reading,
    session::Found,
    size,
};
use jp_storage::Conversation;
use serde_json::{Value, json};

/// How many declarations an error lists.
const MAX_LISTED: usize = 10;

pub(crate) fn run(command: Attachment, context: &Context<'_>) -> Result<Code, Failure> {
    match command {
        Attachment::Add {
            paths,
            conversation,
        } => add(context, conversation.id.as_deref(), &paths),
        Attachment::Rm {
            paths,
            conversation,
        } => remove(context, conversation.id.as_deref(), &paths),
        Attachment::Ls { conversation } => list(context, conversation.id.as_deref()),
        Attachment::Print {
            attachments,
            conversation,
        } => print::print(context, conversation.id.as_deref(), &attachments),
    }
}

/// Declares files; those outside the workspace are read now, as they can't be found again later.
fn add(context: &Context<'_>, id: Option<&str>, paths: &[String]) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let config = context
        .session
        .config(Some(&context.session.read(&found)?), &[])?;
    let place = place(context.setup(&config))?;
    let batch = found.store.batch();
    let stamps = context.session.workspace.stamps();
    let keeper = BatchStore::new(&batch, &stamps);
    let resolving = resolve_context(context.setup(&config), &place, &keeper, false)?;
    let is_outside = |declared: &Declared| {
        declared
            .declaration
            .as_deref()
            .is_none_or(|text| Declaration::new(text).names_snapshot())
    };
    let declared = parse(context.setup(&config), paths, &place, resolving.unavailable)
        .map_err(without_skipping)?;
    let servers = reading::find_servers(context.setup(&config))?;
    if let Some(error) = reading::find_unknown_server(servers, &declared) {
        return Err(without_skipping(advice::failure(error)));
    }
    let has_credentials = |one: &&Declared| {
        matches!(
            one.source,
            Source::Http {
                credentials: Some(_),
                ..
            }
        )
    };
    if let Some(declared) = declared.iter().find(has_credentials) {
        let input = &declared.input;
        return Err(Failure::new(format!(
            "the credentials of {input} are not kept, so it can't be attached later"
        ))
        .with_hint("`jp query --attach URL` uses them for that message."));
    }
    let (outside, inside): (Vec<_>, Vec<_>) = declared.into_iter().partition(is_outside);
    let configured = ConfiguredDeclarations::default();
    let nothing = EarlierDeclarations {
        plan: Plan::default(),
        configured: &configured,
        is_new: false,
        named: id,
    };
    let attachments =
        resolve(context.setup(&config), nothing, outside, &resolving).map_err(without_skipping)?;
    let mut added = stored_forms(&inside);
    context
        .session
        .remember_agreed(list_approvals(&inside, &place).iter().map(String::as_str));
    added.extend(
        attachments
            .delivered
            .into_iter()
            .map(|delivered| delivered.declaration),
    );
    let mut delta = Change {
        add: added.clone(),
        ..Change::default()
    }
    .into_delta();
    delta.resources = attachments.snapshots;
    record(context, &found, delta, batch)?;
    if context.output.is_json() {
        context.output.json(&json!({"added": added}))?;
    } else {
        for declaration in added {
            context.output.status(&format!(
                "{declaration} is attached from the next message on."
            ));
        }
    }
    Ok(Code::Done)
}

/// Takes out advice that is for `query` alone.
pub(crate) fn without_skipping(failure: impl Into<Failure>) -> Failure {
    let mut failure = failure.into();
    failure
        .hints
        .retain(|hint| !hint.contains("--skip-unavailable"));
    failure
}

fn remove(context: &Context<'_>, id: Option<&str>, paths: &[String]) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let config = context.session.config(Some(&conversation), &[])?;
    let place = place(context.setup(&config))?;
    let declared = resolution::effective(
        &conversation.stream,
        &read_configured(&config, &place)?.declarations,
    );
    let mut removed = Vec::new();
    for path in paths {
        let template = expand_with_given_values(path);
        let path = template.as_ref().unwrap_or(path);
        let meant = jp_attachment::possible_declarations(path, &place);
        let is_meant = |declaration: &&Declaration| {
            let is_declared = |text: &str| meant.iter().any(|meant| meant == text);
            is_declared(declaration.as_str())
                || older_form(declaration).is_some_and(|text| is_declared(&text))
        };
        let mut matches: Vec<_> = declared.iter().filter(is_meant).cloned().collect();
        if matches.is_empty() {
            let names = names_outside(&conversation.stream);
            let is_named = |declaration: &&Declaration| {
                names.get(declaration.as_str()) == Some(&path.as_str())
                    || is_kind(declaration, path)
            };
            matches = declared.iter().filter(is_named).cloned().collect();
        }
        if matches.is_empty() {
            let failure = not_attached(path, &conversation.stream, &declared, &found, id);
            return Err(failure);
        }
        removed.extend(matches);
    }
    let delta = Change {
        remove: removed.clone(),
        ..Change::default()
    }
    .into_delta();
    record(context, &found, delta, found.store.batch())?;
    if context.output.is_json() {
        context.output.json(&json!({"removed": removed}))?;
    } else {
        for declaration in removed {
            context.output.status(&format!(
                "{declaration} is attached no longer; the history keeps what it has of it, sent or not."
            ));
        }
    }
    Ok(Code::Done)
}

/// Returns whether a declaration is of what `-` or `clip:` attached.
fn is_kind(declaration: &Declaration, text: &str) -> bool {
    match text {
        "-" | "stdin:" => declaration.as_str().starts_with("stdin:"),
        "clip:" => declaration.as_str().starts_with("clip:"),
        _ => false,
    }
}

/// Says that something is not attached, or with what it is, and what else is.
fn not_attached(
    text: &str,
    stream: &Stream,
    declared: &[Declaration],
    found: &Found,
    named: Option<&str>,
) -> Failure {
    let rows = rows(stream, declared);
    let gave = rows
        .iter()
        .find(|row| row.names(text))
        .map(|row| row.declaration);
    let text = jp_attachment::redacted(text);
    match gave {
        Some(declaration) => Failure::new(format!("{text} is attached as a part of {declaration}"))
            .with_hint(format!(
                "`{}` detaches all of it.",
                detach_command(&format!("'{declaration}'"), named)
            ))
            .with_hint(format!(
                "`jp attachment add '!{text}'{}` excludes {text}.",
                named.map(|id| format!(" -i {id}")).unwrap_or_default()
            )),
        None => Failure::new(format!(
            "{text} is not attached to conversation {}",
            found.located.id
        ))
        .with_hint(attached_instead(declared)),
    }
}

/// Lists what is attached; a long list is cut.
fn attached_instead(declared: &[Declaration]) -> String {
    let quoted = |declaration: &Declaration| format!("'{declaration}'");
    let listed: Vec<_> = declared.iter().take(MAX_LISTED).map(quoted).collect();
    let listed = listed.join(", ");
    match declared.len() {
        0 => "nothing is attached to it; `jp attachment add` attaches something.".to_owned(),
        all if all > MAX_LISTED => {
            format!(
                "what is: {listed} and {} more; `jp attachment ls` lists all of it.",
                all - MAX_LISTED
            )
        }
        _ => format!("what is: {listed}."),
    }
}

/// Returns today's form of a declaration that names the workspace root `/` or a host, if it is one as older ones do.
fn older_form(declaration: &Declaration) -> Option<String> {
    let path = declaration
        .as_str()
        .strip_prefix("file:/")?
        .trim_start_matches('/');
    (!path.is_empty()).then(|| format!("file:{path}"))
}

/// Returns what the files outside the workspace are called, by their URIs.
fn names_outside(stream: &Stream) -> HashMap<&str, &str> {
    let snapshots = resolution::newest_snapshots(stream).into_values();
    let outside = snapshots.filter(|snapshot| jp_resource::uri::is_external(&snapshot.uri));
    outside
        .filter_map(|snapshot| Some((snapshot.uri.as_str(), snapshot.name.as_deref()?)))
        .collect()
}

/// Appends a change of configuration, under the conversation's lock.
pub(crate) fn record(
    context: &Context<'_>,
    found: &Found,
    delta: ConfigDelta,
    batch: jp_storage::Batch,
) -> Result<(), Failure> {
    let lock = lock::acquire(&context.session, found)?;
    let conversation: Conversation = found.store.read(&found.located)?;
    let event = Event::new(context.session.now(), EventKind::ConfigDelta(delta));
    found
        .store
        .writer(&conversation, lock)
        .append(vec![event], batch)?;
    Ok(())
}

/// A declaration, and the newest snapshot of one thing that it gave.
struct Row<'a> {
    declaration: &'a Declaration,
    newest: Option<(usize, &'a Snapshot)>,
}

impl Row<'_> {
    /// Returns whether a text is the name or the URI of the snapshot.
    fn names(&self, text: &str) -> bool {
        let is_named =
            |snapshot: &Snapshot| snapshot.uri == text || snapshot.name.as_deref() == Some(text);
        self.newest.is_some_and(|(_, snapshot)| is_named(snapshot))
    }
}

fn list(context: &Context<'_>, id: Option<&str>) -> Result<Code, Failure> {
    let found = match (id, context.session.current()?) {
        (None, found) => found,
        (Some(id), _) => Some(context.session.selected(Some(id))?),
    };
    let conversation = found
        .as_ref()
        .map(|found| context.session.read(found))
        .transpose()?;
    let config = context.session.config(conversation.as_ref(), &[])?;
    let configured = read_configured(&config, &place(context.setup(&config))?)?;
    let stream = conversation
        .map(|conversation| conversation.stream)
        .unwrap_or_default();
    let declared = resolution::effective(&stream, &configured.declarations);
    let rows = rows(&stream, &declared);
    let pending = resolution::plan(&stream, &configured.declarations, &[]);
    let pending: HashSet<&Declaration> = pending.declarations().collect();
    warn_of_unreadable(&context.session, &stream);
    if context.output.is_json() {
        context
            .output
            .json(&rows.iter().map(document).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let line = |row: &Row<'_>| {
        let (turn, size, name, uri) = match row.newest {
            Some((turn, snapshot)) => {
                let turn = match turn {
                    0 => "not sent yet".to_owned(),
                    turn if pending.contains(row.declaration) => {
                        format!("turn {turn}, again with the next")
                    }
                    turn => format!("turn {turn}"),
                };
                let size = size::bytes(snapshot.blob_ref().size);
                (turn, size, snapshot.label(), snapshot.uri.as_str())
            }
            None if row.declaration.is_exclude() => {
                ("-".to_owned(), String::new(), row.declaration.as_str(), "")
            }
            None => (
                "not sent yet".to_owned(),
                String::new(),
                row.declaration.as_str(),
                "",
            ),
        };
        vec![
            kind(row.declaration).to_owned(),
            turn,
            size,
            name.to_owned(),
            uri.to_owned(),
        ]
    };
    table(&rows.iter().map(line).collect::<Vec<_>>())
        .iter()
        .try_for_each(|line| context.output.line(line.trim_end()))?;
    if rows.is_empty() {
        context.output.status("Nothing is attached.");
    }
    Ok(Code::Done)
}

/// Returns a row for everything that a declaration gave, with its newest snapshot.
fn rows<'a>(stream: &'a Stream, declared: &'a [Declaration]) -> Vec<Row<'a>> {
    let newest = newest_by_declaration(stream);
    let kept = resolution::newest_snapshots(stream);
    let mut rows = Vec::new();
    for declaration in declared {
        match newest.get(declaration) {
            Some(given) => {
                rows.extend(given.iter().map(|newest| Row {
                    declaration,
                    newest: Some(*newest),
                }));
            }
            None => {
                let newest = kept
                    .get(declaration.as_str())
                    .map(|snapshot| (0, *snapshot));
                rows.push(Row {
                    declaration,
                    newest,
                });
            }
        }
    }
    rows
}

fn document(row: &Row<'_>) -> Value {
    let (turn, snapshot) = row.newest.unzip();
    json!({
        "declaration": row.declaration,
        "kind": kind(row.declaration),
        "uri": snapshot.map(|snapshot| &snapshot.uri),
        "name": snapshot.and_then(|snapshot| snapshot.name.as_ref()),
        "size": snapshot.map(|snapshot| snapshot.blob_ref().size),
        "turn": turn.filter(|turn| *turn > 0),
    })
}

fn kind(declaration: &Declaration) -> &'static str {
    let scheme = declaration.as_str().split(':').next().unwrap_or_default();
    match scheme {
        _ if declaration.is_exclude() => "exclude",
        "external" => "external",
        "http" | "https" => "url",
        "cmd" => "command",
        "data" => "data",
        "stdin" => "stdin",
        "clip" => "clipboard",
        "bear" => "note",
        _ if scheme.starts_with("mcp+") => "mcp",
        _ => "workspace",
    }
}
