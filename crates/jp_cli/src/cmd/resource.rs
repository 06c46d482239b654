//! `jp resource`.

mod refresh;
pub(crate) mod snapshots;
mod versions;

use jp_resource::{Payload, Snapshot};
use jp_storage::Store;

use self::versions::{ResourceVersion, list_versions};
use crate::{
    args::Resource,
    context::Context,
    error::{Code, SessionError},
};
use jp_session::{size, text::visible};

pub(crate) fn run(command: Resource, context: &Context<'_>) -> Result<Code, SessionError> {
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

fn list(context: &Context<'_>, id: Option<&str>) -> Result<Code, SessionError> {
    let found = context.session.select(id)?;
    let conversation = context.session.read(&found)?;
    let versions = list_versions(&conversation.stream);
    if context.output.is_json() {
        let versions: Vec<_> = versions.iter().map(ResourceVersion::to_json).collect();
        context.output.json(&versions)?;
        return Ok(Code::Done);
    }
    let rows: Vec<_> = versions.iter().map(ResourceVersion::cells).collect();
    context.output.table(&rows)?;
    if versions.is_empty() {
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
) -> Result<Code, SessionError> {
    let found = context.session.select(id)?;
    let conversation = context.session.read(&found)?;
    // A name may belong to several resources; `choose_version` reports that.
    let mut versions = list_versions(&conversation.stream);
    versions.retain(|version| {
        version.snapshot.uri == uri || version.snapshot.name.as_deref() == Some(uri)
    });
    let chosen = choose_version(&versions, uri, version)?;
    let bytes = read_content(&found.store, chosen.snapshot)?;
    if context.output.is_json() {
        let mut document = chosen.to_json();
        let resource = jp_resource::Resource::<_, String>::new(
            uri,
            jp_resource::ResourceContent::from_bytes(bytes),
        );
        let content = serde_json::to_value(&resource)?;
        // Only one of the two is present: text unchanged, binary content as base64.
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

/// Chooses a version by its number or the start of its checksum, else the newest one.
fn choose_version<'v, 'a>(
    versions: &'v [ResourceVersion<'a>],
    uri: &str,
    version: Option<&str>,
) -> Result<&'v ResourceVersion<'a>, SessionError> {
    let Some(newest) = versions.last() else {
        return Err(SessionError::new(format!(
            "the conversation has no resource {}",
            visible(uri)
        ))
        .with_hint("`jp resource ls` lists its resources."));
    };
    let mut uris: Vec<&str> = versions
        .iter()
        .map(|version| version.snapshot.uri.as_str())
        .collect();
    uris.sort_unstable();
    uris.dedup();
    if uris.len() > 1 {
        return Err(SessionError::new(format!(
            "{uri} is the name of {} resources: {}",
            uris.len(),
            uris.join(", ")
        ))
        .with_hint("pass the URI of one of them."));
    }
    // The newest version comes last.
    let Some(version) = version else {
        return Ok(newest);
    };
    // Eight or more digits are the start of a checksum that happens to have no letter there.
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
        SessionError::new(format!(
            "{uri} has no version {version}, only {}",
            size::count(versions.len(), "version")
        ))
        .with_hint("`jp resource ls` lists the versions, oldest first.")
    })
}

/// Reads the raw content of a snapshot.
fn read_content(store: &Store, snapshot: &Snapshot) -> Result<Vec<u8>, SessionError> {
    match &snapshot.content {
        Payload::Inline(content) => Ok(content.as_bytes().to_vec()),
        Payload::Stored(blob) => Ok(store.blobs().read(blob)?),
    }
}
