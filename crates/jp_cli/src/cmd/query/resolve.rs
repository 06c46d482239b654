//! From what was declared to snapshots.

use jp_attachment::{
    AttachError, ContentStore, Declared, FileHandler, FileStamp, Handler as _, Known, Place, Resolved, Source,
    parse_input, parse_stored,
};
use jp_conversation::{Declaration, Delivered, resolution::Plan};
use jp_resource::{BlobRef, ResourceContent, Snapshot};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

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
pub(crate) fn parse(inputs: &[String], place: &Place) -> Result<Vec<Declared>, Failure> {
    inputs.iter().map(|input| parse_input(input, place).map_err(explicit_failure)).collect()
}

/// Returns the stored forms of what was typed, as far as they are known before it is resolved.
pub(crate) fn stored_forms(explicit: &[Declared]) -> Vec<Declaration> {
    explicit.iter().filter_map(|declared| declared.declaration.as_deref()).map(Declaration::new).collect()
}

/// Resolves what a plan asks for, and what was typed; says what the person should know.
pub(crate) fn resolve(
    context: &Context<'_>,
    plan: Plan,
    explicit: Vec<Declared>,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Attachments, Failure> {
    let typed = stored_forms(&explicit);
    let pending = plan.resolve.iter().filter(|declaration| !typed.contains(declaration));
    let pending = parse_pending(context, pending, resolving)?;
    let earlier: Vec<String> = pending.iter().map(|declared| declared.input.clone()).collect();
    let excludes = plan.excludes.iter().filter(|declaration| !typed.contains(declaration));
    let excludes = excludes.filter_map(|declaration| parse_stored(declaration.as_str(), resolving.place).ok());

    let declared: Vec<_> = excludes.chain(pending).chain(explicit).collect();
    let includes = declared.iter().filter(|declared| !matches!(declared.source, Source::Exclude(_))).count();
    let resolved = match (includes, declared.len()) {
        (0, 0) => Resolved::default(),
        (0, _) if typed.is_empty() => Resolved::default(),
        _ => FileHandler.resolve(&declared, resolving).map_err(|error| failure(error, &earlier))?,
    };
    resolved.notices.iter().for_each(|notice| context.output.warn(&notice.to_string()));
    Ok(with_copies(context, resolved, plan))
}

/// Reads declarations that were made earlier.
fn parse_pending<'d>(
    context: &Context<'_>,
    declarations: impl Iterator<Item = &'d Declaration>,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Vec<Declared>, Failure> {
    let mut pending = Vec::new();
    for declaration in declarations {
        match parse_stored(declaration.as_str(), resolving.place) {
            Ok(declared) => pending.push(declared),
            Err(error) if resolving.unavailable == jp_attachment::Unavailable::Skip => {
                context.output.warn(&format!("skipped: failed to {}", chain(&error)));
            }
            Err(error) => return Err(failure(error, &[declaration.to_string()])),
        }
    }
    Ok(pending)
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
        context.output.warn(&format!("{declaration} is attached, but this conversation holds no snapshot of it"));
        context.output.hint(&format!("attach the file again with --attach, or `jp attachment rm {declaration}`."));
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
