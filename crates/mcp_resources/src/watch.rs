//! Files that change, told to those who subscribed to what is read from them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::{Interest, Observing, Registry};

/// How long to wait for more after a change: writing a file is several.
const SETTLE: Duration = Duration::from_millis(50);

/// How long a client waits until all is watched that it subscribed to at once. A server may answer nothing meanwhile, so
/// nobody waits for a watcher that kept somebody waiting this long and is not done with that.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many symbolic links are followed on the way to a file, as on Linux.
const MAX_LINKS: usize = 40;

/// How long until a directory is tried again that was not there.
const RETRY: Duration = Duration::from_secs(1);

/// Tells clients when a file changes that they subscribed to (feature `watch`).
///
/// Only directories are watched in which a file lies that somebody subscribed to: what a
/// [`Resource`](crate::Resource::source) or a [`ResourceTemplate`](crate::ResourceTemplate::source) says it is read
/// from, as it says it when the subscription begins. Files that are replaced, as editors do, that go and that come
/// back are seen too, and so are those behind symbolic links, and links that come to lead elsewhere. It has a thread of its own, and ends when it is dropped.
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
    messages: Sender<Message>,
    _observing: Observing,
}

/// Why changes of files can't be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The system offers no watching, or no more of it, or no thread.
    #[error("files can't be watched, so nobody is told when they change: {0}")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// A directory can't be watched; it is tried again until it can.
    #[error(
        "{path} can't be watched, so for now nobody is told when something in it changes: {source}"
    )]
    Directory {
        /// The directory of a file that somebody subscribed to.
        path: PathBuf,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system lost changes; everyone was told that everything changed.
    #[error("some changes of files were not seen: {0}")]
    Lost(#[source] Box<dyn Error + Send + Sync>),
}

/// What the thread that watches is told.
#[derive(Debug)]
enum Message {
    Changed(notify::Result<Event>),
    Begins(String),
    Ends(String),
    /// A client waits until all is done that was said before.
    Settle(Sender<()>),
    End,
}

/// The thread that watches: what it watches, and for whom.
struct Watcher {
    registry: Registry,
    report: Box<dyn Fn(WatchError) + Send>,
    messages: Receiver<Message>,
    is_stalled: Arc<AtomicBool>,
    system: RecommendedWatcher,
    /// What somebody subscribed to: the paths of its files, by URI.
    uris: HashMap<String, Vec<Arc<Path>>>,
    /// The files, by those paths.
    files: HashMap<Arc<Path>, Watched>,
    directories: HashMap<PathBuf, Directory>,
    changed: Changed,
    /// When to look at what changed, or at directories that were not there.
    wake: Option<Instant>,
}

/// A file that somebody subscribed to. URIs may have thousands of files each, and the same ones.
struct Watched {
    path: Arc<Path>,
    /// How often URIs name it.
    mentions: usize,
    watchee: Watchee,
}

/// A file as it is named, and where it may change: where it is behind symbolic links, and where each of these is.
#[derive(Debug, PartialEq, Eq)]
struct Watchee {
    named: PathBuf,
    places: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct Directory {
    /// How many files in it are watched.
    files: usize,
    is_watched: bool,
}

/// What changed within a short time.
#[derive(Debug, Default)]
struct Changed {
    paths: BTreeSet<PathBuf>,
    /// Why not all is known that changed.
    lost: Option<notify::Error>,
    is_everything: bool,
}

impl FileWatch {
    /// Starts watching for the clients of a registry; `report` is told what can't be watched.
    ///
    /// # Errors
    ///
    /// [`WatchError::Start`].
    pub fn start(
        registry: &Registry,
        report: impl Fn(WatchError) + Send + 'static,
    ) -> Result<Self, WatchError> {
        // Before notify has a thread of its own: where there is none, it panics.
        let (started, starting) = mpsc::channel();
        let thread =
            thread::Builder::new().spawn(move || starting.iter().take(1).for_each(Watcher::run));
        thread.map_err(|error| WatchError::Start(error.into()))?;
        let (sender, messages) = mpsc::channel();
        let events = sender.clone();
        let system =
            notify::recommended_watcher(move |event| send(&events, Message::Changed(event)));
        let is_stalled = Arc::new(AtomicBool::new(false));
        let watcher = Watcher {
            registry: registry.clone(),
            report: Box::new(report),
            messages,
            is_stalled: Arc::clone(&is_stalled),
            system: system.map_err(|error| WatchError::Start(error.into()))?,
            uris: HashMap::new(),
            files: HashMap::new(),
            directories: HashMap::new(),
            changed: Changed::default(),
            wake: None,
        };
        // An error says that the thread is at its end.
        let _ = started.send(watcher);
        let (interests, settling) = (sender.clone(), sender.clone());
        let observe = move |_: &Registry, interest: Interest<'_>| match interest {
            Interest::Begins(uri) => send(&interests, Message::Begins(uri.to_owned())),
            Interest::Ends(uri) => send(&interests, Message::Ends(uri.to_owned())),
        };
        let settle = move || settle(&settling, &is_stalled);
        let observing = registry.on_interest_to_settle(observe, settle);
        Ok(Self {
            messages: sender,
            _observing: observing,
        })
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        send(&self.messages, Message::End);
    }
}

/// Waits until all is done that was said to the thread that watches, unless somebody waited in vain before.
fn settle(messages: &Sender<Message>, is_stalled: &AtomicBool) {
    let (done, is_done) = mpsc::channel();
    send(messages, Message::Settle(done));
    // A client that is not kept waiting may miss a change; one that is kept longer misses all.
    let waits = !is_stalled.load(Ordering::Relaxed);
    if waits && is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        is_stalled.store(true, Ordering::Relaxed);
    }
}

fn send(messages: &Sender<Message>, message: Message) {
    // An error says that the thread is at its end.
    let _ = messages.send(message);
}

impl Watcher {
    fn run(mut self) {
        while let Some(message) = self.next() {
            // What the author's functions do is no reason to watch no more; the panic hook has said it.
            let _ = catch_unwind(AssertUnwindSafe(|| match message {
                Ok(message) => self.follow(message),
                Err(Woken) => self.look(),
            }));
        }
    }

    /// Waits for a message, or for the time to look; nothing at the end.
    fn next(&self) -> Option<Result<Message, Woken>> {
        let left = self
            .wake
            .map(|wake| wake.saturating_duration_since(Instant::now()));
        let message = match left {
            Some(Duration::ZERO) => return Some(Err(Woken)),
            Some(left) => self.messages.recv_timeout(left),
            None => self.messages.recv().map_err(RecvTimeoutError::from),
        };
        match message {
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => None,
            Ok(message) => Some(Ok(message)),
            Err(RecvTimeoutError::Timeout) => Some(Err(Woken)),
        }
    }

    fn follow(&mut self, message: Message) {
        match message {
            Message::Changed(event) => {
                self.changed.add(event);
                if !self.changed.is_nothing() {
                    self.wake_after(SETTLE);
                }
            }
            Message::Begins(uri) => self.begin(uri),
            Message::Ends(uri) => self.end(&uri),
            Message::Settle(done) => {
                self.is_stalled.store(false, Ordering::Relaxed);
                // An error says that the client waits no more.
                let _ = done.send(());
            }
            Message::End => (),
        }
    }

    fn begin(&mut self, uri: String) {
        let sources = self.registry.sources(&uri);
        let files = sources.iter().filter_map(|path| self.add(path)).collect();
        self.uris.insert(uri, files);
    }

    fn end(&mut self, uri: &str) {
        for path in self.uris.remove(uri).into_iter().flatten() {
            let Some(file) = self.files.get_mut(&path) else {
                continue;
            };
            file.mentions -= 1;
            if file.mentions == 0
                && let Some(file) = self.files.remove(&path)
            {
                self.unwatch(&file.watchee);
            }
        }
    }

    /// Counts a file, and watches it if it is new; nothing for what is no path.
    fn add(&mut self, path: &Path) -> Option<Arc<Path>> {
        if let Some(file) = self.files.get_mut(path) {
            file.mentions += 1;
            return Some(Arc::clone(&file.path));
        }
        let (path, watchee) = (Arc::from(path), Watchee::new(path)?);
        self.watch(&watchee);
        self.files.insert(
            Arc::clone(&path),
            Watched {
                path: Arc::clone(&path),
                mentions: 1,
                watchee,
            },
        );
        Some(path)
    }

    fn watch(&mut self, file: &Watchee) {
        for path in file.directories() {
            let directory = self.directories.entry(path.to_owned()).or_default();
            directory.files += 1;
            if directory.files > 1 {
                continue;
            }
            match self.system.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => directory.is_watched = true,
                Err(source) => {
                    self.wake_after(RETRY);
                    let (path, source) = (path.to_owned(), source.into());
                    self.tell(WatchError::Directory { path, source });
                }
            }
        }
    }

    fn unwatch(&mut self, file: &Watchee) {
        for path in file.directories() {
            let Some(directory) = self.directories.get_mut(path) else {
                continue;
            };
            directory.files -= 1;
            if directory.files == 0 {
                self.directories.remove(path);
                // A directory that is gone is watched no more.
                let _ = self.system.unwatch(path);
            }
        }
    }

    /// Tells of what changed, and looks for directories that were not there.
    fn look(&mut self) {
        self.wake = None;
        let mut changed = std::mem::take(&mut self.changed);
        if let Some(error) = changed.lost.take() {
            changed.is_everything = true;
            self.tell(WatchError::Lost(error.into()));
        }
        self.watch_again(&mut changed);
        if self
            .directories
            .values()
            .any(|directory| !directory.is_watched)
        {
            self.wake_after(RETRY);
        }
        let paths = self.changed_files(&changed);
        self.follow_links(&paths);
        let is_concerned = |files: &Vec<Arc<Path>>| files.iter().any(|path| paths.contains(path));
        let concerned = self.uris.iter().filter(|(_, files)| is_concerned(files));
        concerned.for_each(|(uri, _)| self.registry.notify_updated(uri));
    }

    /// Watches directories that were not there, or went and came back; what is in them is new.
    fn watch_again(&mut self, changed: &mut Changed) {
        for (path, directory) in &mut self.directories {
            let was_watched = directory.is_watched;
            if changed.paths.contains(path) {
                directory.is_watched = false;
            }
            if !directory.is_watched {
                directory.is_watched = self.system.watch(path, RecursiveMode::NonRecursive).is_ok();
                if directory.is_watched && !was_watched {
                    changed.paths.insert(path.clone());
                }
            }
        }
    }

    fn changed_files(&self, changed: &Changed) -> HashSet<Arc<Path>> {
        let is_changed = |file: &&Watched| {
            file.watchee
                .places
                .iter()
                .any(|place| changed.concerns(place))
        };
        self.files
            .values()
            .filter(is_changed)
            .map(|file| Arc::clone(&file.path))
            .collect()
    }

    /// Watches where symbolic links lead now. What they led to is left before: as long as a link was gone, what it leads to
    /// may have been watched by the path of the link, and systems that watch a directory once leave it once.
    fn follow_links(&mut self, paths: &HashSet<Arc<Path>>) {
        let mut turned = Vec::new();
        for path in paths {
            let Some(file) = self.files.get_mut(path) else {
                continue;
            };
            if let Some(now) = Watchee::new(&file.watchee.named).filter(|now| *now != file.watchee)
            {
                turned.push((Arc::clone(path), std::mem::replace(&mut file.watchee, now)));
            }
        }
        turned.iter().for_each(|(_, before)| self.unwatch(before));
        for (path, _) in turned {
            let Some(file) = self.files.remove(&path) else {
                continue;
            };
            self.watch(&file.watchee);
            self.files.insert(path, file);
        }
    }

    /// Tells the author, whose function may panic, as the panic hook then says.
    fn tell(&self, error: WatchError) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.report)(error)));
    }

    fn wake_after(&mut self, time: Duration) {
        let wake = Instant::now() + time;
        self.wake = Some(self.wake.map_or(wake, |before| before.min(wake)));
    }
}

/// It is time to look.
struct Woken;

impl Changed {
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
        self.is_everything
            || file
                .ancestors()
                .take(2)
                .any(|path| self.paths.contains(path))
    }
}

/// Whether a file may have another content. Servers read the files themselves, which must not be a change.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

impl Watchee {
    fn new(path: &Path) -> Option<Self> {
        let named = std::path::absolute(path).ok()?;
        let mut places = places(&named);
        // Systems may spell a path in another way when they tell of changes.
        places.extend(named.canonicalize());
        Some(Self { named, places })
    }

    fn directories(&self) -> BTreeSet<&Path> {
        self.places
            .iter()
            .filter_map(|path| path.parent())
            .collect()
    }
}

/// The symbolic links on the way to a file, and the file, each by a path without any; a file that isn't there, too.
fn places(named: &Path) -> BTreeSet<PathBuf> {
    let mut links = BTreeSet::new();
    let mut place = PathBuf::new();
    let mut rest: Vec<PathBuf> = reversed(named);
    let mut followed = 0;
    while let Some(component) = rest.pop() {
        match component.components().next() {
            Some(Component::CurDir) => (),
            Some(Component::ParentDir) => _ = place.pop(),
            _ => place.push(component),
        }
        // Links may go in a circle.
        if followed < MAX_LINKS
            && let Ok(target) = place.read_link()
        {
            followed += 1;
            links.insert(place.clone());
            place.pop();
            rest.extend(reversed(&target));
        }
    }
    links.insert(place);
    links
}

fn reversed(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .map(|component| component.as_os_str().into())
        .collect()
}
