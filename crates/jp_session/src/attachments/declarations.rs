//! What is declared, and how it is read.

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

const ATTACHMENTS: &str = "conversation.attachments";

/// What configuration files declare, and where it is on this machine.
#[derive(Debug, Default)]
pub struct Configured {
    /// The stored forms, in order.
    pub declarations: Vec<Declaration>,
    /// Those that can be read, by their stored form.
    pub sources: HashMap<Declaration, Declared>,
    /// Files outside the workspace that are declared by what came with it.
    pub refused: Vec<String>,
    /// Those whose changes the model is told of.
    pub(crate) notify: HashSet<Declaration>,
}

impl Configured {
    /// Reads a declaration that was made earlier: as the configuration makes it, if it does.
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

/// Reads the declarations that a configuration makes.
///
/// One that can't be read keeps the text it has; that it can't is said when it is resolved. A workspace
/// and its history can come from anywhere, so they may not reach for files outside: only the person may.
pub fn configured(config: &Resolved, place: &Place) -> Result<Configured, SessionError> {
    let mut configured = Configured::default();
    for (index, declared) in config.config.conversation.attachments.iter().enumerate() {
        let value = serde_json::to_value(declared)?;
        let notifies = declared.refresh() == Refresh::Notify;
        let text = Declaration::from_json(&value)
            .map_err(|reason| SessionError::new(format!("conversation.attachments: {reason}")))?;
        let declared = parse_configured(text.as_str(), place).ok();
        let stored = declared
            .as_ref()
            .and_then(|declared| declared.declaration.as_deref())
            .map(Declaration::new);
        let declaration = stored.unwrap_or_else(|| text.clone());
        if notifies && (text.names_snapshot() || declaration.names_snapshot()) {
            return Err(unnoticed(&text, config, index));
        }
        let reach = declared
            .as_ref()
            .map(|declared| declared.source.reach(place));
        let origin = origin(config, index);
        if reach == Some(Reach::Machine) && !may_reach_outside(origin) {
            configured.refused.push(text.to_string());
            continue;
        }
        let trusted = |declared: Declared| {
            let runs_script =
                origin.predates_workspace() && !find_scripts(&declared, place).is_empty();
            Declared {
                is_trusted: origin.is_own(runs_script),
                ..declared
            }
        };
        configured
            .sources
            .extend(declared.map(|declared| (declaration.clone(), trusted(declared))));
        configured
            .notify
            .extend(notifies.then(|| declaration.clone()));
        configured.declarations.push(declaration);
    }
    Ok(configured)
}

/// Warns of what a conversation's history attaches or detaches in a form that can't be read.
pub fn warn_of_unreadable(session: &Session, stream: &Stream) {
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

/// Says that nobody can see whether what a declaration names has changed.
fn unnoticed(declaration: &Declaration, config: &Resolved, index: usize) -> SessionError {
    let layer = layer_of(config, index);
    SessionError::new(format!(
        "failed to read configuration: {ATTACHMENTS} in {layer}: {declaration} has `refresh = \"notify\"`, but jp can't compare its snapshot with the source"
    ))
    .with_hint(
        "remove `refresh` or set it to \"manual\"; attach it again to send a newer version.",
    )
}

/// Returns where the person is, as far as paths depend on it.
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

/// Returns what resolving depends on.
pub fn resolving<'a>(
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
    let mcp = reading::configured(setup)?.map(|servers| &**servers as &dyn ReadMcp);
    Ok(jp_attachment::Context {
        unavailable,
        mcp,
        ..Bounds::of(config).resolving(place, store)
    })
}

/// What the configuration bounds resolving by.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How much may be attached.
    pub limits: Limits,
    /// How long one page or command may take.
    pub(crate) timeout: Duration,
    /// What happens to secrets.
    pub secrets: Secrets,
}

impl Bounds {
    /// Reads the bounds from the configuration.
    pub fn of(config: &Resolved) -> Self {
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

    /// Returns what resolving depends on, as of now; it fails where something is unavailable.
    pub(crate) fn resolving<'a>(
        self,
        place: &'a Place,
        store: &'a dyn ContentStore,
    ) -> jp_attachment::Context<'a> {
        let Self {
            limits,
            timeout,
            secrets,
        } = self;
        let session = jp_attachment::Context::new(place, store, SystemTime::now());
        let workers = session.workers.max(NonZeroUsize::MIN.saturating_add(1));
        jp_attachment::Context {
            limits,
            workers,
            timeout,
            secrets,
            ..session
        }
    }
}

/// Reads the secret that makes `external:` URIs unguessable: from the environment variable of that
/// name, or a file outside the workspace.
fn external_key(session: &Session, name: &str) -> Result<ExternalKey, SessionError> {
    let key = "conversation.attachment.external_key";
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
