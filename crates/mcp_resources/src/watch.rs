//! Files that change, told to those who subscribed to what is read from them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::{Interest, Registry};

/// How long to wait for more after a change: writing a file is several.
const SETTLE: Duration = Duration::from_millis(50);

/// How long until a directory is tried again that was not there.
const RETRY: Duration = Duration::from_secs(1);

/// Tells clients when a file changes that they subscribed to (feature `watch`).
///
/// Only directories are watched in which a file lies that somebody subscribed to: what a
/// [`Resource`](crate::Resource::source) or a [`ResourceTemplate`](crate::ResourceTemplate::source) says it is read
/// from, as it says it when the subscription begins. Files that are replaced, as editors do, that go and that come
/// back are seen too, and so are those behind symbolic links. It ends when it is dropped.
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
    watched: Arc<Mutex<Watched>>,
}

/// Why changes of files can't be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The system offers no watching, or no more of it.
    #[error("files can't be watched, so nobody is told when they change: {0}")]
    Start(#[source] notify::Error),
    /// A directory can't be watched; it is tried again until it can.
    #[error("{path} can't be watched, so for now nobody is told when something in it changes: {source}")]
    Directory {
        /// The directory of a file that somebody subscribed to.
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
    /// The files that somebody subscribed to, by URI.
    files: HashMap<String, BTreeSet<Watchee>>,
    directories: HashMap<PathBuf, Directory>,
    /// Wakes the thread that tells.
    wake: Sender<notify::Result<Event>>,
    report: Report,
}

/// A file as it is named, and as it is behind symbolic links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Watchee {
    named: PathBuf,
    real: PathBuf,
}

#[derive(Debug, Default)]
struct Directory {
    /// How many files in it are watched.
    files: usize,
    is_watched: bool,
}

/// Whom to tell of errors.
struct Report(Box<dyn Fn(WatchError) + Send + Sync>);

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
        let watched = Watched {
            watcher: notify::recommended_watcher(sender.clone()).map_err(WatchError::Start)?,
            files: HashMap::new(),
            directories: HashMap::new(),
            wake: sender,
            report: Report(Box::new(report)),
        };
        let watched = Arc::new(Mutex::new(watched));
        let (shared, of_thread) = (Arc::downgrade(&watched), registry.clone());
        std::thread::spawn(move || tell(&changes, &shared, &of_thread));
        let shared = Arc::downgrade(&watched);
        registry.on_interest(move |registry, interest| {
            if let Some(watched) = shared.upgrade() {
                locked(&watched).change(registry, interest);
            }
        });
        Ok(Self { watched })
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        // The thread looks whether there is still something to watch.
        let _ = locked(&self.watched).wake.send(Ok(Event::default()));
    }
}

/// Tells of changes until nothing is watched any more.
fn tell(changes: &Receiver<notify::Result<Event>>, watched: &Weak<Mutex<Watched>>, registry: &Registry) {
    let mut retry = None;
    while let Some(changed) = Changed::next(changes, retry) {
        let Some(watched) = watched.upgrade() else { return };
        let mut watched = locked(&watched);
        let uris = watched.update(changed);
        retry = watched.is_incomplete().then_some(RETRY);
        drop(watched);
        uris.iter().for_each(|uri| registry.notify_updated(uri));
    }
}

/// What changed within a short time.
#[derive(Debug, Default)]
struct Changed {
    paths: BTreeSet<PathBuf>,
    /// Why not all is known that changed.
    lost: Option<notify::Error>,
    is_everything: bool,
}

impl Changed {
    /// Waits for a change, or for the time to try again, and for what belongs to it; none if there will be none.
    fn next(changes: &Receiver<notify::Result<Event>>, retry: Option<Duration>) -> Option<Self> {
        let mut changed = Self::default();
        match retry {
            None => changed.add(changes.recv().ok()?),
            Some(retry) => match changes.recv_timeout(retry) {
                Ok(event) => changed.add(event),
                Err(RecvTimeoutError::Timeout) => return Some(changed),
                Err(RecvTimeoutError::Disconnected) => return None,
            },
        }
        let end = Instant::now() + SETTLE;
        while !changed.is_nothing() {
            match changes.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(event) => changed.add(event),
                Err(_) => break,
            }
        }
        Some(changed)
    }

    fn add(&mut self, event: notify::Result<Event>) {
        match event {
            Err(error) => self.lost = Some(error),
            Ok(event) if event.need_rescan() => self.is_everything = true,
            Ok(event) if is_change(event.kind) => self.paths.extend(event.paths),
            Ok(_) => (),
        }
    }

    fn is_nothing(&self) -> bool {
        self.paths.is_empty() && self.lost.is_none() && !self.is_everything
    }

    fn concerns(&self, file: &Path) -> bool {
        let all = self.is_everything || self.lost.is_some();
        all || file.ancestors().take(2).any(|path| self.paths.contains(path))
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
    fn change(&mut self, registry: &Registry, interest: Interest<'_>) {
        match interest {
            Interest::Begins(uri) => {
                let sources = registry.sources(uri);
                let files: BTreeSet<Watchee> = sources.iter().filter_map(|path| Watchee::new(path)).collect();
                files.iter().for_each(|file| self.add(file));
                self.files.insert(uri.to_owned(), files);
            }
            Interest::Ends(uri) => {
                self.files.remove(uri).iter().flatten().for_each(|file| self.remove(file));
            }
        }
    }

    fn add(&mut self, file: &Watchee) {
        for path in file.directories() {
            let directory = self.directories.entry(path.to_owned()).or_default();
            directory.files += 1;
            if directory.files > 1 {
                continue;
            }
            match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => directory.is_watched = true,
                Err(source) => {
                    self.report.tell(WatchError::Directory { path: path.to_owned(), source });
                    // An error says that the thread is at its end.
                    let _ = self.wake.send(Ok(Event::default()));
                }
            }
        }
    }

    fn remove(&mut self, file: &Watchee) {
        for path in file.directories() {
            let Some(directory) = self.directories.get_mut(path) else { continue };
            directory.files -= 1;
            if directory.files == 0 {
                self.directories.remove(path);
                // A directory that is gone is watched no more.
                let _ = self.watcher.unwatch(path);
            }
        }
    }

    /// Follows what changed; gives the URIs that it changed.
    fn update(&mut self, mut changed: Changed) -> Vec<String> {
        if let Some(error) = changed.lost.take() {
            self.report.tell(WatchError::Lost(error));
            changed.is_everything = true;
        }
        self.watch_again(&mut changed);
        let is_changed = |file: &&Watchee| changed.concerns(&file.named) || changed.concerns(&file.real);
        let of_uri = |(uri, files): (&String, &BTreeSet<Watchee>)| {
            let changed: Vec<Watchee> = files.iter().filter(is_changed).cloned().collect();
            (!changed.is_empty()).then(|| (uri.clone(), changed))
        };
        let changes: Vec<(String, Vec<Watchee>)> = self.files.iter().filter_map(of_uri).collect();
        for (uri, files) in &changes {
            files.iter().for_each(|file| self.follow(uri, file));
        }
        changes.into_iter().map(|(uri, _)| uri).collect()
    }

    /// Watches directories that were not there, or went and came back; what is in them is new.
    fn watch_again(&mut self, changed: &mut Changed) {
        for (path, directory) in &mut self.directories {
            let was_watched = directory.is_watched;
            if changed.paths.contains(path) {
                directory.is_watched = false;
            }
            if !directory.is_watched {
                directory.is_watched = self.watcher.watch(path, RecursiveMode::NonRecursive).is_ok();
                if directory.is_watched && !was_watched {
                    changed.paths.insert(path.clone());
                }
            }
        }
    }

    /// Whether there are directories to be watched that can't be.
    fn is_incomplete(&self) -> bool {
        self.directories.values().any(|directory| !directory.is_watched)
    }

    /// Watches where a symbolic link leads now.
    fn follow(&mut self, uri: &str, before: &Watchee) {
        let Some(now) = Watchee::new(&before.named).filter(|now| now != before) else { return };
        self.add(&now);
        self.remove(before);
        if let Some(files) = self.files.get_mut(uri) {
            files.remove(before);
            files.insert(now);
        }
    }
}

impl Watchee {
    fn new(path: &Path) -> Option<Self> {
        let named = std::path::absolute(path).ok()?;
        // A file that isn't there yet has no other path.
        let real = named.canonicalize().unwrap_or_else(|_| named.clone());
        Some(Self { named, real })
    }

    fn directories(&self) -> BTreeSet<&Path> {
        [&self.named, &self.real].into_iter().filter_map(|path| path.parent()).collect()
    }
}

impl Report {
    fn tell(&self, error: WatchError) {
        self.0(error);
    }
}

impl std::fmt::Debug for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Report")
    }
}

fn locked(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
