//! From what was declared to snapshots.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jp_attachment::{
    AttachError, ContentStore, Declared, FileStamp, Known, Notice, Place, Reach, Resolved, Source,
    Unavailable, parse_input, parse_stored,
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

/// What there is beside what was typed.
pub(crate) struct Earlier<'a> {
    pub(crate) plan: Plan,
    pub(crate) configured: &'a Configured,
    /// Whether there is a conversation yet that something could be detached from.
    pub(crate) is_new: bool,
}

/// Resolves what a plan asks for, and what was typed; says what the person should know.
pub(crate) fn resolve(
    context: &Context<'_>,
    earlier: Earlier<'_>,
    explicit: Vec<Declared>,
    resolving: &jp_attachment::Context<'_>,
) -> Result<Attachments, Failure> {
    let typed = stored_forms(&explicit);
    let pending = parse_earlier(context, &earlier, &typed, resolving)?;
    let inputs: Vec<String> = pending.iter().map(|declared| declared.input.clone()).collect();
    let excludes = earlier.plan.excludes.iter().filter(|declaration| !typed.contains(declaration));
    let excludes =
        excludes.filter_map(|declaration| parse_stored(declaration.as_str(), resolving.place).ok());
    let declared: Vec<_> = excludes.chain(pending).chain(explicit).collect();
    let is_include = |declared: &Declared| !matches!(declared.source, Source::Exclude(_));
    // Excludes of earlier queries alone ask for nothing; those of this one must have something to exclude from.
    let resolved = if declared.iter().any(is_include) || !typed.is_empty() {
        jp_attachment::resolve(&declared, resolving).map_err(|error| {
            let shown = error.to_string();
            let failed = inputs.into_iter().filter(|input| shown.contains(&format!("{input:?}")));
            let failed: Vec<String> = failed.collect();
            earlier.advise(explicit_failure(error), &failed)
        })?
    } else {
        Resolved::default()
    };
    for notice in &resolved.notices {
        match notice {
            Notice::Skipped(error) => skipped(context, error),
            notice => context.output.warn(&notice.to_string()),
        }
    }
    Ok(with_copies(context, resolved, earlier.plan))
}

/// Reads declarations that were made earlier, by a configuration or in the conversation.
fn parse_earlier(
    context: &Context<'_>,
    earlier: &Earlier<'_>,
    typed: &[Declaration],
    resolving: &jp_attachment::Context<'_>,
) -> Result<Vec<Declared>, Failure> {
    let mut pending = Vec::new();
    let mut failed = Vec::new();
    let mut first = None;
    for declaration in earlier.plan.resolve.iter().filter(|declaration| !typed.contains(declaration)) {
        if let Some(declared) = earlier.configured.sources.get(declaration) {
            pending.push(declared.clone());
            continue;
        }
        match parse_stored(declaration.as_str(), resolving.place) {
            Ok(declared) if declared.source.reach(resolving.place) == Reach::Machine => {
                refused(context, declaration.as_str());
            }
            Ok(declared) => pending.push(declared),
            Err(error) if resolving.unavailable == Unavailable::Skip => skipped(context, &error),
            Err(error) => {
                failed.push(declaration.to_string());
                first.get_or_insert(error);
            }
        }
    }
    let Some(error) = first else { return Ok(pending) };
    let mut failure = explicit_failure(error);
    if failed.len() > 1 {
        failure.message.push_str(&format!(" (and {} more that can't be attached)", failed.len() - 1));
    }
    Err(earlier.advise(failure, &failed))
}

/// Says that a file outside the workspace is not attached because of what came with the workspace.
pub(crate) fn refused(context: &Context<'_>, declaration: &str) {
    context.output.warn(&format!(
        "{declaration} is outside the workspace and is left out: a workspace and its history can come from anywhere"
    ));
    context.output.hint("attach it yourself with --attach, or in ~/.config/jp/config.toml.");
}

fn skipped(context: &Context<'_>, error: &AttachError) {
    context.output.warn(&format!("skipped: failed to {}", chain(error)));
}

impl Earlier<'_> {
    /// Says how to get rid of declarations that were made earlier and can't be resolved.
    fn advise(&self, failure: Failure, failed: &[String]) -> Failure {
        if failed.is_empty() {
            return failure;
        }
        let quote = |declaration: &String| format!("'{}'", declaration.replace('\'', r"'\''"));
        let quoted = failed.iter().map(quote).collect::<Vec<_>>().join(" ");
        let advice = if self.is_new {
            format!(
                "conversation.attachments of the configuration names {quoted}; `jp config show` says where."
            )
        } else {
            format!(
                "it was attached earlier or by the configuration; `jp attachment rm {quoted}` detaches it from this conversation."
            )
        };
        let mut failure = failure.with_hint(advice);
        if !failure.hints.iter().any(|hint| hint.contains("--skip-unavailable")) {
            failure.hints.push("--skip-unavailable goes on without it.".to_owned());
        }
        failure
    }
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
        let known = self.stamps.find(&state(file)?)?;
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
        if let Some(state) = file.and_then(state) {
            self.stamps.remember(state, KnownContent { blob, mime_type: Some(mime_type.to_owned()) });
        }
        Ok(blob)
    }
}

/// Returns what identifies a state of a file; nothing does where the system has no inodes to tell of.
fn state(file: &FileStamp) -> Option<FileState> {
    let mut name = DefaultHasher::new();
    file.path.file_name().hash(&mut name);
    (file.inode != 0).then(|| FileState {
        name: name.finish(),
        device: file.device,
        inode: file.inode,
        size: file.size,
        modified: file.mtime_ns,
        changed: file.ctime_ns,
    })
}
