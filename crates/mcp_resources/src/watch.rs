//! Watches files, and notifies subscribers of the resources that are read from them.

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

/// The time to wait for more changes after one, because writing a file causes several.
const SETTLE: Duration = Duration::from_millis(50);

/// The longest time that a subscribing client waits until the files are watched. A server may answer nothing
/// meanwhile. If a client has waited this long, others don't wait until the watcher has finished.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most symbolic links in the path of a file. It is the limit of Linux.
const MAX_LINKS: usize = 40;

/// The time after which a directory that could not be watched is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Notifies subscribers when the file of a resource changes (feature `watch`).
///
/// A [`Resource`](crate::Resource::source) or a [`ResourceTemplate`](crate::ResourceTemplate::source) names the
/// files that it is read from. When a client subscribes, their directories are watched. The watch notices files
/// that are written, replaced, as editors do, removed and created again. It follows symbolic links, also if
/// they change.
///
/// The watch has its own thread, and ends when it is dropped.
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

/// A watch that doesn't work, or that may have missed changes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The system can't watch files, has no watch left, or no thread.
    #[error("files can't be watched, so changes are not reported: {0}")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// A directory can't be watched. It is tried again until it can.
    #[error("{path} can't be watched, so its changes are not reported for now: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system lost changes. All subscribers were notified.
    #[error("some changes of files were not seen: {0}")]
    Lost(#[source] Box<dyn Error + Send + Sync>),
}

/// A message to the thread that watches.
#[derive(Debug)]
enum Message {
    Changed(notify::Result<Event>),
    Begins(String),
    Ends(String),
    /// A client waits until the messages before this one are handled.
    Settle(Sender<()>),
    End,
}

/// The state of the thread that watches.
struct Watcher {
    registry: Registry,
    report: Box<dyn Fn(WatchError) + Send>,
    messages: Receiver<Message>,
    is_stalled: Arc<AtomicBool>,
    system: RecommendedWatcher,
    /// The paths of the files of subscribed URIs, by URI.
    uris: HashMap<String, Vec<Arc<Path>>>,
    /// The files, by those paths.
    files: HashMap<Arc<Path>, WatchedFile>,
    directories: HashMap<PathBuf, Directory>,
    changed: Changed,
    /// The time of the next check of changes, or of directories that could not be watched.
    wake: Option<Instant>,
}

/// A file of subscribed URIs. A URI may have thousands of files, and many URIs the same ones.
struct WatchedFile {
    path: Arc<Path>,
    /// The number of URIs that name it.
    mentions: usize,
    watchee: Watchee,
}

/// The path of a file, and the places where it may change: those of the file and of the symbolic links that
/// lead to it.
#[derive(Debug, PartialEq, Eq)]
struct Watchee {
    named: PathBuf,
    places: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct Directory {
    /// The number of watched files in it.
    files: usize,
    is_watched: bool,
}

/// The changes within a short time.
#[derive(Debug, Default)]
struct Changed {
    paths: BTreeSet<PathBuf>,
    /// The error, if changes were lost.
    lost: Option<notify::Error>,
    is_everything: bool,
}

impl FileWatch {
    /// Starts to watch for the clients of a registry. `report` receives what can't be watched.
    ///
    /// # Errors
    ///
    /// [`WatchError::Start`].
    pub fn start(
        registry: &Registry,
        report: impl Fn(WatchError) + Send + 'static,
    ) -> Result<Self, WatchError> {
        // The thread is started before notify starts its own: if the system has none left, notify panics.
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
        // It fails if the thread has ended.
        let _ = started.send(watcher);
        let (interests, settling) = (sender.clone(), sender.clone());
        let observing = registry.on_interest_to_settle(
            move |_, interest| match interest {
                Interest::Begins(uri) => send(&interests, Message::Begins(uri.to_owned())),
                Interest::Ends(uri) => send(&interests, Message::Ends(uri.to_owned())),
            },
            move || settle(&settling, &is_stalled),
        );
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

/// Waits until the thread has handled all messages, unless a client waited in vain before.
fn settle(messages: &Sender<Message>, is_stalled: &AtomicBool) {
    let (done, is_done) = mpsc::channel();
    send(messages, Message::Settle(done));
    // A client that doesn't wait may miss a change. One that waits for too long gets no answers at all.
    let waits = !is_stalled.load(Ordering::Relaxed);
    if waits && is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        is_stalled.store(true, Ordering::Relaxed);
    }
}

fn send(messages: &Sender<Message>, message: Message) {
    // It fails if the thread has ended.
    let _ = messages.send(message);
}

impl Watcher {
    fn run(mut self) {
        while let Some(message) = self.next() {
            // A panic in the author's functions does not end the watch. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| match message {
                Ok(message) => self.follow(message),
                Err(Woken) => self.look(),
            }));
        }
    }

    /// Waits for a message, or for the time to look; `None` at the end.
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
                // It fails if the client waits no more.
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

    /// Counts a file, and watches it if it is new; `None` if the path is not valid.
    fn add(&mut self, path: &Path) -> Option<Arc<Path>> {
        if let Some(file) = self.files.get_mut(path) {
            file.mentions += 1;
            return Some(Arc::clone(&file.path));
        }
        let (path, watchee) = (Arc::from(path), Watchee::new(path)?);
        self.watch(&watchee);
        self.files.insert(
            Arc::clone(&path),
            WatchedFile {
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
                // It fails if the directory is gone, which ends its watch.
                let _ = self.system.unwatch(path);
            }
        }
    }

    /// Notifies of changes, and tries directories that could not be watched.
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
        for (uri, files) in &self.uris {
            if files.iter().any(|path| paths.contains(path)) {
                self.registry.notify_updated(uri);
            }
        }
    }

    /// Watches directories that could not be watched, or went and came back. Everything in them counts as changed.
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
        self.files
            .values()
            .filter(|file| {
                file.watchee
                    .places
                    .iter()
                    .any(|place| changed.concerns(place))
            })
            .map(|file| Arc::clone(&file.path))
            .collect()
    }

    /// Watches the places where symbolic links lead now.
    ///
    /// The old places are left first. While a link was gone, its target may have been watched by the path of the
    /// link, and on systems that count a directory once, leaving it later would end the new watch.
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

    /// Reports to the author, whose function may panic. The panic hook reports that.
    fn tell(&self, error: WatchError) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.report)(error)));
    }

    fn wake_after(&mut self, time: Duration) {
        let wake = Instant::now() + time;
        self.wake = Some(self.wake.map_or(wake, |before| before.min(wake)));
    }
}

/// The time to look has come.
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

/// Returns whether a file may have changed. Reading it, as the server does, is no change.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

impl Watchee {
    fn new(path: &Path) -> Option<Self> {
        let named = std::path::absolute(path).ok()?;
        let mut places = find_places(&named);
        // A system may report changes with another spelling of the path.
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

/// Returns the symbolic links on the way to a file, and the file itself, which need not exist. Each path has no
/// link before its last name.
fn find_places(named: &Path) -> BTreeSet<PathBuf> {
    let mut links = BTreeSet::new();
    let mut place = PathBuf::new();
    let mut rest: Vec<PathBuf> = reverse_components(named);
    let mut followed = 0;
    while let Some(component) = rest.pop() {
        match component.components().next() {
            Some(Component::CurDir) => (),
            Some(Component::ParentDir) => _ = place.pop(),
            _ => place.push(component),
        }
        // Links may form a circle.
        if followed < MAX_LINKS
            && let Ok(target) = place.read_link()
        {
            followed += 1;
            links.insert(place.clone());
            place.pop();
            rest.extend(reverse_components(&target));
        }
    }
    links.insert(place);
    links
}

fn reverse_components(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .map(|component| component.as_os_str().into())
        .collect()
}
