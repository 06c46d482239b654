//! `jp attachment print`: attachments as a model sees them.

use std::collections::HashMap;

use crate::{
    cmd::attachment::{AttachmentRow, list_rows},
    context::Context,
    error::{Code, SessionError},
};
use jp_attachment::Place;
use jp_conversation::{
    Declaration,
    resolution::{self, Plan},
};
use jp_resource::{BlobRef, Payload, ResourceContent, Snapshot};
use jp_session::{
    attachments::{
        declarations::resolve_context,
        resolve::{EarlierDeclarations, resolve},
        store::BatchStore,
    },
    query::Scratch,
};
use jp_storage::{BlobError, Blobs, ConversationId};
use serde_json::{Value, json};

/// Prints attachments. Reads those that no message has sent yet, and stores nothing of them.
pub(super) fn print(
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
    let rows = list_rows(target.stream(), &declared);
    let wanted: Vec<_> = wanted
        .iter()
        .map(|text| WantedAttachment::new(text, &place))
        .collect();
    for wanted in &wanted {
        wanted.check(&rows, target.found.located.id)?;
    }
    let mut snapshots = Vec::new();
    let mut pending = Vec::new();
    for row in &rows {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted.matches(row)) {
            continue;
        }
        match row.newest {
            Some((_, snapshot)) => snapshots.push(snapshot.clone()),
            None => pending.push(row.declaration.clone()),
        }
    }
    // New content goes to a temporary store, which is deleted when the command ends.
    let scratch = Scratch::new()?;
    let batch = scratch.blobs().batch();
    let stamps = context.session.workspace.stamps();
    let content = BatchStore::new(&batch, &stamps);
    let resolving = resolve_context(target.setup(), &place, &content, false)?;
    if !pending.is_empty() {
        for declaration in &pending {
            context.output.status(&format!(
                "{declaration} was not sent yet; this is its current content."
            ));
        }
        let earlier = EarlierDeclarations {
            plan: Plan {
                resolve: pending,
                excludes,
                ..Plan::default()
            },
            configured: &configured,
            is_new: false,
            named: id,
        };
        let attachments = resolve(target.setup(), earlier, Vec::new(), &resolving)?;
        snapshots.extend(attachments.snapshots);
    }
    batch.commit()?;
    let stores = [scratch.blobs().clone(), target.found.store.blobs().clone()];
    write(context, &snapshots, &stores)
}

/// A text on the command line with the declarations that it may mean.
struct WantedAttachment<'a> {
    text: &'a str,
    declarations: Vec<String>,
}

impl<'a> WantedAttachment<'a> {
    fn new(text: &'a str, place: &Place) -> Self {
        Self {
            text,
            declarations: jp_attachment::possible_declarations(text, place),
        }
    }

    /// Fails if the text means none of the attachments.
    fn check(
        &self,
        rows: &[AttachmentRow<'_>],
        conversation: ConversationId,
    ) -> Result<(), SessionError> {
        if rows.iter().any(|row| self.matches(row)) {
            return Ok(());
        }
        let text = jp_attachment::redact(self.text);
        Err(SessionError::new(format!(
            "{text} is not attached to conversation {conversation}"
        ))
        .with_hint("`jp attachment ls` lists the attachments."))
    }

    fn matches(&self, row: &AttachmentRow<'_>) -> bool {
        row.is_named(self.text)
            || self
                .declarations
                .iter()
                .any(|declaration| declaration == row.declaration.as_str())
    }
}

fn write(
    context: &Context<'_>,
    snapshots: &[Snapshot],
    stores: &[Blobs],
) -> Result<Code, SessionError> {
    let output = context.output;
    if output.is_json() {
        let documents: Result<Vec<_>, _> = snapshots
            .iter()
            .map(|snapshot| to_json(snapshot, stores))
            .collect();
        output.json(&documents?)?;
        return Ok(Code::Done);
    }
    match snapshots {
        [] => output.status("There are no attachments to print."),
        // A single attachment is printed without a heading, so that `>` writes it to a file unchanged.
        [snapshot] => match read_formatted(snapshot, stores)? {
            ResourceContent::Text(text) => output.text(&text)?,
            ResourceContent::Blob(bytes) => output.content(&bytes)?,
        },
        several => {
            let mut gap = "";
            for (snapshot, heading) in several.iter().zip(headings(several)) {
                output.line(&format!("{gap}{heading}"))?;
                gap = "\n";
                match read_formatted(snapshot, stores)? {
                    ResourceContent::Text(text) => output.text(&text)?,
                    // Binary content between texts would be useless, so only its size is printed.
                    ResourceContent::Blob(bytes) => {
                        let mime_type = snapshot.mime_type.as_deref();
                        let mime_type = mime_type.unwrap_or("application/octet-stream");
                        output.line(&format!("[{mime_type}, {} bytes]", bytes.len()))?;
                    }
                }
            }
        }
    }
    Ok(Code::Done)
}

/// Returns a heading for each snapshot, as `head` and `tail` write them. It has the URI if two labels are equal.
fn headings(snapshots: &[Snapshot]) -> Vec<String> {
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for snapshot in snapshots {
        *labels.entry(snapshot.label()).or_default() += 1;
    }
    let headings = snapshots.iter().map(|snapshot| {
        let label = snapshot.label();
        let uri = match labels[label] {
            1 => String::new(),
            _ => format!(" ({})", snapshot.uri),
        };
        format!("==> {}{uri} <==", label.escape_debug())
    });
    headings.collect()
}

/// Reads the content that a model sees: the formatted text if there is one.
fn read_formatted(snapshot: &Snapshot, stores: &[Blobs]) -> Result<ResourceContent, SessionError> {
    match &snapshot.formatted {
        Some(Payload::Inline(text)) => Ok(ResourceContent::Text(text.clone())),
        Some(Payload::Stored(blob)) => read_blob(blob, stores),
        None => read_raw(snapshot, stores),
    }
}

fn read_raw(snapshot: &Snapshot, stores: &[Blobs]) -> Result<ResourceContent, SessionError> {
    match &snapshot.content {
        Payload::Inline(content) => Ok(content.clone()),
        Payload::Stored(blob) => read_blob(blob, stores),
    }
}

/// Reads content from the first store that has it.
fn read_blob(blob: &BlobRef, stores: &[Blobs]) -> Result<ResourceContent, SessionError> {
    // Only the last store's failure to find the content is an error.
    let (last, others) = stores.split_last().expect("there is a store to read from");
    for store in others {
        match store.read_content(blob) {
            Err(BlobError::Missing { .. }) => {}
            read => return Ok(read?),
        }
    }
    Ok(last.read_content(blob)?)
}

/// Describes a resource in one flat object, as MCP does.
fn to_json(snapshot: &Snapshot, stores: &[Blobs]) -> Result<Value, SessionError> {
    let content = read_raw(snapshot, stores)?;
    let formatted = match &snapshot.formatted {
        Some(_) => read_formatted(snapshot, stores)?
            .as_text()
            .map(str::to_owned),
        None => None,
    };
    let mut resource = snapshot.clone().map(|_| content, |_| String::new());
    resource.formatted = formatted;
    Ok(json!(resource))
}
