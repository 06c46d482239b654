//! Files that change, told to those who subscribed to what is read from them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::{Interest, Registry};

/// How long to wait for more after a change: writing a file is several.
const SETTLE: Duration = Duration::from_millis(50);

/// Tells clients when a file changes that they subscribed to (feature `watch`).
///
/// Only directories are watched in which a file lies that somebody subscribed to: what a [`Resource`](crate::Resource::source) or a
/// [`ResourceTemplate`](crate::ResourceTemplate::source) says it is read from. Files that are replaced, as editors do, that go and that come back
/// are seen too, and so are those behind symbolic links. It ends when it is dropped.
///
/// ```no_run
/// use mcp_resources::{FileWatch, Registry, Resource, Server};
///
/// let registry = Registry::new();
/// let today = Resource::new("notes://today", "Today", || std::fs::read_to_string("today.md")).source("today.md");
/// registry.register_resource(today)?;
/// let _watch = FileWatch::start(&registry, |error| eprintln!("{error}"))?;
/// Server::new("notes", env!("CARGO_PKG_VERSION"), registry).run_stdio()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileWatch {
    _watched: Arc<Mutex<Watched>>,
}

/// Why changes of files can't be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The system offers no watching, or no more of it.
    #[error("files can't be watched, so nobody is told when they change: {0}")]
    Start(#[source] notify::Error),
    /// A directory can't be watched.
    #[error("{path} can't be watched, so nobody is told when it changes: {source}")]
    Path {
        /// The file that somebody subscribed to.
        path: PathBuf,
        /// Why not.
        source: notify::Error,
    },
    /// The system lost changes; everyone was told that everything changed.
    #[error("some changes of files were not seen: {0}")]
    Lost(#[source] notify::Error),
}

/// What is watched, and for whom.
#[derive(Debug)]
struct Watched {
    watcher: RecommendedWatcher,
    /// The files of each URI that somebody subscribed to: as it is named and, behind links, as it is.
    files: HashMap<String, BTreeSet<PathBuf>>,
    /// How many files are watched in each directory.
    directories: HashMap<PathBuf, usize>,
}

impl FileWatch {
    /// Starts watching for the clients of a registry; `report` is told what can't be watched.
    ///
    /// # Errors
    ///
    /// [`WatchError::Start`].
    pub fn start(
        registry: &Registry,
        report: impl Fn(WatchError) + Send + Sync + 'static,
    ) -> Result<Self, WatchError> {
        let (sender, changes) = mpsc::channel();
        let watcher = notify::recommended_watcher(sender).map_err(WatchError::Start)?;
        let watched = Watched { watcher, files: HashMap::new(), directories: HashMap::new() };
        let watched = Arc::new(Mutex::new(watched));
        let report = Arc::new(report);

        let (shared, report_of_thread) = (Arc::downgrade(&watched), Arc::clone(&report));
        let registry_of_thread = registry.clone();
        std::thread::spawn(move || tell(&changes, &shared, &registry_of_thread, &*report_of_thread));

        let shared = Arc::downgrade(&watched);
        registry.on_interest(move |registry, interest| {
            let Some(watched) = shared.upgrade() else { return };
            let changed = locked(&watched).change(registry, interest);
            changed.unwrap_or_else(|error| report(error));
        });
        Ok(Self { _watched: watched })
    }
}

/// Tells of changes until nothing is watched any more.
fn tell(
    changes: &Receiver<notify::Result<Event>>,
    watched: &Weak<Mutex<Watched>>,
    registry: &Registry,
    report: &dyn Fn(WatchError),
) {
    while let Ok(first) = changes.recv() {
        let Some(changed) = Changed::collect(first, changes, report) else { continue };
        let Some(watched) = watched.upgrade() else { return };
        let uris = locked(&watched).uris(&changed);
        uris.iter().for_each(|uri| registry.notify_updated(uri));
    }
}

/// What changed within a short time.
#[derive(Debug)]
enum Changed {
    Paths(BTreeSet<PathBuf>),
    /// So much that not all is known.
    Everything,
}

impl Changed {
    /// Waits for what belongs to the first change; nothing if a file was only read.
    fn collect(
        first: notify::Result<Event>,
        more: &Receiver<notify::Result<Event>>,
        report: &dyn Fn(WatchError),
    ) -> Option<Self> {
        let end = Instant::now() + SETTLE;
        let mut changed = Self::Paths(BTreeSet::new());
        let mut event = Some(first);
        while let Some(next) = event {
            changed = changed.with(next, report);
            if changed.is_nothing() {
                return None;
            }
            event = more.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
        }
        Some(changed)
    }

    fn with(self, event: notify::Result<Event>, report: &dyn Fn(WatchError)) -> Self {
        match (event, self) {
            (Err(error), _) => {
                report(WatchError::Lost(error));
                Self::Everything
            }
            (Ok(event), _) if event.need_rescan() => Self::Everything,
            (Ok(event), Self::Paths(mut paths)) => {
                if is_change(event.kind) {
                    paths.extend(event.paths);
                }
                Self::Paths(paths)
            }
            (Ok(_), Self::Everything) => Self::Everything,
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Paths(paths) if paths.is_empty())
    }
}

/// Whether a file may have another content. Servers read the files themselves, which must not be a change.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

impl Watched {
    fn change(&mut self, registry: &Registry, interest: Interest<'_>) -> Result<(), WatchError> {
        match interest {
            Interest::Begins(uri) => match registry.source(uri) {
                Some(path) => self.add(uri, &path),
                None => Ok(()),
            },
            Interest::Ends(uri) => {
                self.remove(uri);
                Ok(())
            }
        }
    }

    fn add(&mut self, uri: &str, path: &Path) -> Result<(), WatchError> {
        let failed = |source| WatchError::Path { path: path.to_owned(), source };
        let named = std::path::absolute(path).map_err(|error| failed(error.into()))?;
        // A file that isn't there yet has no other path.
        let real = named.canonicalize().unwrap_or_else(|_| named.clone());
        for file in BTreeSet::from([named, real]) {
            self.add_directory_of(&file).map_err(failed)?;
            self.files.entry(uri.to_owned()).or_default().insert(file);
        }
        Ok(())
    }

    fn add_directory_of(&mut self, file: &Path) -> notify::Result<()> {
        let Some(directory) = file.parent() else { return Ok(()) };
        let files = self.directories.get(directory).copied().unwrap_or(0);
        if files == 0 {
            self.watcher.watch(directory, RecursiveMode::NonRecursive)?;
        }
        self.directories.insert(directory.to_owned(), files + 1);
        Ok(())
    }

    fn remove(&mut self, uri: &str) {
        for file in self.files.remove(uri).unwrap_or_default() {
            let Some(directory) = file.parent() else { continue };
            let Some(files) = self.directories.get_mut(directory) else { continue };
            *files -= 1;
            if *files == 0 {
                self.directories.remove(directory);
                // A directory that is gone is watched no more.
                let _ = self.watcher.unwatch(directory);
            }
        }
    }

    /// The URIs whose files changed, or whose files' directories did.
    fn uris(&self, changed: &Changed) -> Vec<String> {
        let has_changed = |file: &PathBuf| match changed {
            Changed::Everything => true,
            Changed::Paths(paths) => {
                paths.contains(file) || file.parent().is_some_and(|directory| paths.contains(directory))
            }
        };
        let files = self.files.iter().filter(|(_, files)| files.iter().any(has_changed));
        files.map(|(uri, _)| uri.clone()).collect()
    }
}

fn locked(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
