//! Offers the snapshots of conversations by the checksum of their content.

use std::sync::Arc;

use jp_attachment::classify;
use jp_conversation::attachments::deliveries;
use jp_resource::{BlobRef, Checksum, Encoding, Payload, ResourceContent, Snapshot};
use jp_storage::{BlobError, Store};
use mcp_resources::{Content, Parameters, ReadError, ResourceTemplate};

use crate::{
    answer::{refusal, to_content},
    conversations::{Conversations, FoundConversation},
};

/// The number of conversations, from the newest, that are searched for the content's MIME type. Without it,
/// jp guesses the type from the content, because reading every conversation would take long.
const MAX_SEARCHED: usize = 100;

/// The advice if there is no such content.
const SEE_LIST: &str =
    "the list has the conversation's snapshots; a checksum has 64 hexadecimal digits";

/// Makes the template of the snapshots that the workspace's conversations keep. Refuses larger content than
/// `max_bytes`.
pub(crate) fn template(conversations: &Arc<Conversations>, max_bytes: u64) -> ResourceTemplate {
    let conversations = Arc::clone(conversations);
    ResourceTemplate::new(
        "jp://blob/{sha256}",
        "Snapshot",
        move |parameters: Parameters| {
            let checksum = parameters
                .parse("sha256")
                .map_err(|error| refusal(error, SEE_LIST))?;
            read(&conversations, checksum, max_bytes)
        },
    )
    .title("A snapshot")
    .description(
        "A snapshot of a conversation's attachment, identified by the SHA-256 of its content.",
    )
}

/// Reads and verifies the content of a snapshot. Refuses larger content than `max_bytes` without reading
/// it.
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
    Ok(to_content(content))
}

/// Reads content in the workspace's store, even if no conversation names it.
fn read(
    conversations: &Conversations,
    checksum: Checksum,
    max_bytes: u64,
) -> Result<Content, ReadError> {
    // Of local conversations, only the one that the user named is offered.
    let local = conversations
        .named_local()
        .filter(|found| keeps(found, checksum));
    let store = local
        .as_ref()
        .map_or(conversations.shared_store(), |found| &found.store);
    // Don't search conversations for missing content.
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
        .find_map(|found| find_snapshot(found, checksum))
    {
        Some(snapshot) => {
            let mut content = read_payload(store, &snapshot.content, max_bytes)?;
            content.mime_type = snapshot.mime_type;
            Ok(content)
        }
        None => read_unnamed(store, checksum, max_bytes),
    }
}

/// Reads content that no searched conversation names: that of an older or removed conversation, or of a
/// tool's result.
fn read_unnamed(store: &Store, checksum: Checksum, max_bytes: u64) -> Result<Content, ReadError> {
    let bytes =
        read_verified(store, checksum, max_bytes).map_err(|error| failure(checksum, &error))?;
    let (content, mime_type) = classify(bytes, "");
    Ok(to_content(content).mime_type(mime_type))
}

fn read_verified(store: &Store, checksum: Checksum, max_bytes: u64) -> Result<Vec<u8>, BlobError> {
    let blob = BlobRef {
        checksum,
        size: store.blobs().verify(&checksum, max_bytes)?,
        encoding: Encoding::Binary,
    };
    store.blobs().read(&blob)
}

/// Finds a snapshot with this content. Parses a conversation only if it names the content.
fn find_snapshot(found: &FoundConversation, checksum: Checksum) -> Option<Snapshot> {
    if !keeps(found, checksum) {
        return None;
    }
    let stream = found.read().ok()?.stream;
    deliveries(&stream)
        .iter()
        .flat_map(|(_, snapshots, _)| snapshots.iter())
        .find(|snapshot| is_stored_as(snapshot, checksum))
        .cloned()
}

fn is_stored_as(snapshot: &Snapshot, checksum: Checksum) -> bool {
    matches!(&snapshot.content, Payload::Stored(blob) if blob.checksum == checksum)
}

/// Returns true if a conversation names this content.
fn keeps(found: &FoundConversation, checksum: Checksum) -> bool {
    let blobs = found.store.blobs_of(&found.located);
    blobs.is_ok_and(|blobs| blobs.iter().any(|blob| blob.checksum == checksum))
}

/// Words an error without the file's path, which clients must not learn.
fn failure(checksum: Checksum, error: &BlobError) -> ReadError {
    match error {
        BlobError::Missing { .. } => refusal(
            format!("the workspace has no snapshot with the checksum {checksum}"),
            SEE_LIST,
        ),
        BlobError::TooLarge { size, cap, .. } => too_large(checksum, *size, *cap),
        _ => ReadError::failed(format!(
            "the snapshot {checksum} is damaged or can't be opened; the user can run `jp storage check`"
        )),
    }
}

fn too_large(checksum: Checksum, size: u64, cap: u64) -> ReadError {
    refusal(
        format!("the snapshot {checksum} has {size} bytes, more than the limit of {cap}"),
        "read a smaller one",
    )
}
