//! `jp attachment`.

mod print;

use std::collections::{HashMap, HashSet};

use crate::{
    args::Attachment,
    context::{Context, OpenConversation},
    error::{Code, SessionError},
};
use jp_attachment::{Declared, Place, Source};
use jp_conversation::{
    ConfigDelta, Declaration, Stream,
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
    servers::reading,
    size,
};
use serde_json::{Value, json};

/// The number of declarations that an error lists. With paths of usual length they fill half a screen.
const MAX_LISTED: usize = 10;

pub(crate) fn run(command: Attachment, context: &Context<'_>) -> Result<Code, SessionError> {
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

/// Declares attachments. Resolves files outside the workspace at once, because no path to them is stored.
fn add(context: &Context<'_>, id: Option<&str>, paths: &[String]) -> Result<Code, SessionError> {
    let target = context.open_conversation(id)?;
    let place = target.find_place()?;
    // The batch syncs content before `record` appends the event that names it.
    let batch = target.found.store.batch();
    let stamps = context.session.workspace.stamps();
    let content = BatchStore::new(&batch, &stamps);
    let resolving = resolve_context(target.setup(), &place, &content, false)?;
    let declared =
        parse(target.setup(), paths, &place, resolving.unavailable).map_err(without_skip_hint)?;
    check_addable(&target, &declared)?;
    let (outside, inside): (Vec<_>, Vec<_>) = declared.into_iter().partition(is_resolved_at_once);
    let earlier = EarlierDeclarations {
        plan: Plan::default(),
        configured: &ConfiguredDeclarations::default(),
        is_new: false,
        named: id,
    };
    let attachments =
        resolve(target.setup(), earlier, outside, &resolving).map_err(without_skip_hint)?;
    // The user approves what they type, so later queries don't ask about it.
    let approvals = list_approvals(&inside, &place);
    context
        .session
        .remember_approvals(approvals.iter().map(String::as_str));
    let resolved = attachments.delivered.into_iter();
    let mut added = stored_forms(&inside);
    added.extend(resolved.map(|delivered| delivered.declaration));
    let change = Change {
        add: added.clone(),
        ..Change::default()
    };
    let delta = ConfigDelta {
        resources: attachments.snapshots,
        ..change.into_delta()
    };
    target.record(delta, batch)?;
    if context.output.is_json() {
        context.output.json(&json!({"added": added}))?;
    } else {
        for declaration in added {
            context.output.status(&format!(
                "Attached {declaration}, starting with the next message."
            ));
        }
    }
    Ok(Code::Done)
}

/// Checks that jp can resolve each declaration later: its server is configured, and it needs no credentials.
fn check_addable(target: &OpenConversation<'_>, declared: &[Declared]) -> Result<(), SessionError> {
    let servers = reading::find_servers(target.setup())?;
    if let Some(error) = reading::find_unknown_server(servers, declared) {
        return Err(without_skip_hint(advice::failure(error)));
    }
    let with_credentials = declared.iter().find(|one| {
        matches!(
            one.source,
            Source::Http {
                credentials: Some(_),
                ..
            }
        )
    });
    match with_credentials {
        Some(Declared { input, .. }) => Err(SessionError::new(format!(
            "jp does not store the credentials of {input}, so it can't attach it later"
        ))
        .with_hint("`jp query --attach URL` attaches it to one message.")),
        None => Ok(()),
    }
}

/// Returns whether a conversation stores only the snapshot of a source, so that only this command can read the source.
fn is_resolved_at_once(declared: &Declared) -> bool {
    let declaration = declared.declaration.as_deref();
    declaration.is_none_or(|text| Declaration::new(text).names_snapshot())
}

/// Removes hints about `--skip-unavailable`, which only `jp query` has.
pub(crate) fn without_skip_hint(mut failure: SessionError) -> SessionError {
    failure
        .hints
        .retain(|hint| !hint.contains("--skip-unavailable"));
    failure
}

fn remove(context: &Context<'_>, id: Option<&str>, paths: &[String]) -> Result<Code, SessionError> {
    let target = context.open_conversation(id)?;
    let place = target.find_place()?;
    let configured = target.read_configured(&place)?;
    let declared = resolution::effective(target.stream(), &configured.declarations);
    let mut removed = Vec::new();
    for path in paths {
        let template = expand_with_given_values(path);
        let path = template.as_ref().unwrap_or(path);
        let matches = find_declarations(path, &declared, target.stream(), &place);
        if matches.is_empty() {
            // Nothing is removed if one of the texts is wrong.
            return Err(not_attached_error(path, &declared, &target, id));
        }
        removed.extend(matches);
    }
    let change = Change {
        remove: removed.clone(),
        ..Change::default()
    };
    target.record(change.into_delta(), target.found.store.batch())?;
    if context.output.is_json() {
        context.output.json(&json!({"removed": removed}))?;
    } else {
        for declaration in removed {
            context.output.status(&format!(
                "Stopped attaching {declaration}; existing snapshots stay in the history."
            ));
        }
    }
    Ok(Code::Done)
}

/// Finds the declarations that a text means: by their written form, else by the name of a file outside the workspace or by
/// `-` and `clip:`.
fn find_declarations(
    text: &str,
    declared: &[Declaration],
    stream: &Stream,
    place: &Place,
) -> Vec<Declaration> {
    let possible = jp_attachment::possible_declarations(text, place);
    let is_written_so = |declaration: &&Declaration| {
        let older = older_form(declaration);
        possible
            .iter()
            .any(|text| text == declaration.as_str() || older.as_ref() == Some(text))
    };
    let matches: Vec<_> = declared.iter().filter(is_written_so).cloned().collect();
    if !matches.is_empty() {
        return matches;
    }
    let names = names_of_outside_files(stream);
    let others = declared.iter().filter(|declaration| {
        names.get(declaration.as_str()) == Some(&text) || is_of_kind(declaration, text)
    });
    others.cloned().collect()
}

/// Returns whether a declaration is a snapshot of the source `-` or `clip:`.
fn is_of_kind(declaration: &Declaration, text: &str) -> bool {
    match text {
        "-" | "stdin:" => declaration.as_str().starts_with("stdin:"),
        "clip:" => declaration.as_str().starts_with("clip:"),
        _ => false,
    }
}

/// Words the error for a text that names no attachment. It may name a part of one, such as a file of a directory.
fn not_attached_error(
    text: &str,
    declared: &[Declaration],
    target: &OpenConversation<'_>,
    id: Option<&str>,
) -> SessionError {
    let rows = list_rows(target.stream(), declared);
    let whole = rows
        .iter()
        .find(|row| row.is_named(text))
        .map(|row| row.declaration);
    // The text may be a URL with credentials.
    let text = jp_attachment::redact(text);
    match whole {
        Some(declaration) => {
            SessionError::new(format!("{text} is a part of the attachment {declaration}"))
                .with_hint(format!(
                    "`{}` detaches all of it.",
                    detach_command(&format!("'{declaration}'"), id)
                ))
                .with_hint(format!(
                    "`jp attachment add '!{text}'{}` excludes {text}.",
                    id.map(|id| format!(" -i {id}")).unwrap_or_default()
                ))
        }
        None => SessionError::new(format!(
            "{text} is not attached to conversation {}",
            target.found.located.id
        ))
        .with_hint(hint_at_attachments(declared)),
    }
}

/// Lists the attachments in a hint; cuts a long list.
fn hint_at_attachments(declared: &[Declaration]) -> String {
    let listed: Vec<_> = declared
        .iter()
        .take(MAX_LISTED)
        .map(|declaration| format!("'{declaration}'"))
        .collect();
    let listed = listed.join(", ");
    match declared.len() {
        0 => "the conversation has no attachments; `jp attachment add` adds one.".to_owned(),
        all if all > MAX_LISTED => format!(
            "its attachments are {listed} and {} more; `jp attachment ls` lists them all.",
            all - MAX_LISTED
        ),
        _ => format!("its attachments: {listed}."),
    }
}

/// Returns the current form of a declaration of an older jp. `file:/` and `file://HOST/` meant the workspace's root then.
fn older_form(declaration: &Declaration) -> Option<String> {
    let path = declaration
        .as_str()
        .strip_prefix("file:/")?
        .trim_start_matches('/');
    (!path.is_empty()).then(|| format!("file:{path}"))
}

/// Returns the names of files outside the workspace, by their URIs.
fn names_of_outside_files(stream: &Stream) -> HashMap<&str, &str> {
    let snapshots = resolution::newest_snapshots(stream).into_values();
    let outside = snapshots.filter(|snapshot| jp_resource::uri::is_external(&snapshot.uri));
    outside
        .filter_map(|snapshot| Some((snapshot.uri.as_str(), snapshot.name.as_deref()?)))
        .collect()
}

/// A declaration with the newest snapshot of one of its resources.
struct AttachmentRow<'a> {
    declaration: &'a Declaration,
    /// The snapshot, and the turn that sent it; 0 if none has.
    newest: Option<(usize, &'a Snapshot)>,
}

impl AttachmentRow<'_> {
    /// Returns whether a text is the name or the URI of the snapshot.
    fn is_named(&self, text: &str) -> bool {
        self.newest.is_some_and(|(_, snapshot)| {
            snapshot.uri == text || snapshot.name.as_deref() == Some(text)
        })
    }

    /// Returns the cells of the table. `is_pending` says whether the next message sends the attachment.
    fn cells(&self, is_pending: bool) -> Vec<String> {
        let (turn, size, name, uri) = match self.newest {
            Some((turn, snapshot)) => {
                let turn = match turn {
                    0 => "not sent yet".to_owned(),
                    turn if is_pending => format!("turn {turn}, again with the next"),
                    turn => format!("turn {turn}"),
                };
                let size = size::bytes(snapshot.blob_ref().size);
                (turn, size, snapshot.label(), snapshot.uri.as_str())
            }
            // An exclude has no content, so no message ever sends it.
            None => {
                let turn = match self.declaration.is_exclude() {
                    true => "-",
                    false => "not sent yet",
                };
                (
                    turn.to_owned(),
                    String::new(),
                    self.declaration.as_str(),
                    "",
                )
            }
        };
        let kind = name_kind(self.declaration);
        vec![kind.to_owned(), turn, size, name.to_owned(), uri.to_owned()]
    }

    fn to_json(&self) -> Value {
        let (turn, snapshot) = self.newest.unzip();
        json!({
            "declaration": self.declaration,
            "kind": name_kind(self.declaration),
            "uri": snapshot.map(|snapshot| &snapshot.uri),
            "name": snapshot.and_then(|snapshot| snapshot.name.as_ref()),
            "size": snapshot.map(|snapshot| snapshot.blob_ref().size),
            "turn": turn.filter(|turn| *turn > 0),
        })
    }
}

/// Lists the attachments of a conversation. Without any conversation, lists those of the configuration.
fn list(context: &Context<'_>, id: Option<&str>) -> Result<Code, SessionError> {
    // Unlike the other commands, this one works before the first conversation.
    let found = match id {
        None => context.session.current()?,
        Some(id) => Some(context.session.select(Some(id))?),
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
    let rows = list_rows(&stream, &declared);
    warn_of_unreadable(&context.session, &stream);
    if context.output.is_json() {
        let rows: Vec<_> = rows.iter().map(AttachmentRow::to_json).collect();
        context.output.json(&rows)?;
        return Ok(Code::Done);
    }
    let plan = resolution::plan(&stream, &configured.declarations, &[]);
    let pending: HashSet<&Declaration> = plan.declarations().collect();
    let cells = rows
        .iter()
        .map(|row| row.cells(pending.contains(row.declaration)));
    context.output.table(&cells.collect::<Vec<_>>())?;
    if rows.is_empty() {
        context.output.status("There are no attachments.");
    }
    Ok(Code::Done)
}

/// Returns a row for each resource of each declaration, and one for each declaration without a resource.
fn list_rows<'a>(stream: &'a Stream, declared: &'a [Declaration]) -> Vec<AttachmentRow<'a>> {
    let sent = newest_by_declaration(stream);
    let stored = resolution::newest_snapshots(stream);
    let mut rows = Vec::new();
    for declaration in declared {
        match sent.get(declaration) {
            Some(snapshots) => {
                rows.extend(snapshots.iter().map(|newest| AttachmentRow {
                    declaration,
                    newest: Some(*newest),
                }));
            }
            None => {
                // A declaration that names its snapshot has one before any message sends it.
                let snapshot = stored.get(declaration.as_str());
                rows.push(AttachmentRow {
                    declaration,
                    newest: snapshot.map(|snapshot| (0, *snapshot)),
                });
            }
        }
    }
    rows
}

/// Names the kind of a declaration for `jp attachment ls` and its JSON.
fn name_kind(declaration: &Declaration) -> &'static str {
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
