//! Declarations of attachments in the configuration, and the context that resolving them needs.

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroUsize,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use crate::{
    attachments::approval::find_scripts,
    error::SessionError,
    notice::{Notice, UnreadableDeclaration},
    servers::reading,
    session::{Session, Setup},
    text::one_line,
    trust::{Decision, Effect, Occasion, Origin, Reached, decide_unapproved},
};
use jp_attachment::{
    AttachError, ContentStore, Declared, ExternalKey, Limits, Place, Reach, ReadMcp, Secrets,
    Unavailable, parse_configured, parse_stored,
};
use jp_config::{Layer, Refresh, Resolved};
use jp_conversation::{Declaration, Stream, resolution};

/// The configuration key that declares attachments.
const ATTACHMENTS: &str = "conversation.attachments";

/// The declarations of the configuration, and their sources on this machine.
#[derive(Debug, Default)]
pub struct ConfiguredDeclarations {
    /// The stored forms, in order.
    pub declarations: Vec<Declaration>,
    /// The sources of the declarations that jp can read, by stored form.
    pub sources: HashMap<Declaration, Declared>,
    /// Files outside the workspace that the workspace or its history declares.
    pub refused: Vec<String>,
    /// The declarations with `refresh = "notify"`.
    pub(crate) notify: HashSet<Declaration>,
}

impl ConfiguredDeclarations {
    /// Reads a stored declaration; the configuration's form counts if it has the same one.
    pub(crate) fn read(
        &self,
        declaration: &Declaration,
        place: &Place,
    ) -> Result<Declared, AttachError> {
        match self.sources.get(declaration) {
            Some(declared) => Ok(declared.clone()),
            None => parse_stored(declaration.as_str(), place),
        }
    }
}

/// Reads the declarations of a configuration.
///
/// A declaration that jp can't read keeps its text. The error appears when jp resolves it. Only the user may declare
/// files outside the workspace, because a workspace and its history may come from a stranger.
pub fn read_configured(
    config: &Resolved,
    place: &Place,
) -> Result<ConfiguredDeclarations, SessionError> {
    let mut configured = ConfiguredDeclarations::default();
    for (index, setting) in config.config.conversation.attachments.iter().enumerate() {
        let text = Declaration::from_json(&serde_json::to_value(setting)?)
            .map_err(|reason| SessionError::new(format!("{ATTACHMENTS}: {reason}")))?;
        let declared = parse_configured(text.as_str(), place).ok();
        let stored = declared
            .as_ref()
            .and_then(|declared| declared.declaration.as_deref())
            .map(Declaration::new);
        let declaration = stored.unwrap_or_else(|| text.clone());
        // `stdin:` and `clip:` have no source that jp could compare with later.
        let notifies = setting.refresh() == Refresh::Notify;
        if notifies && (text.names_snapshot() || declaration.names_snapshot()) {
            return Err(notify_error(&text, config, index));
        }
        let origin = origin(config, index);
        if let Some(declared) = declared {
            if declared.source.reach(place) == Reach::Machine && !may_reach_outside(origin) {
                configured.refused.push(text.to_string());
                continue;
            }
            // For other origins a script makes no difference, and looking for scripts reads files.
            let runs_script =
                origin.predates_workspace() && !find_scripts(&declared, place).is_empty();
            let declared = Declared {
                is_trusted: origin.is_own(runs_script),
                ..declared
            };
            configured.sources.insert(declaration.clone(), declared);
        }
        if notifies {
            configured.notify.insert(declaration.clone());
        }
        configured.declarations.push(declaration);
    }
    Ok(configured)
}

/// Warns about declarations in a conversation's history that jp can't read.
pub fn warn_of_unreadable(session: &Session, stream: &Stream) {
    /// Characters of a declaration and of a reason, enough to recognise them on two rows of a terminal.
    const SHOWN: usize = 200;
    let unreadable = resolution::unreadable_declarations(stream);
    let declarations: Vec<_> = unreadable
        .iter()
        .map(|(written, reason)| UnreadableDeclaration {
            written: one_line(&written.to_string(), SHOWN),
            reason: one_line(reason, SHOWN),
        })
        .collect();
    if !declarations.is_empty() {
        session
            .person
            .tell(Notice::UnreadableDeclarations { declarations });
    }
}

/// Returns who makes a declaration. If the workspace or the history has a part in the list, the whole
/// list is theirs.
fn origin(config: &Resolved, index: usize) -> Origin {
    // A part of the list can replace or reorder the user's own declarations.
    match Origin::least_trusted(config.contributors(ATTACHMENTS)) {
        foreign @ (Origin::History | Origin::Workspace) => foreign,
        _ => Origin::from(layer_of(config, index)),
    }
}

fn may_reach_outside(origin: Origin) -> bool {
    let effect = Effect::Resolve {
        reached: Reached::Outside,
        occasion: Occasion::Attach,
    };
    decide_unapproved(origin, effect) == Decision::Allowed
}

/// Returns the layer that makes a declaration.
fn layer_of(config: &Resolved, index: usize) -> &Layer {
    let element = config.contributors(&format!("{ATTACHMENTS}.{index}")).pop();
    element.unwrap_or_else(|| config.origin(ATTACHMENTS))
}

/// Makes the error for `refresh = "notify"` on a snapshot, which has no source to compare with.
fn notify_error(declaration: &Declaration, config: &Resolved, index: usize) -> SessionError {
    let layer = layer_of(config, index);
    SessionError::new(format!(
        "failed to read configuration: {ATTACHMENTS} in {layer}: {declaration} has `refresh = \"notify\"`, but jp can't compare its snapshot with the source"
    ))
    .with_hint(
        "remove `refresh` or set it to \"manual\"; attach it again to send a newer version.",
    )
}

/// Returns the place that paths depend on: the workspace, the current directory and the home directory.
pub fn place(setup: Setup<'_>) -> Result<Place, SessionError> {
    let Setup { session, config } = setup;
    let root = session.canonical_root()?;
    let key = config
        .config
        .conversation
        .attachment
        .external_key
        .as_deref();
    Ok(Place {
        external_key: key.map(|key| external_key(session, key)).transpose()?,
        root,
        current_dir: session.surroundings.current_dir.clone(),
        home: session.surroundings.home.clone(),
    })
}

/// Returns the context for resolving attachments.
pub fn resolve_context<'a>(
    setup: Setup<'a>,
    place: &'a Place,
    store: &'a dyn ContentStore,
    skips_unavailable: bool,
) -> Result<jp_attachment::Context<'a>, SessionError> {
    let config = setup.config;
    let unavailable = if skips_unavailable {
        Unavailable::Skip
    } else {
        Unavailable::Fail
    };
    let mcp = reading::find_servers(setup)?.map(|servers| &**servers as &dyn ReadMcp);
    Ok(jp_attachment::Context {
        unavailable,
        mcp,
        ..Bounds::from_config(config).to_context(place, store)
    })
}

/// The limits that the configuration sets for resolving attachments.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Limits for sizes and counts.
    pub limits: Limits,
    /// Timeout of one page or command.
    pub(crate) timeout: Duration,
    /// Policy for text that seems to contain a secret.
    pub secrets: Secrets,
}

impl Bounds {
    /// Reads the limits from the configuration.
    pub fn from_config(config: &Resolved) -> Self {
        let settings = &config.config.conversation.attachment;
        let limits = Limits {
            max_bytes: settings.max_bytes.bytes(),
            max_total_bytes: settings.max_total_bytes.bytes(),
            max_files: usize::try_from(settings.max_files).unwrap_or(usize::MAX),
        };
        let secrets = match settings.secrets {
            jp_config::Secrets::Off => Secrets::Off,
            jp_config::Secrets::Warn => Secrets::Warn,
            jp_config::Secrets::Refuse => Secrets::Refuse,
        };
        Self {
            limits,
            timeout: Duration::from_secs(settings.timeout_secs),
            secrets,
        }
    }

    /// Returns a context with these limits, as of now. It fails at the first unavailable attachment.
    pub(crate) fn to_context<'a>(
        self,
        place: &'a Place,
        store: &'a dyn ContentStore,
    ) -> jp_attachment::Context<'a> {
        let context = jp_attachment::Context::new(place, store, SystemTime::now());
        jp_attachment::Context {
            limits: self.limits,
            // Two at least, so that a slow page or command doesn't hold up the files.
            workers: context.workers.max(NonZeroUsize::MIN.saturating_add(1)),
            timeout: self.timeout,
            secrets: self.secrets,
            ..context
        }
    }
}

/// Reads the secret that makes `external:` URIs unguessable: from the environment variable of that
/// name, or a file outside the workspace.
fn external_key(session: &Session, name: &str) -> Result<ExternalKey, SessionError> {
    let key = "conversation.attachment.external_key";
    // An empty variable counts as unset.
    if let Some(secret) = std::env::var(name)
        .ok()
        .filter(|secret| !secret.trim().is_empty())
    {
        return Ok(ExternalKey::new(secret.trim()));
    }
    let home = session.surroundings.home.as_deref();
    let path = match name.strip_prefix("~/").zip(home) {
        Some((below, home)) => home.join(below),
        None => PathBuf::from(name),
    };
    let path = session.workspace.root().join(path);
    let canonical = path.canonicalize().map_err(|error| {
        SessionError::new(format!("failed to read {key}: `{name}` is neither a set environment variable nor a file: {error}"))
    })?;
    // With the key, anyone could compute the URIs and guess the paths in them.
    if canonical.starts_with(session.workspace.root()) {
        return Err(SessionError::new(format!(
            "{key} names a file inside the workspace, where anyone with a copy of it can read the key"
        ))
        .with_hint("store the key outside the workspace, for example in ~/.config/jp/."));
    }
    let secret = std::fs::read_to_string(&canonical).map_err(|error| {
        SessionError::new(format!("failed to read the file that {key} names: {error}"))
    })?;
    match secret.trim() {
        "" => Err(SessionError::new(format!(
            "the file that {key} names is empty"
        ))),
        secret => Ok(ExternalKey::new(secret)),
    }
}
