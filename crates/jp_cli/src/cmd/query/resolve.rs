//! From what was declared to snapshots.

use jp_attachment::{
    AttachError, ContentStore, Declared, FileHandler, FileStamp, Handler as _, Known, Place, Resolved,
    Source, Unavailable, parse_input, parse_stored,
};
use jp_conversation::{Declaration, Delivered, resolution::Plan};
use jp_resource::{BlobRef, ResourceContent, Snapshot};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

use super::declarations::Configured;
use crate::{
    error::{Failure, chain},
    workspace::Context,
};

/// Snapshots with the declarations that gave them.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) delivered: Vec<Delivered>,
}

/// Reads what the person typed.
pub(crate) fn parse(
    context: &Context<'_>,
    inputs: &[String],
    place: &Place,
    unavailable: Unavailable,
) -> Result<Vec<Declared>, Failure> {
    let mut declared = Vec::new();
    for input in inputs {
        match parse_input(input, place) {
            Ok(read) => declared.push(read),
            Err(error) if unavailable == Unavailable::Skip && error.is_unavailable() => {
                skipped(context, &error)
            }
            Err(error) => return Err(explicit_failure(error)),
        }
    }
    Ok(declared)
}

/// Returns the stored forms of what was typed, as far as they are known before it is resolved.
pub(crate) fn stored_forms(explicit: &[Declared]) -> Vec<Declaration> {
    explicit.iter().filter_map(|declared| declared.declaration.as_deref()).map(Declaration::new).collect()
}

/// Resolves what a plan asks for, and what was typed; says what the person should know.
pub(crate) fn resolve(
    context: &Context<'_>,
    plan: Plan,
    configured: &Configured,
    explicit: Vec<Declared>,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Attachments, Failure> {
    let typed = stored_forms(&explicit);
    let earlier = plan.resolve.iter().filter(|declaration| !typed.contains(declaration));
    let earlier = parse_earlier(context, earlier, configured, resolving)?;
    let inputs: Vec<String> = earlier.iter().map(|declared| declared.input.clone()).collect();
    let excludes = plan.excludes.iter().filter(|declaration| !typed.contains(declaration));
    let excludes =
        excludes.filter_map(|declaration| parse_stored(declaration.as_str(), resolving.place).ok());
    let declared: Vec<_> = excludes.chain(earlier).chain(explicit).collect();
    let is_include = |declared: &&Declared| !matches!(declared.source, Source::Exclude(_));
    // Excludes of earlier queries alone ask for nothing; those of this one must have something to exclude from.
    let resolved = if declared.iter().any(|declared| is_include(&declared)) || !typed.is_empty() {
        FileHandler.resolve(&declared, resolving).map_err(|error| failure(error, &inputs))?
    } else {
        Resolved::default()
    };
    resolved.notices.iter().for_each(|notice| context.output.warn(&notice.to_string()));
    Ok(with_copies(context, resolved, plan))
}

/// Reads declarations that were made earlier, by a configuration or in the conversation.
fn parse_earlier<'d>(
    context: &Context<'_>,
    declarations: impl Iterator<Item = &'d Declaration>,
    configured: &Configured,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Vec<Declared>, Failure> {
    let mut earlier = Vec::new();
    for declaration in declarations {
        if let Some(declared) = configured.sources.get(declaration) {
            earlier.push(declared.clone());
            continue;
        }
        match parse_stored(declaration.as_str(), resolving.place) {
            Ok(declared) => earlier.push(declared),
            Err(error) if resolving.unavailable == Unavailable::Skip => skipped(context, &error),
            Err(error) => return Err(failure(error, &[declaration.to_string()])),
        }
    }
    Ok(earlier)
}

fn skipped(context: &Context<'_>, error: &AttachError) {
    context.output.warn(&format!("skipped: failed to {}", chain(error)));
}

/// Adds the files outside the workspace that are delivered again, and warns of those that are lost.
fn with_copies(context: &Context<'_>, resolved: Resolved, plan: Plan) -> Attachments {
    let delivered = |delivered: jp_attachment::Delivered| Delivered {
        declaration: Declaration::new(delivered.declaration),
        resources: delivered.resources,
    };
    let mut attachments = Attachments {
        snapshots: resolved.resources.into_iter().map(Snapshot::from).collect(),
        delivered: resolved.delivered.into_iter().map(delivered).collect(),
    };
    for (declaration, snapshot) in plan.copies {
        attachments.delivered.push(Delivered { declaration, resources: vec![attachments.snapshots.len()] });
        attachments.snapshots.push(snapshot);
    }
    for declaration in plan.lost {
        context
            .output
            .warn(&format!("{declaration} is attached, but this conversation holds no snapshot of it"));
        context
            .output
            .hint(&format!("attach the file again with --attach, or `jp attachment rm {declaration}`."));
    }
    attachments
}

/// Says why attaching failed; for what was declared earlier, how to get rid of it.
fn failure(error: AttachError, earlier: &[String]) -> Failure {
    let shown = error.to_string();
    let failure = explicit_failure(error);
    match earlier.iter().find(|input| shown.contains(&format!("{input:?}"))) {
        Some(input) => failure.with_hint(format!(
            "it was attached earlier or by the configuration; `jp attachment rm '{input}'` detaches it from this conversation."
        )),
        None => failure,
    }
}

fn explicit_failure(error: AttachError) -> Failure {
    let raise = match &error {
        AttachError::TooLarge { .. } => {
            Some("`-c conversation.attachment.max_bytes=50MB` allows more for this command.")
        }
        AttachError::TooManyFiles { .. } | AttachError::TooManyBytes { .. } => {
            Some("exclude some with `--attach '!PATTERN'`, or raise the limit with `-c`.")
        }
        _ => None,
    };
    let skip = error.is_unavailable().then_some("--skip-unavailable goes on without it.");
    let mut failure = Failure::from(error);
    failure.hints.extend(raise.into_iter().chain(skip).map(str::to_owned));
    failure
}

/// Keeps content in a batch of blobs, and remembers which files it is from.
pub(crate) struct Keeper<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) stamps: &'a Stamps,
}

impl ContentStore for Keeper<'_> {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        let known = self.stamps.find(&state(file))?;
        let is_kept = self.batch.reuse(&known.blob).unwrap_or(false);
        is_kept.then_some(())?;
        Some(Known { blob: known.blob, mime_type: known.mime_type? })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn std::error::Error + Send + Sync>> {
        let blob = self.batch.put_content(content)?;
        if let Some(file) = file {
            self.stamps.remember(state(file), KnownContent { blob, mime_type: Some(mime_type.to_owned()) });
        }
        Ok(blob)
    }
}

fn state(file: &FileStamp) -> FileState {
    FileState {
        device: file.device,
        inode: file.inode,
        size: file.size,
        modified: file.mtime_ns,
        changed: file.ctime_ns,
    }
}
