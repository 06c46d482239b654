//! Content that conversations keep, by its checksum.

use std::sync::Arc;

use jp_attachment::classify;
use jp_conversation::attachments::deliveries;
use jp_resource::{BlobRef, Checksum, Encoding, Payload, ResourceContent, Snapshot};
use jp_storage::{BlobError, Store};
use mcp_resources::{Content, Parameters, ReadError, ResourceTemplate};

use crate::{
    conversations::{Conversations, Found},
    files::refusal,
};

/// How many conversations, the newest first, are searched for one that says what a content is.
const MAX_SEARCHED: usize = 100;

/// What to do where there is no such content.
const LISTED: &str =
    "the list has the snapshots of the conversation, and 64 hexadecimal digits name one";

/// Makes the template of what the workspace's conversations keep; content of more bytes is refused.
pub(crate) fn template(conversations: &Arc<Conversations>, max_bytes: u64) -> ResourceTemplate {
    let conversations = Arc::clone(conversations);
    ResourceTemplate::new(
        "jp://blob/{sha256}",
        "Snapshot",
        move |parameters: Parameters| {
            let checksum = parameters
                .parse("sha256")
                .map_err(|error| refusal(error, LISTED))?;
            read(&conversations, checksum, max_bytes)
        },
    )
    .title("A snapshot")
    .description(
        "What a conversation keeps of something attached to it, by the SHA-256 of its content.",
    )
}

/// Reads the content of a snapshot, verified; of more bytes than may be given, nothing is read.
pub(crate) fn read_payload(
    store: &Store,
    payload: &Payload<ResourceContent>,
    max_bytes: u64,
) -> Result<Content, ReadError> {
    let BlobRef { checksum, size, .. } = match payload {
        Payload::Inline(content) => content.blob_ref(),
        Payload::Stored(blob) => *blob,
    };
    if size > max_bytes {
        return Err(too_large(checksum, size, max_bytes));
    }
    let content = match payload {
        Payload::Inline(content) => content.clone(),
        Payload::Stored(blob) => store
            .blobs()
            .read_content(blob)
            .map_err(|error| failure(blob.checksum, &error))?,
    };
    Ok(content_of(content))
}

/// Reads what the workspace keeps: also what no conversation names any more, for as long as it is not collected. A store
/// is asked first whether it has that at all.
fn read(
    conversations: &Conversations,
    checksum: Checksum,
    max_bytes: u64,
) -> Result<Content, ReadError> {
    // Of what the person keeps for themself, only that of the conversation that they named.
    let local = conversations
        .named_local()
        .filter(|found| keeps(found, checksum));
    let store = local
        .as_ref()
        .map_or(conversations.shared(), |found| &found.store);
    let path = store.blobs().path(&checksum);
    if !path.exists() {
        return Err(failure(checksum, &BlobError::Missing { checksum, path }));
    }
    let searched = match &local {
        Some(found) => vec![found.clone()],
        None => conversations.list_shared(),
    };
    match searched
        .iter()
        .take(MAX_SEARCHED)
        .find_map(|found| snapshot(found, checksum))
    {
        Some(snapshot) => {
            let mut content = read_payload(store, &snapshot.content, max_bytes)?;
            content.mime_type = snapshot.mime_type;
            Ok(content)
        }
        None => read_unnamed(store, checksum, max_bytes),
    }
}

/// Reads content of which nothing but the checksum is known: that of a conversation that is not searched, of one that
/// was removed, of what a tool returned.
fn read_unnamed(store: &Store, checksum: Checksum, max_bytes: u64) -> Result<Content, ReadError> {
    let failed = |error: BlobError| failure(checksum, &error);
    let size = store.blobs().verify(&checksum, max_bytes).map_err(failed)?;
    let blob = BlobRef {
        checksum,
        size,
        encoding: Encoding::Binary,
    };
    let (content, mime_type) = classify(store.blobs().read(&blob).map_err(failed)?, "");
    Ok(content_of(content).mime_type(mime_type))
}

/// Gives content as MCP has it.
pub(crate) fn content_of(content: ResourceContent) -> Content {
    match content {
        ResourceContent::Text(text) => Content::text(text),
        ResourceContent::Blob(bytes) => Content::bytes(bytes),
    }
}

/// Finds a snapshot with this content; parses only a conversation that names it.
fn snapshot(found: &Found, checksum: Checksum) -> Option<Snapshot> {
    if !keeps(found, checksum) {
        return None;
    }
    let stream = found.read().ok()?.stream;
    let of_content = |snapshot: &&Snapshot| matches!(&snapshot.content, Payload::Stored(blob) if blob.checksum == checksum);
    deliveries(&stream)
        .iter()
        .find_map(|(_, snapshots, _)| snapshots.iter().find(of_content).cloned())
}

/// Returns whether a conversation names this content.
fn keeps(found: &Found, checksum: Checksum) -> bool {
    let blobs = found.store.blobs_of(&found.located);
    blobs.is_ok_and(|blobs| blobs.iter().any(|blob| blob.checksum == checksum))
}

/// Says what is wrong without saying where the file is.
fn failure(checksum: Checksum, error: &BlobError) -> ReadError {
    match error {
        BlobError::Missing { .. } => refusal(
            format!("the workspace keeps no snapshot with the checksum {checksum}"),
            LISTED,
        ),
        BlobError::TooLarge { size, cap, .. } => too_large(checksum, *size, *cap),
        _ => ReadError::failed(format!(
            "the snapshot {checksum} is damaged or can't be opened; `jp storage check` tells a person what is wrong with it"
        )),
    }
}

fn too_large(checksum: Checksum, size: u64, cap: u64) -> ReadError {
    refusal(
        format!("the snapshot {checksum} has {size} bytes, and no more than {cap} are given"),
        "read a smaller one",
    )
}
