//! `jp storage`: the size of the stores, and a check of their content.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    args::Storage,
    context::Context,
    error::{Code, SessionError, chain},
};
use jp_resource::{BlobRef, Checksum};
use jp_session::size;
use jp_storage::{BlobError, ReadError, Store};
use serde_json::{Value, json};

pub(crate) fn run(command: &Storage, context: &Context<'_>) -> Result<Code, SessionError> {
    match command {
        Storage::Status => print_status(context),
        Storage::Check => check(context),
    }
}

/// Prints the number and size of conversations and blobs in each store.
fn print_status(context: &Context<'_>) -> Result<Code, SessionError> {
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for (name, is_local) in [("workspace", false), ("local", true)] {
        let store = context.session.store(is_local);
        // Archived conversations take space, too.
        let conversations = [store.list()?, store.list_archived()?].concat();
        let lengths = conversations
            .iter()
            .map(|located| store.events_length(located));
        let events = lengths.sum::<Result<u64, _>>()?;
        let blobs = store.blobs().status()?;
        rows.push(vec![
            name.to_owned(),
            size::count(conversations.len(), "conversation"),
            size::bytes(events),
            size::count(blobs.count, "blob"),
            size::bytes(blobs.bytes),
            context.session.surroundings.display(store.directory()),
        ]);
        documents.push(json!({
            "store": name, "directory": store.directory(), "conversations": conversations.len(),
            "events_bytes": events, "blobs": blobs.count, "blobs_bytes": blobs.bytes,
        }));
    }
    if context.output.is_json() {
        context.output.json(&documents)?;
    } else {
        context.output.table(&rows)?;
    }
    Ok(Code::Done)
}

/// The minimum age of temporary files that jp removes: one hour. No writer needs so long, so their writer was interrupted.
const LEFTOVER_AGE: std::time::Duration = std::time::Duration::from_secs(3600);

/// A problem in a store.
struct Problem {
    conversation: Option<String>,
    blob: Option<Checksum>,
    what: String,
}

impl Problem {
    fn of_conversation(id: &str, what: String) -> Self {
        Self {
            conversation: Some(id.to_owned()),
            blob: None,
            what,
        }
    }

    /// Words a conversation that can't be read.
    fn of_reading(id: &str, error: &ReadError) -> Self {
        let what = format!("conversation {id}: failed to {}", chain(error));
        Self::of_conversation(id, what)
    }

    /// Words a directory of blobs that can't be listed.
    fn of_listing(error: &BlobError) -> Self {
        Self {
            conversation: None,
            blob: None,
            what: format!("failed to {}", chain(error)),
        }
    }

    fn to_json(&self) -> Value {
        json!({"conversation": self.conversation, "blob": self.blob, "problem": self.what})
    }
}

fn check(context: &Context<'_>) -> Result<Code, SessionError> {
    let mut problems = Vec::new();
    let (mut conversations, mut blobs) = (0, 0);
    for is_local in [false, true] {
        let store = context.session.store(is_local);
        // Removing leftovers writes to disk.
        if !context.global.no_persist {
            remove_leftovers(&store, context);
        }
        let needed = check_conversations(&store, &mut conversations, &mut problems)?;
        check_blobs(&store, &needed, &mut blobs, &mut problems);
    }
    if context.output.is_json() {
        let problems: Vec<_> = problems.iter().map(Problem::to_json).collect();
        context
            .output
            .json(&json!({"conversations": conversations, "blobs": blobs, "problems": problems}))?;
    } else {
        problems
            .iter()
            .try_for_each(|problem| context.output.line(&problem.what))?;
        let checked = format!(
            "{} and {}",
            size::count(conversations, "conversation"),
            size::count(blobs, "blob")
        );
        match problems.len() {
            0 => context
                .output
                .status(&format!("Checked {checked}: no problems.")),
            found => context.output.status(&format!(
                "Checked {checked}: {}.",
                size::count(found, "problem")
            )),
        }
    }
    Ok(if problems.is_empty() {
        Code::Done
    } else {
        Code::Failed
    })
}

/// Removes the temporary files of interrupted writers, and reports them.
fn remove_leftovers(store: &Store, context: &Context<'_>) {
    match store.remove_leftovers(LEFTOVER_AGE) {
        Ok(leftovers) => {
            if leftovers.removed > 0 {
                context.output.status(&format!(
                    "Removed {} of an interrupted jp.",
                    size::count(leftovers.removed, "temporary file")
                ));
            }
            if leftovers.kept > 0 {
                context.output.status(&format!(
                    "Kept {} less than an hour old: another jp may be using them.",
                    size::count(leftovers.kept, "temporary file")
                ));
            }
        }
        Err(error) => {
            context.output.warn(&format!(
                "temporary files remain: failed to {}",
                chain(&error)
            ));
        }
    }
}

/// Blobs that conversations need, with the ids of those conversations.
type NeededBlobs = BTreeMap<Checksum, (BlobRef, BTreeSet<String>)>;

/// Checks all conversations of a store; returns the blobs that they need.
fn check_conversations(
    store: &Store,
    checked: &mut usize,
    problems: &mut Vec<Problem>,
) -> Result<NeededBlobs, SessionError> {
    let mut needed = NeededBlobs::new();
    let mut all = [store.list()?, store.list_archived()?].concat();
    // Equal ids become neighbours.
    all.sort_by_key(|located| located.id);
    for pair in all.windows(2).filter(|pair| pair[0].id == pair[1].id) {
        let what = format!("conversation {}: two directories have this id", pair[0].id);
        problems.push(Problem::of_conversation(&pair[0].id.to_string(), what));
    }
    for located in all {
        let id = located.id.to_string();
        let warnings = store
            .read(&located)
            .map(|conversation| conversation.warnings);
        // A conversation that can't be read is one problem, not two.
        let blobs = warnings.as_ref().is_ok().then(|| store.blobs_of(&located));
        // Another jp may remove a conversation meanwhile, which is not a problem.
        let is_removed = matches!(warnings, Err(ReadError::Removed { .. }))
            || matches!(blobs, Some(Err(ReadError::Removed { .. })));
        if is_removed {
            continue;
        }
        *checked += 1;
        match warnings {
            Ok(warnings) => {
                let warnings = warnings.into_iter();
                problems.extend(warnings.map(|warning| Problem::of_conversation(&id, warning)));
            }
            Err(error) => problems.push(Problem::of_reading(&id, &error)),
        }
        match blobs {
            Some(Ok(blobs)) => add_needed(&mut needed, blobs, &id),
            Some(Err(error)) => problems.push(Problem::of_reading(&id, &error)),
            None => {}
        }
    }
    Ok(needed)
}

fn add_needed(needed: &mut NeededBlobs, blobs: Vec<BlobRef>, conversation: &str) {
    for blob in blobs {
        let (_, conversations) = needed
            .entry(blob.checksum)
            .or_insert_with(|| (blob, BTreeSet::new()));
        conversations.insert(conversation.to_owned());
    }
}

/// Verifies the blobs that conversations need, then all other blobs of the store.
fn check_blobs(
    store: &Store,
    needed: &NeededBlobs,
    checked: &mut usize,
    problems: &mut Vec<Problem>,
) {
    /// Largest blob that is verified without an event that says its size: 1 GiB. A small file can decompress to any size.
    const UNKNOWN_SIZE_CAP: u64 = 1 << 30;
    for (blob, conversations) in needed.values() {
        *checked += 1;
        if let Err(error) = store.blobs().read(blob) {
            let conversations: Vec<_> = conversations.iter().map(String::as_str).collect();
            let what = format!(
                "failed to {} (needed by conversation {})",
                chain(&error),
                conversations.join(", ")
            );
            problems.push(Problem {
                conversation: conversations.first().map(ToString::to_string),
                blob: Some(blob.checksum),
                what,
            });
        }
    }
    // If the store's directory is a link, that is one more problem, and jp still checks the other store.
    let files = match store.blobs().iter() {
        Ok(files) => files,
        Err(error) => return problems.push(Problem::of_listing(&error)),
    };
    for file in files {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                problems.push(Problem::of_listing(&error));
                continue;
            }
        };
        // Verified above, with the size that its event states.
        if needed.contains_key(&file.checksum) {
            continue;
        }
        let verified = store.blobs().verify(&file.checksum, UNKNOWN_SIZE_CAP);
        // Another jp has removed it since it was listed.
        if matches!(verified, Err(BlobError::Missing { .. })) {
            continue;
        }
        *checked += 1;
        if let Err(error) = verified {
            let what = format!("failed to {} (no conversation needs it)", chain(&error));
            problems.push(Problem {
                conversation: None,
                blob: Some(file.checksum),
                what,
            });
        }
    }
}
