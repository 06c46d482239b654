//! Keeps the list as the conversation is.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{Arc, Weak},
    thread,
    time::{Duration, SystemTime},
};

use mcp_resources::{Bundle, Registry, Resource};

use crate::{
    conversations::{Conversations, Found},
    listing::{Entry, Lister, is_updated},
};

/// How often it is looked whether there is anything new: which conversation is current, and its file. That is two or
/// three system calls; a watch would have to follow directories that come and go.
const INTERVAL: Duration = Duration::from_millis(250);

/// Under which name the list is registered.
const NAME: &str = "conversation";

/// Keeps the list until it is dropped.
#[derive(Debug)]
pub(crate) struct Following {
    _alive: Arc<()>,
}

struct List {
    registry: Registry,
    conversations: Arc<Conversations>,
    lister: Lister,
    state: Option<State>,
    entries: Vec<Entry>,
}

/// The conversation that is listed, and the state of its file.
struct State {
    found: Found,
    length: u64,
    modified: Option<SystemTime>,
}

impl Following {
    /// Lists what there is now, and goes on with that on a thread.
    pub(crate) fn start(registry: Registry, conversations: Arc<Conversations>, lister: Lister) -> Self {
        let alive = Arc::new(());
        let mut list = List { registry, conversations, lister, state: None, entries: Vec::new() };
        list.look();
        let weak = Arc::downgrade(&alive);
        thread::spawn(move || list.run(&weak));
        Self { _alive: alive }
    }
}

impl List {
    fn run(mut self, alive: &Weak<()>) {
        while alive.strong_count() > 0 {
            thread::sleep(INTERVAL);
            self.look();
        }
    }

    fn look(&mut self) {
        let before = self.state.as_ref();
        let found = self.conversations.chosen(before.map(|state| &state.found));
        let now = found.map(State::of);
        if before.map(State::key) == now.as_ref().map(State::key) {
            return;
        }
        let is_other = before.map(State::place) != now.as_ref().map(State::place);
        let entries = match &now {
            Some(state) => state.found.entries(&self.lister),
            None => Some(Vec::new()),
        };
        // What can't be read at the moment leaves its list as it is; the next change is looked at again.
        let entries = entries.or_else(|| is_other.then(Vec::new));
        if let Some(entries) = entries.filter(|entries| is_other || *entries != self.entries) {
            self.replace(entries, now.as_ref());
        }
        self.state = now;
    }

    /// Lists these in the place of what was listed, and tells who subscribed to what is not as it was.
    fn replace(&mut self, entries: Vec<Entry>, now: Option<&State>) {
        let resources = now.map(|now| self.resources(&entries, now)).unwrap_or_default();
        // What can't be registered is left out by then.
        _ = self.registry.replace_server(NAME, Bundle::new().resources(resources));
        let before: HashMap<String, Entry> =
            self.entries.drain(..).map(|entry| (entry.uri.clone(), entry)).collect();
        for entry in &entries {
            if before.get(&entry.uri).is_some_and(|before| is_updated(before, entry)) {
                self.registry.notify_updated(&entry.uri);
            }
        }
        self.entries = entries;
    }

    /// Makes the resources. One with a URI that is none, as some servers have, is only there as its snapshot; of two with
    /// the same URI, written differently, the first is there.
    fn resources(&self, entries: &[Entry], now: &State) -> Vec<Resource> {
        let resource = |entry: &Entry| self.lister.resource(entry, &now.found.store);
        let trial = Registry::new();
        let is_new = |entry: &&Entry| {
            trial.register_resource(resource(entry)).is_ok_and(|registered| registered.known.is_empty())
        };
        entries.iter().filter(is_new).map(resource).collect()
    }
}

impl State {
    fn of(found: Found) -> Self {
        let file = fs::metadata(found.events()).ok();
        let length = file.as_ref().map_or(0, fs::Metadata::len);
        Self { found, length, modified: file.and_then(|file| file.modified().ok()) }
    }

    fn place(&self) -> &Path {
        &self.found.located.directory
    }

    fn key(&self) -> (&Path, u64, Option<SystemTime>) {
        (self.place(), self.length, self.modified)
    }
}
