//! Keeps the list up to date with the conversation and the files attached to it.

use std::{
    collections::{HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use jp_conversation::Stream;
use jp_storage::ReadError;
use mcp_resources::{Bundle, Registry, Resource};

use crate::{
    conversations::{Choice, Conversations, FoundConversation},
    error::{Report, Warning},
    listing::{Attached, Entry, Lister, is_updated},
    stamps::Stamps,
};

/// The interval of the search for changes: of the current conversation, its file, and the attached files and
/// directories. A search costs a system call for each of these and for each ignore file. A watch would cost
/// less, but would have to follow directories that are made and removed.
const INTERVAL: Duration = Duration::from_secs(1);

/// The name of the list in the registry.
const NAME: &str = "conversation";

/// Keeps the list up to date until it is dropped.
#[derive(Debug)]
pub(crate) struct Following {
    _alive: Arc<()>,
}

struct List {
    registry: Registry,
    conversations: Arc<Conversations>,
    lister: Lister,
    choice: Option<Choice>,
    conversation: Option<Conversation>,
    attached: Option<Attached>,
    entries: Vec<Entry>,
    reports: Reports,
}

/// The conversation when it was last read.
struct Conversation {
    found: FoundConversation,
    stream: Stream,
    stamps: Stamps,
}

/// The part of the list that a warning is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Topic {
    Conversation,
    Files,
    Uris,
    Defect,
}

/// Reports each warning once while it applies.
struct Reports {
    report: Report,
    reported: HashMap<Topic, HashSet<String>>,
}

impl Following {
    /// Makes the list and starts the thread that keeps it up to date. Reports if the thread can't start.
    pub(crate) fn start(
        registry: Registry,
        conversations: Arc<Conversations>,
        lister: Lister,
        report: Report,
    ) -> Self {
        let alive = Arc::new(());
        let reports = Reports {
            report: Arc::clone(&report),
            reported: HashMap::new(),
        };
        let mut list = List {
            registry,
            conversations,
            lister,
            choice: None,
            conversation: None,
            attached: None,
            entries: Vec::new(),
            reports,
        };
        list.update();
        let weak = Arc::downgrade(&alive);
        let thread = thread::Builder::new().spawn(move || {
            repeat(&weak, INTERVAL, &mut list, List::update, List::report_bug);
        });
        if let Err(error) = thread {
            report(Warning::NotFollowed(error));
        }
        Self { _alive: alive }
    }
}

/// Updates the list once per interval while `alive` exists. After a panic, reports it and continues.
fn repeat<T>(
    alive: &Weak<()>,
    interval: Duration,
    list: &mut T,
    update: impl Fn(&mut T),
    report_bug: impl Fn(&mut T),
) {
    loop {
        thread::sleep(interval);
        if alive.strong_count() == 0 {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| update(list))).is_err() {
            // The report may panic, too.
            _ = catch_unwind(AssertUnwindSafe(|| report_bug(list)));
        }
    }
}

impl List {
    fn report_bug(&mut self) {
        self.reports.replace(Topic::Defect, vec![Warning::Defect]);
    }

    /// Updates the list: first the conversation, then its attachments, then the resources.
    fn update(&mut self) {
        let is_conversation_new = self.read_conversation();
        let are_files_new = self.survey();
        if !is_conversation_new && !are_files_new {
            return;
        }
        let entries = match (&self.conversation, &self.attached) {
            (Some(conversation), Some(attached)) => {
                self.lister.entries(&conversation.stream, attached)
            }
            _ => Vec::new(),
        };
        if entries != self.entries {
            self.replace(entries);
        }
    }

    /// Reads the conversation if it is another one or has changed. Returns true if the list may change.
    ///
    /// If the conversation can't be read, the list doesn't change, and the next update tries again.
    fn read_conversation(&mut self) -> bool {
        let choice = self.conversations.choice(self.choice.take());
        let found = choice.found.clone();
        self.choice = Some(choice);
        let located = found.as_ref().map(|found| &found.located);
        let same = self
            .conversation
            .as_ref()
            .filter(|before| Some(&before.found.located) == located);
        if same.is_some_and(|same| same.stamps.are_current()) {
            return false;
        }
        let had = self.conversation.is_some();
        if same.is_none() {
            self.conversation = None;
        }
        let Some(found) = found else { return had };
        let (id, stamps) = (
            found.located.id,
            Stamps::before_reading([found.located.events()]),
        );
        match found.store.read(&found.located) {
            Ok(read) => {
                self.reports.replace(Topic::Conversation, Vec::new());
                self.conversation = Some(Conversation {
                    found,
                    stream: read.stream,
                    stamps,
                });
                true
            }
            // `jp conversation rm` runs at the same time. The next update finds another one, or none.
            Err(ReadError::Removed { .. }) => had && self.conversation.is_none(),
            Err(source) => {
                self.reports.replace(
                    Topic::Conversation,
                    vec![Warning::Conversation { id, source }],
                );
                had && self.conversation.is_none()
            }
        }
    }

    /// Surveys the attached files again if they may have changed. Returns true if it did.
    fn survey(&mut self) -> bool {
        let Some(conversation) = &self.conversation else {
            self.attached = None;
            return false;
        };
        let declared = self.lister.list_declarations(&conversation.stream);
        if self
            .attached
            .as_ref()
            .is_some_and(|attached| attached.is_current(&declared))
        {
            return false;
        }
        let (attached, warnings) = self.lister.survey(declared);
        self.reports.replace(Topic::Files, warnings);
        self.attached = Some(attached);
        true
    }

    /// Replaces the entries of the list, and notifies subscribers of those that changed.
    fn replace(&mut self, entries: Vec<Entry>) {
        let resources = self.resources(&entries);
        if let Err(error) = self
            .registry
            .replace_server(NAME, Bundle::new().resources(resources))
        {
            self.reports.replace(Topic::Uris, vec![Warning::Uri(error)]);
        }
        let before: HashMap<String, Entry> = self
            .entries
            .drain(..)
            .map(|entry| (entry.uri.clone(), entry))
            .collect();
        for entry in &entries {
            if before
                .get(&entry.uri)
                .is_some_and(|before| is_updated(before, entry))
            {
                self.registry.notify_updated(&entry.uri);
            }
        }
        self.entries = entries;
    }

    /// Makes the resources. Some servers use invalid URIs; such a resource is listed only as a snapshot. Of two
    /// resources whose URIs differ only in spelling, the first is listed.
    fn resources(&mut self, entries: &[Entry]) -> Vec<Resource> {
        let Some(Conversation { found, .. }) = &self.conversation else {
            return Vec::new();
        };
        let (mut resources, mut seen, mut warnings) = (Vec::new(), HashSet::new(), Vec::new());
        for entry in entries {
            let resource = self.lister.resource(entry, &found.store);
            match resource.key() {
                Ok(key) if seen.insert(key.clone()) => resources.push(resource),
                Ok(_) => {}
                Err(error) => warnings.push(Warning::Uri(error)),
            }
        }
        self.reports.replace(Topic::Uris, warnings);
        resources
    }
}

impl Reports {
    /// Reports the warnings of a topic that did not apply before.
    fn replace(&mut self, topic: Topic, warnings: Vec<Warning>) {
        let before = self.reported.remove(&topic).unwrap_or_default();
        let now = self.reported.entry(topic).or_default();
        for warning in warnings {
            let text = warning.to_string();
            if now.insert(text.clone()) && !before.contains(&text) {
                (self.report)(warning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn panic_does_not_end_the_thread() {
        let strong = Arc::new(());
        let (weak, alive) = (Arc::downgrade(&strong), RefCell::new(Some(strong)));
        let look = |seen: &mut Vec<&str>| match seen.len() {
            0 => panic!("for the test"),
            1 => seen.push("looked"),
            _ => {
                seen.push("looked for the last time");
                alive.borrow_mut().take();
            }
        };
        let mut seen = Vec::new();
        repeat(&weak, Duration::from_millis(1), &mut seen, look, |seen| {
            seen.push("told");
            panic!("who is told has a defect too");
        });
        assert_eq!(seen, ["told", "looked", "looked for the last time"]);
    }
}
