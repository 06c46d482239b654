//! What has changed at its source since the conversation got it, of declarations with `refresh = "notify"`.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use crate::{
    attachments::{
        advice, approval,
        declarations::Configured,
        resolve::Attachments,
        store::{known_content, measure, state},
    },
    error::{SessionError, chain},
    notice::{Notice, ResourceChange},
    servers::{Servers, reading},
    session::{Session, Setup},
};
use jp_attachment::{
    AttachError, ContentStore, Declared, FileStamp, HttpError, Known, Limits, McpError, ReadMcp,
    Secrets, Source, Unavailable, canonical_path, mcp_ttl, parse_stored,
};
use jp_conversation::{
    Declaration, Notification, Stream,
    attachments::newest_by_declaration,
    held_resources::{HeldResource, Key, Marks, WrittenFile, held_resources},
    resolution::declarations_to_watch,
};
use jp_resource::{
    BlobRef, Checksum, ResourceContent, Snapshot,
    uri::{PathStyle, file_path},
};
use jp_storage::Stamps;
use jp_tool::StoredBlock;
use jp_turn::{Builtin, FileState, marked_files};

/// How many changes one message tells of; the next tells of the others.
const MAX_TOLD: usize = 50;
/// Of more changes than these the person reads one line for all.
const MAX_LINES: usize = 3;
/// How long a page or an MCP server may take: the person waits for an answer, not for the page.
const MAX_PAGE_TIME: Duration = Duration::from_secs(10);
/// How many pages and programs are waited for at once.
const PARALLEL: usize = 8;

/// Compares what the model is to be told of with its source, and says what there is to tell.
///
/// What this message attaches is not looked at. A file whose state is known is not read, nothing is kept, and nobody is
/// asked: what would need that is left as it is, with a warning.
pub(crate) fn notifications(
    setup: Setup<'_>,
    stream: &Stream,
    configured: &Configured,
    attached: &Attachments,
    resolving: &jp_attachment::Context<'_>,
    stamps: &Stamps,
) -> Result<Vec<Notification>, SessionError> {
    let session = setup.session;
    let declared = declarations_to_watch(stream, &configured.declarations, &configured.notify);
    let mut watched = watched(stream, &declared, attached);
    let held = held_resources(
        stream,
        watched.iter().map(|watched| watched.uri),
        &resolving.place.root,
        &StreamMarks,
    );
    // What no message took yet the model never got, and a server is not asked for what it takes for current.
    let now = session.now();
    let is_current =
        |(server, _): Key<'_>, held: &HeldResource<'_>| server.is_some() && held.is_current(now);
    watched.retain(|watched| {
        let key = watched.key();
        held.get(&key).is_some_and(|held| !is_current(key, held))
    });
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let hurried = resolving.mcp.map(|servers| reading::Hurried {
        servers,
        limit: MAX_PAGE_TIME,
    });
    let looking = jp_attachment::Context {
        store: &Sums { stamps },
        mcp: hurried.as_ref().map(|hurried| hurried as &dyn ReadMcp),
        limits: limits(resolving, &held),
        secrets: Secrets::Off,
        cancelled: Some(session.interrupt().flag()),
        bear_database: session.surroundings.bear_database.as_deref(),
        ..*resolving
    };
    let asking = Asking {
        configured,
        servers: reading::configured(setup)?,
        looking: &looking,
    };
    let found = found_now(session, watched, &asking)?;
    let changes = changes(session, found, &held);
    tell(session, &changes);
    Ok(changes
        .into_iter()
        .take(MAX_TOLD)
        .map(|change| change.notification)
        .collect())
}

/// Returns limits that let in whatever the conversation holds already.
fn limits(
    resolving: &jp_attachment::Context<'_>,
    held: &HashMap<Key<'_>, HeldResource<'_>>,
) -> Limits {
    let largest = held
        .values()
        .map(|held| held.size)
        .max()
        .unwrap_or_default();
    Limits {
        max_bytes: resolving.limits.max_bytes.max(largest),
        max_total_bytes: u64::MAX,
        max_files: usize::MAX,
    }
}

/// What looking at sources depends on.
struct Asking<'a> {
    configured: &'a Configured,
    servers: Option<&'a Arc<Servers>>,
    looking: &'a jp_attachment::Context<'a>,
}

/// Finds out what the sources have.
fn found_now<'a>(
    session: &Session,
    watched: Vec<Watched<'a>>,
    asking: &Asking<'_>,
) -> Result<Vec<(Key<'a>, Now)>, SessionError> {
    // What a server calls a file is not one of this machine.
    let is_file =
        |watched: &Watched<'_>| watched.uri.starts_with("file:") && watched.key().0.is_none();
    let (files, others): (Vec<_>, Vec<_>) = watched.into_iter().partition(is_file);
    let mut found: Vec<_> = files_now(session, &files, asking.looking)?
        .into_iter()
        .map(|(uri, now)| ((None, uri), now))
        .collect();
    found.extend(others_now(session, &others, asking)?);
    Ok(found)
}

/// Something to tell the model.
struct Change {
    notification: Notification,
    /// The turn that the version came with which the conversation holds.
    turn: usize,
}

impl Change {
    fn new(held: &HeldResource<'_>, uri: &str, now: Option<Checksum>) -> Option<Self> {
        Some(Self {
            notification: held.change(uri, now)?,
            turn: held.turn(),
        })
    }
}

/// The marks of `jp_attachment` and `jp_turn`.
struct StreamMarks;

impl Marks for StreamMarks {
    fn ttl(&self, snapshot: &Snapshot) -> Option<Duration> {
        mcp_ttl(snapshot)
    }

    fn own_tool_reads(&self, name: &str) -> Option<bool> {
        Builtin::named(name).map(|tool| tool.is_reader())
    }

    fn written_files(&self, block: &StoredBlock) -> Vec<WrittenFile> {
        let files = marked_files(block);
        files
            .map(|FileState { path, checksum }| WrittenFile { path, checksum })
            .collect()
    }
}

/// Returns what the model does not know; warns of what can't be found out.
fn changes(
    session: &Session,
    found: Vec<(Key<'_>, Now)>,
    held: &HashMap<Key<'_>, HeldResource<'_>>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for (key, now) in found {
        let Some(held) = held.get(&key) else { continue };
        let (_, uri) = key;
        match now {
            Now::Unknown(reason) => {
                let name = held.label(uri);
                session.person.tell(Notice::ChangeUnknown {
                    name: name.to_string(),
                    reason,
                    hint: None,
                });
            }
            Now::Gone => changes.extend(Change::new(held, uri, None)),
            Now::Content(checksum) => changes.extend(Change::new(held, uri, Some(checksum))),
        }
    }
    changes
}

/// A resource whose changes the model is told of, and what delivered it.
#[derive(Debug, Clone, Copy)]
struct Watched<'a> {
    declaration: &'a Declaration,
    uri: &'a str,
}

impl<'a> Watched<'a> {
    fn key(&self) -> Key<'a> {
        (self.declaration.server(), self.uri)
    }
}

/// Returns what the declarations delivered, but for what is attached anew; each URI of a server once.
fn watched<'a>(
    stream: &'a Stream,
    declared: &'a [Declaration],
    attached: &'a Attachments,
) -> Vec<Watched<'a>> {
    if declared.is_empty() {
        return Vec::new();
    }
    let newest = newest_by_declaration(stream);
    let mut seen: HashSet<Key<'_>> = HashSet::new();
    for delivered in &attached.delivered {
        let snapshots = delivered
            .resources
            .iter()
            .filter_map(|index| attached.snapshots.get(*index));
        seen.extend(
            snapshots.map(|snapshot| (delivered.declaration.server(), snapshot.uri.as_str())),
        );
    }
    let mut watched = Vec::new();
    for declaration in declared {
        let given = newest.get(declaration).into_iter().flatten();
        let given = given.map(|(_, snapshot)| Watched {
            declaration,
            uri: &snapshot.uri,
        });
        watched.extend(given.filter(|watched| seen.insert(watched.key())));
    }
    watched
}

/// What a source has.
#[derive(Debug)]
enum Now {
    Content(Checksum),
    Gone,
    /// Why it can't be found out.
    Unknown(String),
}

impl Now {
    /// Tells what is gone from what can't be had now; an interruption ends the command.
    fn of_error(error: AttachError) -> Result<Self, SessionError> {
        let is_gone = match &error {
            AttachError::Missing { .. }
            | AttachError::Mcp {
                source: McpError::NotFound(_),
                ..
            } => true,
            AttachError::Http { source, .. } => {
                matches!(&**source, HttpError::Status { status, .. } if status.starts_with("404") || status.starts_with("410"))
            }
            _ => false,
        };
        match error {
            AttachError::Interrupted => Err(advice::failure(error)),
            _ if is_gone => Ok(Self::Gone),
            error => Ok(Self::Unknown(format!("failed to {}", chain(&error)))),
        }
    }
}

/// Looks at files, each by its own name: whatever a directory has beside them was never attached.
fn files_now<'a>(
    session: &Session,
    files: &[Watched<'a>],
    looking: &jp_attachment::Context<'_>,
) -> Result<Vec<(&'a str, Now)>, SessionError> {
    let mut found = Vec::new();
    let mut there = Vec::new();
    for file in files {
        match located(file.uri) {
            Ok(path) if path.is_dir() => found.push((file.uri, Now::Gone)),
            Ok(path) if !path.starts_with(&looking.place.root) => {
                approval::refused(session, file.uri)
            }
            Ok(path) => there.push((file.uri, named(file.uri, path))),
            Err(error) if is_absence(&error) => found.push((file.uri, Now::Gone)),
            Err(error) => found.push((file.uri, Now::Unknown(error.to_string()))),
        }
    }
    let declared: Vec<_> = there.iter().map(|(_, declared)| declared.clone()).collect();
    if declared.is_empty() {
        return Ok(found);
    }
    let skipping = jp_attachment::Context {
        unavailable: Unavailable::Skip,
        ..*looking
    };
    let resolved = jp_attachment::resolve(&declared, &skipping).map_err(advice::failure)?;
    let given = resolved.delivered.iter().filter_map(|delivered| {
        let resource = resolved.resources.get(*delivered.resources.first()?)?;
        Some((delivered.declaration.as_str(), resource.content.checksum))
    });
    let given: HashMap<&str, Checksum> = given.collect();
    for (uri, declared) in there {
        let now = match given.get(uri) {
            Some(checksum) => Now::Content(*checksum),
            None => why_not(declared, looking)?,
        };
        found.push((uri, now));
    }
    Ok(found)
}

/// Says why a file was skipped.
fn why_not(declared: Declared, looking: &jp_attachment::Context<'_>) -> Result<Now, SessionError> {
    let failing = jp_attachment::Context {
        unavailable: Unavailable::Fail,
        ..*looking
    };
    match jp_attachment::resolve(&[declared], &failing) {
        Ok(resolved) => Ok(resolved
            .resources
            .first()
            .map_or(Now::Gone, |one| Now::Content(one.content.checksum))),
        Err(error) => Now::of_error(error),
    }
}

/// Returns where a file is, links resolved.
fn located(uri: &str) -> io::Result<PathBuf> {
    let path = file_path(uri, PathStyle::native()).map_err(io::Error::other)?;
    canonical_path(&PathBuf::from(path))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Names a file outright, for itself alone.
fn named(uri: &str, path: PathBuf) -> Declared {
    let source = Source::Path(path);
    Declared {
        input: uri.to_owned(),
        declaration: Some(uri.to_owned()),
        source,
        is_trusted: true,
        link_out: None,
    }
}

/// Resolves what is no file, each declaration once, several at a time.
fn others_now<'a>(
    session: &Session,
    others: &[Watched<'a>],
    asking: &Asking<'_>,
) -> Result<Vec<(Key<'a>, Now)>, SessionError> {
    let looking = asking.looking;
    let mut wanted: Vec<(Declared, Vec<Key<'a>>)> = Vec::new();
    for group in others.chunk_by(|one, next| one.declaration == next.declaration) {
        let keys = group.iter().map(Watched::key).collect();
        let declared = may_be_resolved(session, group[0].declaration, asking);
        wanted.extend(declared.map(|declared| (declared, keys)));
    }
    if let Some(servers) = asking.servers {
        reading::start_unasked(
            session,
            servers,
            wanted.iter().map(|(declared, _)| declared),
        );
    }
    let mut found = Vec::new();
    for some in wanted.chunks(PARALLEL) {
        let results = thread::scope(|scope| {
            let running: Vec<_> = some
                .iter()
                .map(|(declared, _)| scope.spawn(|| resolved_now(declared, looking)))
                .collect();
            let join = |running: thread::ScopedJoinHandle<'_, _>| {
                running
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            running.into_iter().map(join).collect::<Vec<_>>()
        });
        for ((_, keys), result) in some.iter().zip(results) {
            match result {
                Ok(given) => found.extend(keys.iter().map(|key| {
                    (
                        *key,
                        given
                            .get(key.1)
                            .map_or(Now::Gone, |checksum| Now::Content(*checksum)),
                    )
                })),
                // One declaration, one warning: all of it failed.
                Err(error) => match Now::of_error(error)? {
                    Now::Unknown(reason) => {
                        found.extend(keys.first().map(|key| (*key, Now::Unknown(reason))))
                    }
                    _ => found.extend(keys.iter().map(|key| (*key, Now::Gone))),
                },
            }
        }
    }
    Ok(found)
}

/// Returns what a declaration stands for, where nobody needs to be asked; says so where somebody would.
fn may_be_resolved(
    session: &Session,
    declaration: &Declaration,
    asking: &Asking<'_>,
) -> Option<Declared> {
    let Asking {
        configured,
        servers,
        looking,
    } = *asking;
    let declared = match configured.sources.get(declaration) {
        Some(declared) => Ok(declared.clone()),
        None => parse_stored(declaration.as_str(), looking.place),
    };
    let (reason, hint) = match declared {
        Err(error) => (format!("failed to {}", chain(&error)), None),
        Ok(declared) => {
            let unasked = approval::unasked(session, servers, declared.clone(), looking.place);
            if unasked.is_some() {
                return unasked;
            }
            let (reason, hint) = approval::why_asked(&declared, looking.place);
            (reason, Some(hint))
        }
    };
    session.person.tell(Notice::ChangeUnknown {
        name: declaration.to_string(),
        reason,
        hint,
    });
    None
}

fn resolved_now(
    declared: &Declared,
    looking: &jp_attachment::Context<'_>,
) -> Result<HashMap<String, Checksum>, AttachError> {
    let timeout = match &declared.source {
        Source::Http { .. } => looking.timeout.min(MAX_PAGE_TIME),
        _ => looking.timeout,
    };
    let looking = jp_attachment::Context {
        unavailable: Unavailable::Fail,
        timeout,
        ..*looking
    };
    let resolved = jp_attachment::resolve(std::slice::from_ref(declared), &looking)?;
    Ok(resolved
        .resources
        .into_iter()
        .map(|resource| (resource.uri, resource.content.checksum))
        .collect())
}

/// Tells the person what the model is told.
fn tell(session: &Session, changes: &[Change]) {
    let told = &changes[..changes.len().min(MAX_TOLD)];
    if told.len() > MAX_LINES {
        let first = told.iter().take(MAX_LINES).map(Change::label);
        session.person.tell(Notice::ResourcesChanged {
            count: told.len(),
            first: first.map(str::to_owned).collect(),
        });
    } else {
        told.iter()
            .for_each(|change| session.person.tell(change.to_notice()));
    }
    let count = changes.len() - told.len();
    if count > 0 {
        session.person.tell(Notice::MoreResourcesChanged {
            count,
            limit: MAX_TOLD,
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

/// Keeps checksums and no content.
struct Sums<'a> {
    stamps: &'a Stamps,
}

impl ContentStore for Sums<'_> {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        let known = self.stamps.find(&state(file)?)?;
        Some(Known {
            blob: known.blob,
            mime_type: known.mime_type?,
        })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn std::error::Error + Send + Sync>> {
        let blob = content.blob_ref();
        if let Some(state) = file.and_then(state) {
            self.stamps.remember(
                state,
                known_content(blob, mime_type, None, measure(content)),
            );
        }
        Ok(blob)
    }
}
