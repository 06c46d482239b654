//! `jp attachment print`: what is attached, as a model is shown it.

use std::collections::HashMap;

use crate::{
    cmd::attachment::{Row, rows},
    context::Context,
    error::{Code, Failure},
};
use jp_config::Resolved;
use jp_conversation::{Declaration, Stream, resolution, resolution::Plan};
use jp_resource::{BlobRef, Payload, ResourceContent, Snapshot};
use jp_session::{
    attachments::{
        declarations::{ConfiguredDeclarations, place, read_configured, resolve_context},
        resolve::{EarlierDeclarations, resolve},
        store::BatchStore,
    },
    query::Scratch,
};
use jp_storage::{BlobError, Blobs};
use serde_json::{Value, json};

/// Writes what is attached; what no message has taken yet is read now, and not kept.
pub(super) fn print(
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
    declared.retain(|declaration| !declaration.is_exclude());
    let rows: Vec<Row<'_>> = rows(stream, &declared);
    let meant: Vec<Meant<'_>> = wanted.iter().map(|text| Meant::new(text, &place)).collect();
    let is_wanted = |row: &Row<'_>| meant.is_empty() || meant.iter().any(|meant| meant.names(row));
    if let Some(unknown) = meant
        .iter()
        .find(|meant| !rows.iter().any(|row| meant.names(row)))
    {
        let text = jp_attachment::redacted(unknown.text);
        return Err(Failure::new(format!(
            "{text} is not attached to conversation {}",
            found.located.id
        ))
        .with_hint("`jp attachment ls` lists what is."));
    }
    let scratch = Scratch::new()?;
    let batch = scratch.blobs().batch();
    let stamps = context.session.workspace.stamps();
    let keeper = BatchStore::new(&batch, &stamps);
    let resolving = resolve_context(context.setup(&config), &place, &keeper, false)?;
    let mut snapshots = Vec::new();
    let mut pending = Vec::new();
    for row in rows.into_iter().filter(is_wanted) {
        match row.newest {
            Some((_, snapshot)) => snapshots.push(snapshot.clone()),
            None => pending.push(row.declaration.clone()),
        }
    }
    snapshots.extend(read_now(
        context,
        &config,
        pending,
        stream,
        &configured,
        id,
        &resolving,
    )?);
    batch.commit()?;
    let stores = [scratch.blobs().clone(), found.store.blobs().clone()];
    write(context, &snapshots, &stores)
}

/// What a person may mean by a text: a name, a URI, or a declaration as it was typed.
struct Meant<'a> {
    text: &'a str,
    declarations: Vec<String>,
}

impl<'a> Meant<'a> {
    fn new(text: &'a str, place: &jp_attachment::Place) -> Self {
        Self {
            text,
            declarations: jp_attachment::possible_declarations(text, place),
        }
    }

    fn names(&self, row: &Row<'_>) -> bool {
        row.names(self.text)
            || self
                .declarations
                .iter()
                .any(|declaration| declaration == row.declaration.as_str())
    }
}

fn read_now(
    context: &Context<'_>,
    config: &Resolved,
    declarations: Vec<Declaration>,
    stream: &Stream,
    configured: &ConfiguredDeclarations,
    named: Option<&str>,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Vec<Snapshot>, Failure> {
    if declarations.is_empty() {
        return Ok(Vec::new());
    }
    for declaration in &declarations {
        context.output.status(&format!(
            "{declaration} was not sent yet; this is what it gives now."
        ));
    }
    let mut excludes = resolution::effective(stream, &configured.declarations);
    excludes.retain(Declaration::is_exclude);
    let plan = Plan {
        resolve: declarations,
        excludes,
        ..Plan::default()
    };
    let earlier = EarlierDeclarations {
        plan,
        configured,
        is_new: false,
        named,
    };
    Ok(resolve(context.setup(config), earlier, Vec::new(), resolving)?.snapshots)
}

fn write(context: &Context<'_>, snapshots: &[Snapshot], stores: &[Blobs]) -> Result<Code, Failure> {
    if context.output.is_json() {
        let documents: Result<Vec<_>, _> = snapshots
            .iter()
            .map(|snapshot| document(snapshot, stores))
            .collect();
        context.output.json(&documents?)?;
        return Ok(Code::Done);
    }
    if snapshots.is_empty() {
        context.output.status("There is nothing to print.");
    }
    let mut labels: HashMap<&str, usize> = HashMap::new();
    snapshots
        .iter()
        .for_each(|snapshot| *labels.entry(snapshot.label()).or_default() += 1);
    for (index, snapshot) in snapshots.iter().enumerate() {
        if snapshots.len() > 1 {
            let gap = if index == 0 { "" } else { "\n" };
            let label = snapshot.label();
            let uri = if labels[label] > 1 {
                format!(" ({})", snapshot.uri)
            } else {
                String::new()
            };
            context
                .output
                .line(&format!("{gap}==> {}{uri} <==", label.escape_debug()))?;
        }
        match shown(snapshot, stores)? {
            ResourceContent::Text(text) => context.output.text(&text)?,
            ResourceContent::Blob(bytes) if snapshots.len() == 1 => {
                context.output.content(&bytes)?
            }
            ResourceContent::Blob(bytes) => {
                let mime_type = snapshot
                    .mime_type
                    .as_deref()
                    .unwrap_or("application/octet-stream");
                context
                    .output
                    .line(&format!("[{mime_type}, {} bytes]", bytes.len()))?;
            }
        }
    }
    Ok(Code::Done)
}

/// Returns what a model is shown: the formatted text, else the content.
fn shown(snapshot: &Snapshot, stores: &[Blobs]) -> Result<ResourceContent, Failure> {
    match &snapshot.formatted {
        Some(Payload::Inline(text)) => Ok(ResourceContent::Text(text.clone())),
        Some(Payload::Stored(blob)) => content(blob, stores),
        None => raw(snapshot, stores),
    }
}

fn raw(snapshot: &Snapshot, stores: &[Blobs]) -> Result<ResourceContent, Failure> {
    match &snapshot.content {
        Payload::Inline(content) => Ok(content.clone()),
        Payload::Stored(blob) => content(blob, stores),
    }
}

/// Reads content from the first store that has it.
fn content(blob: &BlobRef, stores: &[Blobs]) -> Result<ResourceContent, Failure> {
    let (last, others) = stores.split_last().expect("there is a store to read from");
    for store in others {
        match store.read_content(blob) {
            Err(BlobError::Missing { .. }) => {}
            read => return Ok(read?),
        }
    }
    Ok(last.read_content(blob)?)
}

/// Describes a resource flat, as MCP does.
fn document(snapshot: &Snapshot, stores: &[Blobs]) -> Result<Value, Failure> {
    let content = raw(snapshot, stores)?;
    let formatted = match &snapshot.formatted {
        Some(_) => shown(snapshot, stores)?.as_text().map(str::to_owned),
        None => None,
    };
    let mut resource = snapshot.clone().map(|_| content, |_| String::new());
    resource.formatted = formatted;
    Ok(json!(resource))
}
