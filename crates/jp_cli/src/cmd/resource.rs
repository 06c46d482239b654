//! `jp resource`.

mod refresh;
mod versions;

use jp_conversation::{Stream, attachments::deliveries};
use jp_resource::{Payload, Snapshot};
use jp_storage::Store;
use serde_json::{Value, json};

use self::versions::{ResourceVersion, versions};
use crate::{
    args::Resource,
    context::Context,
    error::{Code, Failure},
    output::table,
};
use jp_session::{size, text::visible};

pub(crate) fn run(command: Resource, context: &Context<'_>) -> Result<Code, Failure> {
    match command {
        Resource::Ls { conversation } => list(context, conversation.id.as_deref()),
        Resource::Refresh {
            resources,
            conversation,
        } => refresh::refresh(context, conversation.id.as_deref(), &resources),
        Resource::Show {
            uri,
            version,
            conversation,
        } => show(
            context,
            conversation.id.as_deref(),
            &uri,
            version.as_deref(),
        ),
    }
}

/// A snapshot and the turn it was attached at; 0 where no message has taken it yet.
pub(crate) struct Attached<'a> {
    pub(crate) turn: usize,
    pub(crate) snapshot: &'a Snapshot,
}

/// Returns every snapshot of a stream, oldest first.
pub(crate) fn attached(stream: &Stream) -> impl Iterator<Item = Attached<'_>> {
    let snapshots = deliveries(stream).into_iter();
    snapshots.flat_map(|(turn, resources, _)| {
        resources
            .iter()
            .map(move |snapshot| Attached { turn, snapshot })
    })
}

/// Describes a snapshot as `--format json` does everywhere.
pub(crate) fn describe(attached: &Attached<'_>) -> Value {
    let blob = attached.snapshot.blob_ref();
    json!({
        "uri": attached.snapshot.uri,
        "name": attached.snapshot.name,
        "mimeType": attached.snapshot.mime_type,
        "turn": (attached.turn > 0).then_some(attached.turn),
        "checksum": blob.checksum,
        "size": blob.size,
    })
}

fn list(context: &Context<'_>, id: Option<&str>) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let snapshots = versions(&conversation.stream);
    if context.output.is_json() {
        context.output.json(
            &snapshots
                .iter()
                .map(ResourceVersion::to_json)
                .collect::<Vec<_>>(),
        )?;
        return Ok(Code::Done);
    }
    let row = |version: &ResourceVersion<'_>| {
        let ResourceVersion {
            turn,
            snapshot,
            number,
            ..
        } = version;
        let blob = snapshot.blob_ref();
        // First, because a URI is long: 80 columns still show what `resource show --version` takes.
        vec![
            format!("version {number}"),
            if *turn > 0 {
                format!("turn {turn}")
            } else {
                "not sent yet".to_owned()
            },
            size::bytes(blob.size),
            blob.checksum.short(),
            snapshot.label().to_owned(),
            snapshot.uri.clone(),
        ]
    };
    table(&snapshots.iter().map(row).collect::<Vec<_>>())
        .iter()
        .try_for_each(|line| context.output.line(line))?;
    if snapshots.is_empty() {
        context.output.status(&format!(
            "Conversation {} has no resources.",
            conversation.id
        ));
    }
    Ok(Code::Done)
}

fn show(
    context: &Context<'_>,
    id: Option<&str>,
    uri: &str,
    version: Option<&str>,
) -> Result<Code, Failure> {
    let found = context.session.selected(id)?;
    let conversation = context.session.read(&found)?;
    let is_meant = |version: &ResourceVersion<'_>| {
        version.snapshot.uri == uri || version.snapshot.name.as_deref() == Some(uri)
    };
    let mut versions = versions(&conversation.stream);
    versions.retain(is_meant);
    let chosen = choose(&versions, uri, version)?;
    let bytes = read_content(&found.store, chosen.snapshot)?;
    if context.output.is_json() {
        let mut document = chosen.to_json();
        let resource = jp_resource::Resource::<_, String>::new(
            uri,
            jp_resource::ResourceContent::from_bytes(bytes),
        );
        let content = serde_json::to_value(&resource)?;
        for key in ["text", "blob"] {
            if let Some(value) = content.get(key) {
                document[key] = value.clone();
            }
        }
        context.output.json(&document)?;
    } else {
        context.output.content(&bytes)?;
    }
    Ok(Code::Done)
}

fn choose<'v, 'a>(
    versions: &'v [ResourceVersion<'a>],
    uri: &str,
    version: Option<&str>,
) -> Result<&'v ResourceVersion<'a>, Failure> {
    let Some(newest) = versions.last() else {
        return Err(
            Failure::new(format!("the conversation has no resource {}", visible(uri)))
                .with_hint("`jp resource ls` lists what it has."),
        );
    };
    let mut uris: Vec<&str> = versions
        .iter()
        .map(|version| version.snapshot.uri.as_str())
        .collect();
    uris.sort_unstable();
    uris.dedup();
    if uris.len() > 1 {
        return Err(Failure::new(format!(
            "{uri} is the name of {} resources: {}",
            uris.len(),
            uris.join(", ")
        ))
        .with_hint("name the one you mean by its URI."));
    }
    let Some(version) = version else {
        return Ok(newest);
    };
    let number = version.parse::<usize>().ok().filter(|_| version.len() < 8);
    let chosen = match number {
        Some(number) => versions.iter().find(|version| version.number == number),
        None => versions.iter().find(|one| {
            one.snapshot
                .blob_ref()
                .checksum
                .to_string()
                .starts_with(&version.to_ascii_lowercase())
        }),
    };
    chosen.ok_or_else(|| {
        Failure::new(format!(
            "{uri} has no version {version}, only {}",
            size::count(versions.len(), "version")
        ))
        .with_hint("`jp resource ls` lists them, the oldest first.")
    })
}

/// Reads the raw content of a snapshot.
pub(crate) fn read_content(store: &Store, snapshot: &Snapshot) -> Result<Vec<u8>, Failure> {
    match &snapshot.content {
        Payload::Inline(content) => Ok(content.as_bytes().to_vec()),
        Payload::Stored(blob) => Ok(store.blobs().read(blob)?),
    }
}
