//! What is declared, and how it is read.

use std::{num::NonZeroUsize, path::PathBuf, time::SystemTime};

use jp_attachment::{ContentStore, ExternalKey, Limits, Place, Unavailable};
use jp_config::Resolved;
use jp_conversation::Declaration;
use jp_storage::Conversation;

use crate::{error::Failure, workspace::Context};

/// Returns the declarations of configuration files, for a conversation or a new one.
pub(crate) fn configured(
    context: &Context<'_>,
    conversation: Option<&Conversation>,
) -> Result<Vec<Declaration>, Failure> {
    of_config(&context.config(conversation, &[])?)
}

/// Returns the declarations that a configuration makes.
pub(super) fn of_config(config: &Resolved) -> Result<Vec<Declaration>, Failure> {
    let declaration = |declared| {
        let value = serde_json::to_value(declared)?;
        Declaration::from_json(&value).map_err(|reason| Failure::new(format!("conversation.attachments: {reason}")))
    };
    config.config.conversation.attachments.iter().map(declaration).collect()
}

/// Returns where the person is, as far as paths depend on it.
pub(crate) fn place(context: &Context<'_>, config: &Resolved) -> Result<Place, Failure> {
    let root = jp_attachment::canonical_path(context.workspace.root())?;
    let key = config.config.conversation.attachment.external_key.as_deref();
    Ok(Place {
        external_key: key.map(|key| external_key(context, key)).transpose()?,
        root,
        current_dir: context.environment.current_dir.clone(),
        home: context.environment.home.clone(),
    })
}

/// Returns what resolving depends on.
pub(crate) fn resolving<'a>(
    config: &Resolved,
    place: &'a Place,
    store: &'a dyn ContentStore,
    skips_unavailable: bool,
) -> jp_attachment::Context<'a> {
    let settings = &config.config.conversation.attachment;
    let limits = Limits {
        max_bytes: settings.max_bytes.bytes(),
        max_total_bytes: settings.max_total_bytes.bytes(),
        max_files: usize::try_from(settings.max_files).unwrap_or(usize::MAX),
    };
    let unavailable = if skips_unavailable { Unavailable::Skip } else { Unavailable::Fail };
    let context = jp_attachment::Context::new(place, store, SystemTime::now());
    let workers = context.workers.max(NonZeroUsize::MIN.saturating_add(1));
    jp_attachment::Context { limits, unavailable, workers, ..context }
}

/// Reads the secret that makes `external:` URIs unguessable: from the environment variable of that
/// name, or a file outside the workspace.
fn external_key(context: &Context<'_>, name: &str) -> Result<ExternalKey, Failure> {
    let key = "conversation.attachment.external_key";
    if let Ok(secret) = std::env::var(name) {
        return Ok(ExternalKey::new(secret.trim()));
    }
    let home = context.environment.home.as_deref();
    let path = match name.strip_prefix("~/").zip(home) {
        Some((below, home)) => home.join(below),
        None => PathBuf::from(name),
    };
    let path = context.workspace.root().join(path);
    let canonical = path.canonicalize().map_err(|error| {
        Failure::new(format!("failed to read {key}: `{name}` is neither an environment variable that is set nor a file: {error}"))
    })?;
    if canonical.starts_with(context.workspace.root()) {
        return Err(Failure::new(format!("{key} names a file inside the workspace, where everyone who has it can read it"))
            .with_hint("keep the key elsewhere, for example in ~/.config/jp/."));
    }
    let secret = std::fs::read_to_string(&canonical)?;
    match secret.trim() {
        "" => Err(Failure::new(format!("the file that {key} names is empty"))),
        secret => Ok(ExternalKey::new(secret)),
    }
}
