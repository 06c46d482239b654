//! Finds the sources that changed since the conversation got them, for declarations with `refresh = "notify"`.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    slice,
    sync::Arc,
    time::Duration,
};

use crate::{
    attachments::{
        advice, approval, declarations::ConfiguredDeclarations, resolve::Attachments,
        store::ChecksumStore,
    },
    error::{SessionError, chain},
    notice::{Notice, ResourceChange},
    parallel::run_in_parallel,
    servers::{Servers, reading},
    session::{Session, Setup},
};
use jp_attachment::{
    AttachError, Context, Declared, HttpError, Limits, McpError, ReadMcp, Secrets, Source,
    Unavailable, canonical_path, mcp_ttl,
};
use jp_conversation::{
    Declaration, Notification, Stream,
    attachments::newest_by_declaration,
    held_resources::{HeldResource, Key, Marks, WrittenFile, held_resources},
    resolution::declarations_to_watch,
};
use jp_resource::{
    Checksum, Snapshot,
    uri::{PathStyle, file_path},
};
use jp_storage::Stamps;
use jp_tool::StoredBlock;
use jp_turn::{Builtin, FileState, marked_files};

/// Limit for the changes in one message; the next message has the others.
const MAX_CHANGES: usize = 50;
/// Limit for the changes that the user sees one by one. More than that are one line.
const MAX_LINES: usize = 3;
/// Longest wait for a page or an MCP server. The user waits for an answer and not for this check.
const MAX_PAGE_TIME: Duration = Duration::from_secs(10);
/// Number of pages, servers and programs that jp waits for at once.
const PARALLEL: usize = 8;

/// The resources that the model has, by server and URI.
type Held<'a> = HashMap<Key<'a>, HeldResource<'a>>;

/// Compares the resources that the model has with their sources, and returns the changes to report.
///
/// Resources that this message attaches again are left out. The check reads no file whose state is known, stores
/// nothing and asks nothing. If a source would take that, jp skips it with a warning.
pub(crate) fn find_notifications(
    setup: Setup<'_>,
    stream: &Stream,
    configured: &ConfiguredDeclarations,
    attached: &Attachments,
    resolving: &Context<'_>,
    stamps: &Stamps,
) -> Result<Vec<Notification>, SessionError> {
    let session = setup.session;
    let declared = declarations_to_watch(stream, &configured.declarations, &configured.notify);
    let mut watched = list_watched(stream, &declared, attached);
    let uris = watched.iter().map(|watched| watched.uri);
    let held = held_resources(stream, uris, &resolving.place.root, &StreamMarks);
    let now = session.now();
    watched.retain(|watched| {
        let key = watched.key();
        // The model never got what no message has taken yet. A server need not be asked for what it still calls current.
        held.get(&key)
            .is_some_and(|held| key.0.is_none() || !held.is_current(now))
    });
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let hurried = resolving.mcp.map(|servers| reading::HurriedReader {
        servers,
        limit: MAX_PAGE_TIME,
    });
    let check = SourceCheck {
        session,
        configured,
        servers: reading::find_servers(setup)?,
        context: &Context {
            store: &ChecksumStore { stamps },
            mcp: hurried.as_ref().map(|hurried| hurried as &dyn ReadMcp),
            limits: limits(resolving, &held),
            // Nothing is stored or sent, so secrets don't matter here.
            secrets: Secrets::Off,
            cancelled: Some(session.interrupt().flag()),
            bear_database: session.surroundings.bear_database.as_deref(),
            ..*resolving
        },
    };
    let changes = find_changes(session, check.run(watched)?, &held);
    tell_user(session, &changes);
    Ok(changes
        .into_iter()
        .take(MAX_CHANGES)
        .map(|change| change.notification)
        .collect())
}

/// Returns limits that admit every resource that the conversation has already.
fn limits(resolving: &Context<'_>, held: &Held<'_>) -> Limits {
    let largest = held.values().map(|held| held.size).max();
    Limits {
        max_bytes: resolving.limits.max_bytes.max(largest.unwrap_or_default()),
        max_total_bytes: u64::MAX,
        max_files: usize::MAX,
    }
}

/// The marks of `jp_attachment` and `jp_turn`.
struct StreamMarks;

impl Marks for StreamMarks {
    fn ttl(&self, snapshot: &Snapshot) -> Option<Duration> {
        mcp_ttl(snapshot)
    }

    fn own_tool_reads(&self, name: &str) -> Option<bool> {
        Builtin::from_name(name).map(|tool| tool.is_reader())
    }

    fn written_files(&self, block: &StoredBlock) -> Vec<WrittenFile> {
        let files = marked_files(block);
        files
            .map(|FileState { path, checksum }| WrittenFile { path, checksum })
            .collect()
    }
}

/// A resource whose changes jp reports to the model, and the declaration that delivered it.
#[derive(Debug, Clone, Copy)]
struct WatchedResource<'a> {
    declaration: &'a Declaration,
    uri: &'a str,
}

impl<'a> WatchedResource<'a> {
    fn key(&self) -> Key<'a> {
        (self.declaration.server(), self.uri)
    }

    /// Returns whether it is a file of this machine; a server may call anything `file:`.
    fn is_file(&self) -> bool {
        self.uri.starts_with("file:") && self.declaration.server().is_none()
    }
}

/// Returns the resources of declarations, except those that this message attaches again; each URI of a server once.
fn list_watched<'a>(
    stream: &'a Stream,
    declared: &'a [Declaration],
    attached: &'a Attachments,
) -> Vec<WatchedResource<'a>> {
    // Few conversations watch anything, and the events need not be read for that.
    if declared.is_empty() {
        return Vec::new();
    }
    let newest = newest_by_declaration(stream);
    // A server and a file may have the same URI for different things, so the server is part of the key.
    let mut seen: HashSet<Key<'_>> = HashSet::new();
    for delivered in &attached.delivered {
        let server = delivered.declaration.server();
        let snapshots = delivered
            .resources
            .iter()
            .filter_map(|index| attached.snapshots.get(*index));
        seen.extend(snapshots.map(|snapshot| (server, snapshot.uri.as_str())));
    }
    let mut watched = Vec::new();
    for declaration in declared {
        let snapshots = newest.get(declaration).into_iter().flatten();
        let resources = snapshots.map(|(_, snapshot)| WatchedResource {
            declaration,
            uri: &snapshot.uri,
        });
        watched.extend(resources.filter(|resource| seen.insert(resource.key())));
    }
    watched
}

/// The state of a source.
#[derive(Debug)]
enum SourceState {
    /// It has content with this checksum.
    Content(Checksum),
    /// It no longer exists.
    Gone,
    /// It can't be read, for this reason.
    Unknown(String),
}

impl SourceState {
    fn from_checksum(checksum: Option<&Checksum>) -> Self {
        checksum.map_or(Self::Gone, |checksum| Self::Content(*checksum))
    }

    /// Distinguishes sources that are gone from those that can't be read now. An interruption ends the command.
    fn from_error(error: AttachError) -> Result<Self, SessionError> {
        let is_gone = match &error {
            AttachError::Missing { .. }
            | AttachError::Mcp {
                source: McpError::NotFound(_),
                ..
            } => true,
            AttachError::Http { source, .. } => match &**source {
                HttpError::Status { status, .. } => {
                    status.starts_with("404") || status.starts_with("410")
                }
                _ => false,
            },
            _ => false,
        };
        match error {
            AttachError::Interrupted => Err(advice::failure(error)),
            // An error of the network or of a disk may be over soon, so it doesn't count as a removal.
            _ if is_gone => Ok(Self::Gone),
            error => Ok(Self::Unknown(format!("failed to {}", chain(&error)))),
        }
    }
}

/// Looks at sources without storing their content.
struct SourceCheck<'a> {
    session: &'a Session,
    configured: &'a ConfiguredDeclarations,
    servers: Option<&'a Arc<Servers>>,
    context: &'a Context<'a>,
}

impl SourceCheck<'_> {
    /// Returns the states of the sources that jp may look at.
    fn run<'w>(
        &self,
        watched: Vec<WatchedResource<'w>>,
    ) -> Result<Vec<(Key<'w>, SourceState)>, SessionError> {
        let (files, others): (Vec<_>, Vec<_>) =
            watched.into_iter().partition(WatchedResource::is_file);
        let mut states = self.check_files(&files)?;
        states.extend(self.check_others(&others)?);
        Ok(states)
    }

    /// Looks at files, each by its own path: the other files of their directories were never attached.
    fn check_files<'w>(
        &self,
        files: &[WatchedResource<'w>],
    ) -> Result<Vec<(Key<'w>, SourceState)>, SessionError> {
        let mut states = Vec::new();
        let mut readable = Vec::new();
        for file in files {
            let state = match locate(file.uri) {
                Ok(path) if path.is_dir() => SourceState::Gone,
                // A link may lead out of the workspace by now, and only the user may attach such files.
                Ok(path) if !path.starts_with(&self.context.place.root) => {
                    approval::warn_of_outside_file(self.session, file.uri);
                    continue;
                }
                Ok(path) => {
                    readable.push((file.key(), declare_file(file.uri, path)));
                    continue;
                }
                Err(error) if is_absence(&error) => SourceState::Gone,
                Err(error) => SourceState::Unknown(error.to_string()),
            };
            states.push((file.key(), state));
        }
        if readable.is_empty() {
            return Ok(states);
        }
        // All files in one call, because that reads them in parallel. A skipped file is resolved again for the reason.
        let declared: Vec<_> = readable.iter().map(|(_, file)| file.clone()).collect();
        let skipping = Context {
            unavailable: Unavailable::Skip,
            ..*self.context
        };
        let resolved = jp_attachment::resolve(&declared, &skipping).map_err(advice::failure)?;
        let checksums = resolved.delivered.iter().filter_map(|delivered| {
            let resource = resolved.resources.get(*delivered.resources.first()?)?;
            Some((delivered.declaration.as_str(), resource.content.checksum))
        });
        let checksums: HashMap<&str, Checksum> = checksums.collect();
        for (key, declared) in readable {
            // `declare_file` uses the URI as the declaration, so it is the key here.
            let state = match checksums.get(key.1) {
                Some(checksum) => SourceState::Content(*checksum),
                None => self.recheck_skipped(&declared)?,
            };
            states.push((key, state));
        }
        Ok(states)
    }

    /// Resolves a skipped file alone, because the error says why.
    fn recheck_skipped(&self, declared: &Declared) -> Result<SourceState, SessionError> {
        match self.resolve(declared, self.context.timeout) {
            Ok(checksums) => Ok(SourceState::from_checksum(checksums.values().next())),
            Err(error) => SourceState::from_error(error),
        }
    }

    /// Resolves everything but files: each declaration once, several at a time.
    fn check_others<'w>(
        &self,
        others: &[WatchedResource<'w>],
    ) -> Result<Vec<(Key<'w>, SourceState)>, SessionError> {
        let mut wanted: Vec<(Declared, Vec<Key<'w>>)> = Vec::new();
        // The resources of a declaration follow one another (`list_watched`).
        for group in others.chunk_by(|one, next| one.declaration == next.declaration) {
            let keys = group.iter().map(WatchedResource::key).collect();
            let declared = self.find_resolvable(group[0].declaration);
            wanted.extend(declared.map(|declared| (declared, keys)));
        }
        if let Some(servers) = self.servers {
            let declared = wanted.iter().map(|(declared, _)| declared);
            reading::start_unasked(self.session, servers, declared);
        }
        let mut states = Vec::new();
        for chunk in wanted.chunks(PARALLEL) {
            let results = run_in_parallel(chunk, |(declared, _)| self.resolve_other(declared));
            for ((_, keys), result) in chunk.iter().zip(results) {
                states.extend(list_states(keys, result)?);
            }
        }
        Ok(states)
    }

    fn resolve_other(&self, declared: &Declared) -> Result<HashMap<String, Checksum>, AttachError> {
        let timeout = match &declared.source {
            Source::Http { .. } => self.context.timeout.min(MAX_PAGE_TIME),
            _ => self.context.timeout,
        };
        self.resolve(declared, timeout)
    }

    /// Resolves one declaration and returns its checksums by URI.
    fn resolve(
        &self,
        declared: &Declared,
        timeout: Duration,
    ) -> Result<HashMap<String, Checksum>, AttachError> {
        let context = Context {
            unavailable: Unavailable::Fail,
            timeout,
            ..*self.context
        };
        let resolved = jp_attachment::resolve(slice::from_ref(declared), &context)?;
        Ok(resolved
            .resources
            .into_iter()
            .map(|resource| (resource.uri, resource.content.checksum))
            .collect())
    }

    /// Returns a declaration if jp can resolve it without asking, and warns otherwise.
    fn find_resolvable(&self, declaration: &Declaration) -> Option<Declared> {
        let place = self.context.place;
        let (reason, hint) = match self.configured.read(declaration, place) {
            Err(error) => (format!("failed to {}", chain(&error)), None),
            Ok(declared) => {
                let approved =
                    approval::approve_unasked(self.session, self.servers, declared.clone(), place);
                if approved.is_some() {
                    return approved;
                }
                let (reason, hint) = approval::explain_prompt(&declared, place);
                (reason, Some(hint))
            }
        };
        self.session.person.tell(Notice::ChangeUnknown {
            name: declaration.to_string(),
            reason,
            hint,
        });
        None
    }
}

/// Returns the states of a declaration's resources, given what it resolved to.
fn list_states<'w>(
    keys: &[Key<'w>],
    resolved: Result<HashMap<String, Checksum>, AttachError>,
) -> Result<Vec<(Key<'w>, SourceState)>, SessionError> {
    let checksums = match resolved.map_err(SourceState::from_error) {
        Ok(checksums) => checksums,
        Err(state) => match state? {
            // The whole declaration failed, so its first resource stands for all in a single warning.
            unknown @ SourceState::Unknown(_) => {
                return Ok(keys
                    .first()
                    .map(|key| (*key, unknown))
                    .into_iter()
                    .collect());
            }
            _ => HashMap::new(),
        },
    };
    Ok(keys
        .iter()
        .map(|key| (*key, SourceState::from_checksum(checksums.get(key.1))))
        .collect())
}

/// Returns the path of a file, with its links resolved.
fn locate(uri: &str) -> io::Result<PathBuf> {
    let path = file_path(uri, PathStyle::native()).map_err(io::Error::other)?;
    canonical_path(&PathBuf::from(path))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Declares a single file, as if the user had named it.
fn declare_file(uri: &str, path: PathBuf) -> Declared {
    Declared {
        input: uri.to_owned(),
        declaration: Some(uri.to_owned()),
        source: Source::Path(path),
        is_trusted: true,
        link_out: None,
    }
}

/// A change to report to the model.
struct Change {
    notification: Notification,
    /// The turn of the version that the conversation has.
    turn: usize,
}

/// Returns the changes that the model does not know, and warns about sources that can't be read.
fn find_changes(
    session: &Session,
    states: Vec<(Key<'_>, SourceState)>,
    held: &Held<'_>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for (key, state) in states {
        let Some(held) = held.get(&key) else { continue };
        let (_, uri) = key;
        let now = match state {
            SourceState::Gone => None,
            SourceState::Content(checksum) => Some(checksum),
            SourceState::Unknown(reason) => {
                session.person.tell(Notice::ChangeUnknown {
                    name: held.label(uri).to_string(),
                    reason,
                    hint: None,
                });
                continue;
            }
        };
        changes.extend(held.change(uri, now).map(|notification| Change {
            notification,
            turn: held.turn(),
        }));
    }
    changes
}

/// Tells the user which changes this message reports.
fn tell_user(session: &Session, changes: &[Change]) {
    // The model receives the same changes, so the user sees what it knows.
    let reported = &changes[..changes.len().min(MAX_CHANGES)];
    if reported.len() > MAX_LINES {
        let first = reported.iter().take(MAX_LINES).map(Change::label);
        session.person.tell(Notice::ResourcesChanged {
            count: reported.len(),
            first: first.map(str::to_owned).collect(),
        });
    } else {
        for change in reported {
            session.person.tell(change.to_notice());
        }
    }
    let count = changes.len() - reported.len();
    if count > 0 {
        session.person.tell(Notice::MoreResourcesChanged {
            count,
            limit: MAX_CHANGES,
        });
    }
}

impl Change {
    fn label(&self) -> &str {
        self.notification
            .name
            .as_deref()
            .unwrap_or(&self.notification.uri)
    }

    fn to_notice(&self) -> Notice {
        let turn = self.turn;
        Notice::ResourceChanged {
            name: self.label().to_owned(),
            change: match self.notification.now {
                None => ResourceChange::Gone,
                Some(now) if now == self.notification.checksum => ResourceChange::Restored { turn },
                Some(_) => ResourceChange::Modified { turn },
            },
        }
    }
}
