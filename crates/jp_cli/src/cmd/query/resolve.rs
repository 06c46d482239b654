//! From what was declared to snapshots.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::mpsc,
    time::Duration,
};

use jp_attachment::{
    AttachError, CommandError, ContentStore, Counts, Declared, FileStamp, HttpError, Known, Notice, Place,
    Progress, Reach, Resolved, Source, Unavailable, parse_input, parse_stored,
};
use jp_conversation::{Declaration, Delivered, resolution::Plan};
use jp_resource::{BlobRef, ResourceContent, Snapshot};
use jp_storage::{Batch, FileState, KnownContent, Stamps};

use super::declarations::Configured;
use crate::{
    error::{Code, Failure, chain},
    output::Output,
    size,
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
    let wanted: Vec<Declared> = pending.into_iter().chain(explicit).collect();
    // Excludes of earlier queries alone ask for nothing; those of this one must have something to exclude from.
    let has_files = wanted.iter().any(|one| matches!(one.source, Source::Path(_) | Source::Glob(_)));
    let excludes = earlier.plan.excludes.iter().filter(|declaration| !typed.contains(declaration));
    let excludes = excludes.filter(|_| has_files);
    let excludes = excludes.map(|declaration| parse_stored(declaration.as_str(), resolving.place));
    let excludes = excludes.collect::<Result<Vec<_>, _>>().map_err(explicit_failure)?;
    let declared: Vec<_> = excludes.into_iter().chain(wanted).collect();
    let resolved = if declared.is_empty() {
        Resolved::default()
    } else {
        watched(context, &declared, resolving).map_err(|error| {
            let shown = error.to_string();
            let failed = inputs.into_iter().filter(|input| shown.contains(&format!("{input:?}")));
            let failed: Vec<String> = failed.collect();
            earlier.advise(explicit_failure(error), &failed)
        })?
    };
    for notice in &resolved.notices {
        match notice {
            Notice::Skipped(error) => skipped(context, error),
            notice => context.output.warn(&notice.to_string()),
        }
    }
    Ok(with_copies(context, resolved, earlier.plan))
}

/// How long resolving may take before it is shown how far it is, and how often that is said anew.
const PATIENCE: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);

/// Resolves; what takes more than half a second is shown while it goes on, and Ctrl-C ends it.
fn watched(
    context: &Context<'_>,
    declared: &[Declared],
    resolving: &jp_attachment::Context<'_>,
) -> Result<Resolved, AttachError> {
    let progress = Progress::default();
    let cancelled = Some(context.interrupt().flag());
    let bear_database = context.environment.bear_database.as_deref();
    let watched =
        jp_attachment::Context { progress: Some(&progress), cancelled, bear_database, ..*resolving };
    let resolve = || jp_attachment::resolve(declared, &watched);
    if !context.output.shows_progress() {
        return resolve();
    }
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let output = context.output;
        let progress = &progress;
        scope.spawn(move || show(output, progress, &is_done));
        let resolved = resolve();
        drop(done);
        resolved
    })
}

/// Shows how far resolving is until the other end of `is_done` is dropped.
fn show(output: &Output, progress: &Progress, is_done: &mpsc::Receiver<()>) {
    let goes_on = |wait| is_done.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout);
    if !goes_on(PATIENCE) {
        return;
    }
    loop {
        output.progress(&progress_line(progress.counts()));
        if !goes_on(REDRAW) {
            break;
        }
    }
    output.progress("");
}

fn progress_line(counts: Counts) -> String {
    const WIDTH: u64 = 20;
    let Counts { items_done, items, bytes_done, bytes } = counts;
    let part = |done: u64, all: u64| (done.min(all) * WIDTH).checked_div(all).unwrap_or(WIDTH);
    let done = part(bytes_done, bytes).min(part(items_done as u64, items as u64)) as usize;
    let bar = format!("{}{}", "█".repeat(done), "░".repeat(WIDTH as usize - done));
    let of_items = format!(
        "{} of {}",
        size::thousands(items_done as u64),
        size::count(items.max(items_done), "resource")
    );
    let of_bytes = match (bytes_done, bytes) {
        (0, 0) => String::new(),
        (done, all) if done > all => format!(", {}", size::bytes(done)),
        (done, all) => format!(", {} of {}", size::bytes(done), size::bytes(all)),
    };
    format!("Attaching {bar} {of_items}{of_bytes}")
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
        let declared = match earlier.configured.sources.get(declaration) {
            Some(declared) => Ok(declared.clone()),
            None => parse_stored(declaration.as_str(), resolving.place),
        };
        let is_configured = earlier.configured.sources.contains_key(declaration);
        let agreed = match declared {
            Ok(declared) if !is_configured && declared.source.reach(resolving.place) == Reach::Machine => {
                refused(context, declaration.as_str());
                continue;
            }
            Ok(declared) => agreed(context, declared, resolving.place),
            Err(error) => Err(explicit_failure(error)),
        };
        match agreed {
            Ok(declared) => pending.extend(declared),
            Err(failure) if resolving.unavailable == Unavailable::Skip => {
                context.output.warn(&format!("skipped: {}", failure.message));
            }
            Err(failure) => {
                failed.push(declaration.to_string());
                first.get_or_insert(failure);
            }
        }
    }
    let Some(mut failure) = first else { return Ok(pending) };
    if failed.len() > 1 {
        failure.message.push_str(&format!(" (and {} more that can't be attached)", failed.len() - 1));
    }
    Err(earlier.advise(failure, &failed))
}

/// Returns a declaration that came with the workspace or its history, if it may be resolved.
///
/// A program is run only if the person made the declaration themself, agrees now, or said `--yes`.
fn agreed(context: &Context<'_>, declared: Declared, place: &Place) -> Result<Option<Declared>, Failure> {
    let text = declared.declaration.as_deref().unwrap_or(&declared.input);
    let matters = matters_to_trust(&declared, place);
    let is_trusted = declared.is_trusted || (matters && context.workspace.trust().contains(text));
    let declared = Declared { is_trusted, ..declared };
    let Source::Command(line) = &declared.source else { return Ok(Some(declared)) };
    if is_trusted {
        return Ok(Some(declared));
    }
    if context.global.yes {
        return Ok(Some(Declared { is_trusted: true, ..declared }));
    }
    let line = shown(&line.name());
    let question = format!("The workspace or its history attaches the output of `{line}`. Run it?");
    if !context.output.confirm(&question).ok_or_else(|| unasked(&line))? {
        context.output.warn(&format!("the output of `{line}` is left out"));
        context.output.hint("`jp attachment rm` detaches it from the conversation.");
        return Ok(None);
    }
    let declared = Declared { is_trusted: true, ..declared };
    remember(context, std::slice::from_ref(&declared), place);
    Ok(Some(declared))
}

/// Returns a command line as a question may show it: on one line, with nothing in it that is not seen.
fn shown(line: &str) -> String {
    const SHOWN: usize = 300;
    let visible = |character: char| match character {
        ' ' => " ".to_owned(),
        character if character.is_ascii_graphic() || character.is_alphanumeric() => character.to_string(),
        character => character.escape_unicode().to_string(),
    };
    let text: String = line.chars().take(SHOWN).map(visible).collect();
    match line.chars().count() {
        count if count > SHOWN => format!("{text}… ({} more characters)", count - SHOWN),
        _ => text,
    }
}

fn unasked(line: &str) -> Failure {
    let reason = "the workspace or its history asks for it, and there is no terminal to ask you on";
    Failure::new(format!("failed to attach the output of `{line}`: {reason}")).with_hint("`--yes` runs it.")
}

/// Returns whether it makes a difference who made a declaration.
fn matters_to_trust(declared: &Declared, place: &Place) -> bool {
    matches!(declared.source.reach(place), Reach::Network | Reach::Program)
}

/// Remembers declarations that are the person's own, where that makes a difference another time.
pub(crate) fn remember(context: &Context<'_>, declared: &[Declared], place: &Place) {
    let matter = declared.iter().filter(|one| matters_to_trust(one, place));
    let declarations = matter.filter_map(|one| one.declaration.as_deref());
    if let Err(error) = context.workspace.trust().add(declarations) {
        context.output.detail(&format!("what was agreed to was not remembered: {error}"));
    }
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
    let resolved: HashSet<Declaration> =
        attachments.delivered.iter().map(|delivered| delivered.declaration.clone()).collect();
    for (declaration, snapshots) in plan.copies {
        // It was found after all: what was kept of it is older.
        if resolved.contains(&declaration) {
            continue;
        }
        let first = attachments.snapshots.len();
        let resources = (first..first + snapshots.len()).collect();
        attachments.delivered.push(Delivered { declaration, resources });
        attachments.snapshots.extend(snapshots);
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

/// Writes a size that holds so many bytes as the configuration does.
fn megabytes(bytes: u64) -> String {
    format!("{}MB", bytes / 1_000_000 + 1)
}

fn explicit_failure(error: AttachError) -> Failure {
    let raise = |key: &str, value: &str| {
        format!("`-c conversation.attachment.{key}={value}` allows more for this command.")
    };
    let fewer = || "exclude some with `--attach '!PATTERN'`.".to_owned();
    let advice = match &error {
        AttachError::Interrupted => return Failure::interrupted(),
        AttachError::TooLarge { input, path, size, .. } => {
            let exclude = (!path.ends_with(input.trim_start_matches("./"))).then(fewer);
            exclude.into_iter().chain([raise("max_bytes", &megabytes(*size))]).collect()
        }
        AttachError::TooLong { limit, .. }
        | AttachError::Command { source: CommandError::TooLong { limit }, .. } => {
            vec![raise("max_bytes", &megabytes(limit * 5))]
        }
        AttachError::TooManyFiles { limit, .. } => {
            vec![fewer(), raise("max_files", &(limit * 5).to_string())]
        }
        AttachError::TooManyBytes { size, .. } => {
            vec![fewer(), raise("max_total_bytes", &megabytes(*size))]
        }
        AttachError::Http { source, .. } => match &**source {
            HttpError::Timeout { .. } => vec![raise("timeout_secs", "600")],
            HttpError::Status { status, .. } if status.starts_with("401") => {
                let advice = "a user and password in the URL are used for one message and not kept.";
                vec![advice.to_owned()]
            }
            _ => Vec::new(),
        },
        AttachError::Secret { .. } => {
            vec!["`-c conversation.attachment.secrets=warn` attaches it all the same.".to_owned()]
        }
        AttachError::Command { source: CommandError::Timeout { .. }, .. } => {
            vec![raise("timeout_secs", "600")]
        }
        _ => Vec::new(),
    };
    let skip = error.is_unavailable().then(|| "--skip-unavailable goes on without it.".to_owned());
    let code = if matches!(error, AttachError::Secret { .. }) { Code::Refused } else { Code::Failed };
    let mut failure = Failure { code, ..Failure::from(error) };
    failure.hints.extend(advice.into_iter().chain(skip));
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
