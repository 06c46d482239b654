//! `jp storage`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    args::Storage,
    context::Context,
    error::{Code, Failure, chain},
    output::table,
};
use jp_resource::{BlobRef, Checksum};
use jp_session::size;
use jp_storage::{BlobError, ReadError, Store};
use serde_json::json;

pub(crate) fn run(command: &Storage, context: &Context<'_>) -> Result<Code, Failure> {
    match command {
        Storage::Status => status(context),
        Storage::Check => check(context),
    }
}

fn status(context: &Context<'_>) -> Result<Code, Failure> {
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for (name, is_local) in [("workspace", false), ("local", true)] {
        let store = context.session.store(is_local);
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
        table(&rows)
            .iter()
            .try_for_each(|line| context.output.line(line))?;
    }
    Ok(Code::Done)
}

/// How old what an interrupted jp left must be: no writer takes as long.
const LEFTOVER_AGE: std::time::Duration = std::time::Duration::from_secs(3600);

/// What `storage check` found wrong.
struct Problem {
    conversation: Option<String>,
    blob: Option<Checksum>,
    what: String,
}

fn check(context: &Context<'_>) -> Result<Code, Failure> {
    let mut problems = Vec::new();
    let (mut conversations, mut blobs) = (0, 0);
    for is_local in [false, true] {
        let store = context.session.store(is_local);
        if !context.global.no_persist {
            remove_leftovers(&store, context);
        }
        let needed = check_conversations(&store, &mut conversations, &mut problems)?;
        check_blobs(&store, &needed, &mut blobs, &mut problems);
    }
    if context.output.is_json() {
        let problem = |problem: &Problem| json!({"conversation": problem.conversation, "blob": problem.blob, "problem": problem.what});
        let problems: Vec<_> = problems.iter().map(problem).collect();
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
                .status(&format!("Checked {checked}: all is well.")),
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

/// Removes what interrupted writers left, and says so.
fn remove_leftovers(store: &Store, context: &Context<'_>) {
    let what = |count| size::count(count, "temporary file");
    match store.remove_leftovers(LEFTOVER_AGE) {
        Ok(leftovers) => {
            if leftovers.removed > 0 {
                context.output.status(&format!(
                    "Removed {} that an interrupted jp left.",
                    what(leftovers.removed)
                ));
            }
            if leftovers.kept > 0 {
                let why = "of a jp at work, or of one that was interrupted less than an hour ago";
                context
                    .output
                    .status(&format!("Left {} {why}.", what(leftovers.kept)));
            }
        }
        Err(error) => {
            let why = chain(&error);
            context.output.warn(&format!(
                "what interrupted writers left was not removed: failed to {why}"
            ));
        }
    }
}

type Needed = BTreeMap<Checksum, (BlobRef, BTreeSet<String>)>;

/// Reads every conversation; returns which blobs they need.
fn check_conversations(
    store: &Store,
    checked: &mut usize,
    problems: &mut Vec<Problem>,
) -> Result<Needed, Failure> {
    let mut needed = Needed::new();
    let mut all = [store.list()?, store.list_archived()?].concat();
    all.sort_by_key(|located| located.id);
    for pair in all.windows(2).filter(|pair| pair[0].id == pair[1].id) {
        let what = format!("conversation {}: two directories have this id", pair[0].id);
        problems.push(Problem {
            conversation: Some(pair[0].id.to_string()),
            blob: None,
            what,
        });
    }
    for located in all {
        let id = located.id.to_string();
        let report = |what| Problem {
            conversation: Some(id.clone()),
            blob: None,
            what,
        };
        let unread =
            |error: &ReadError| report(format!("conversation {id}: failed to {}", chain(error)));
        let warnings = store
            .read(&located)
            .map(|conversation| conversation.warnings);
        let blobs = warnings.as_ref().is_ok().then(|| store.blobs_of(&located));
        // One that `jp conversation rm` removes meanwhile is no problem.
        let is_removed = matches!(warnings, Err(ReadError::Removed { .. }))
            || matches!(blobs, Some(Err(ReadError::Removed { .. })));
        if is_removed {
            continue;
        }
        *checked += 1;
        match warnings {
            Ok(warnings) => problems.extend(warnings.into_iter().map(report)),
            Err(error) => problems.push(unread(&error)),
        }
        match blobs {
            Some(Ok(blobs)) => add_needed(&mut needed, blobs, &id),
            Some(Err(error)) => problems.push(unread(&error)),
            None => {}
        }
    }
    Ok(needed)
}

fn add_needed(needed: &mut Needed, blobs: Vec<BlobRef>, conversation: &str) {
    for blob in blobs {
        let (_, conversations) = needed
            .entry(blob.checksum)
            .or_insert_with(|| (blob, BTreeSet::new()));
        conversations.insert(conversation.to_owned());
    }
}

/// Verifies what conversations need, and what else is there.
fn check_blobs(store: &Store, needed: &Needed, checked: &mut usize, problems: &mut Vec<Problem>) {
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
            let conversation = conversations.first().map(ToString::to_string);
            problems.push(Problem {
                conversation,
                blob: Some(blob.checksum),
                what,
            });
        }
    }
    let unlisted = |error: &BlobError| {
        let what = format!("failed to {}", chain(error));
        Problem {
            conversation: None,
            blob: None,
            what,
        }
    };
    // If the store's directory is a link, that is one problem more, and the other store is still checked.
    let files = match store.blobs().iter() {
        Ok(files) => files,
        Err(error) => return problems.push(unlisted(&error)),
    };
    for file in files {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                problems.push(unlisted(&error));
                continue;
            }
        };
        if needed.contains_key(&file.checksum) {
            continue;
        }
        let verified = store.blobs().verify(&file.checksum, UNKNOWN_SIZE_CAP);
        // It was removed since it was listed.
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
