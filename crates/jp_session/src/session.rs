//! The workspace a command works in, with its configuration and its conversations.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use jp_config::Resolved;
use jp_conversation::EventKind;
use jp_storage::{
    Conversation, ConversationId, Located, Sessions, Store, StoreError, Workspace, Writer,
};
use serde_json::Value;

use crate::{
    error::SessionError,
    interrupt::Interrupt,
    notice::Notice,
    person::{Answer, Person, Question},
    servers::Servers,
    surroundings::Surroundings,
    trust::history::may_switch_on,
};

/// What the user chose for a whole command.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where to look for the workspace, if not in the current directory.
    pub workspace: Option<PathBuf>,
    /// Configuration of the command line: `KEY=VALUE` or a file.
    pub cfg: Vec<String>,
    /// Answer yes to every question.
    pub yes: bool,
    /// Store nothing.
    pub no_persist: bool,
    /// Fail if another process uses the conversation, instead of waiting.
    pub no_wait: bool,
    /// Ask servers for their logs.
    pub wants_logs: bool,
    /// The user can see progress.
    pub shows_progress: bool,
}

/// Everything a command works with, opened once.
///
/// Stores and MCP servers are lazy: what a command doesn't use costs it nothing.
pub struct Session {
    /// What the user chose.
    pub options: Options,
    /// Directories and devices.
    pub surroundings: Surroundings,
    /// The person in front of the program.
    pub person: Arc<dyn Person>,
    /// The workspace.
    pub workspace: Workspace,
    clock: fn() -> Timestamp,
    listen: Box<dyn Fn() -> Interrupt + Send + Sync>,
    interrupt: OnceLock<Interrupt>,
    servers: OnceLock<Arc<Servers>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("options", &self.options)
            .field("workspace", &self.workspace.root())
            .finish_non_exhaustive()
    }
}

/// A session with the configuration that a query or a command uses.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'s> {
    /// The session.
    pub session: &'s Session,
    /// The configuration, with where each value came from.
    pub config: &'s Resolved,
}

impl<'s> Setup<'s> {
    /// Pairs them.
    pub fn new(session: &'s Session, config: &'s Resolved) -> Self {
        Self { session, config }
    }
}

/// A conversation's place, and the store it is in.
#[derive(Debug, Clone)]
pub struct Found {
    /// The store.
    pub store: Store,
    /// The place.
    pub located: Located,
    /// Whether it is kept out of the workspace.
    pub is_local: bool,
}

impl Found {
    /// Fails if the conversation is archived.
    pub fn refuse_archived(&self) -> Result<(), SessionError> {
        let id = self.located.id;
        match self.located.is_archived() {
            true => Err(
                SessionError::new(format!("conversation {id} is archived and read-only"))
                    .with_hint(format!(
                        "`jp conversation fork {id}` continues a copy of it."
                    )),
            ),
            false => Ok(()),
        }
    }
}

/// Takes a conversation out of all, unless there is another of its id: it is not known which one is meant.
fn the_only(mut conversations: Vec<Found>, place: usize) -> Result<Found, SessionError> {
    let found = conversations.swap_remove(place);
    let id = found.located.id;
    match conversations.iter().find(|other| other.located.id == id) {
        Some(other) => {
            let [one, two] = [&found, other].map(|found| found.located.directory.display());
            let hint = "rename or remove one of them; a copy or a merge may have made it.";
            Err(SessionError::new(format!(
                "two conversations have the id {id}: {one} and {two}"
            ))
            .with_hint(hint))
        }
        None => Ok(found),
    }
}

impl Session {
    /// Finds and opens the workspace.
    ///
    /// `listen` starts to listen for interrupts; it is called once something begins that takes
    /// time.
    ///
    /// # Errors
    ///
    /// If there is no workspace, or it can't be opened.
    pub fn open(
        options: Options,
        surroundings: Surroundings,
        person: Arc<dyn Person>,
        listen: Box<dyn Fn() -> Interrupt + Send + Sync>,
    ) -> Result<Self, SessionError> {
        let start = match &options.workspace {
            Some(directory) => surroundings.current_dir.join(directory),
            None => surroundings.current_dir.clone(),
        };
        let root = Workspace::find(&start).ok_or_else(|| {
            SessionError::new(format!(
                "no workspace at or above {}",
                surroundings.display(&start)
            ))
            .with_hint("`jp init` makes the current directory one; `-w DIR` names another.")
        })?;
        let workspace = Workspace::open(&root, &surroundings.data, &surroundings.cache)?;
        Ok(Self {
            options,
            surroundings,
            person,
            workspace,
            clock: Timestamp::now,
            listen,
            interrupt: OnceLock::new(),
            servers: OnceLock::new(),
        })
    }

    /// Has the session take the time from `clock`.
    #[must_use]
    pub fn with_clock(self, clock: fn() -> Timestamp) -> Self {
        Self { clock, ..self }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Has an interrupt from now on end the work in order, and returns what knows of it.
    pub fn interrupt(&self) -> &Interrupt {
        self.interrupt.get_or_init(|| (self.listen)())
    }

    /// Returns the root of the workspace without links in it.
    pub(crate) fn canonical_root(&self) -> Result<PathBuf, SessionError> {
        let root = self.workspace.root();
        jp_attachment::canonical_path(root)
            .map_err(|error| SessionError::from_system(&format!("read {}", root.display()), error))
    }

    /// Returns whether anyone can be asked a question.
    pub fn can_ask(&self) -> bool {
        self.person.ask(Question::Presence).is_some()
    }

    /// Asks a question of yes or no, after `details` with an `intro`; `None` if nobody can be
    /// asked.
    pub(crate) fn confirm(
        &self,
        intro: Option<&str>,
        details: &[String],
        question: &str,
    ) -> Result<Option<bool>, SessionError> {
        let question = Question::Confirm {
            intro,
            details,
            question,
        };
        match self.person.ask(question) {
            Some(Answer::Yes) => Ok(Some(true)),
            Some(Answer::Interrupted) => Err(SessionError::interrupted()),
            Some(_) => Ok(Some(false)),
            None => Ok(None),
        }
    }

    /// Returns the MCP servers of a configuration; none of them is started by that.
    ///
    /// A conversation's history says nothing of them, so they are the same for all that a command does.
    pub fn servers(&self, config: &Resolved) -> Result<&Arc<Servers>, SessionError> {
        if self.servers.get().is_none() {
            let servers = Arc::new(Servers::from_config(Setup::new(self, config))?);
            _ = self.servers.set(servers);
        }
        Ok(self
            .servers
            .get()
            .unwrap_or_else(|| unreachable!("it was set above")))
    }

    /// Returns the store for shared conversations, or for this user's own.
    pub fn store(&self, is_local: bool) -> Store {
        if is_local {
            self.workspace.local_store()
        } else {
            self.workspace.store()
        }
    }

    /// Starts a conversation in one of the stores, with an id that neither has.
    pub fn start(
        &self,
        is_local: bool,
        title: Option<&str>,
        now: Timestamp,
    ) -> Result<Writer, SessionError> {
        Ok(self
            .store(is_local)
            .start(title, now, &[self.store(!is_local)])?)
    }

    /// Returns which conversation is the current one of which terminal.
    pub fn sessions(&self) -> Sessions {
        self.workspace
            .sessions(self.surroundings.terminal_session.as_deref())
    }

    /// Returns all conversations of both stores but those that are archived, newest first.
    pub fn conversations(&self) -> Result<Vec<Found>, SessionError> {
        self.found_by(Store::list)
    }

    /// Returns the archived conversations of both stores, newest first.
    pub fn archived_conversations(&self) -> Result<Vec<Found>, SessionError> {
        self.found_by(Store::list_archived)
    }

    fn found_by(
        &self,
        list: impl Fn(&Store) -> Result<Vec<Located>, StoreError>,
    ) -> Result<Vec<Found>, SessionError> {
        let mut found = Vec::new();
        for is_local in [false, true] {
            let store = self.store(is_local);
            let located = list(&store)?;
            found.extend(located.into_iter().map(|located| Found {
                store: store.clone(),
                located,
                is_local,
            }));
        }
        found.sort_by_key(|found| std::cmp::Reverse(found.located.id));
        Ok(found)
    }

    /// Returns the conversation that was named, or the current one.
    pub fn selected(&self, id: Option<&str>) -> Result<Found, SessionError> {
        match id {
            Some(id) => self.named(id),
            None => self.current()?.ok_or_else(|| {
                SessionError::new("there is no current conversation").with_hint(
                    "`jp query --new` starts one; `jp conversation ls` lists the others.",
                )
            }),
        }
    }

    /// Returns the current conversation: the one last used here, or else the newest of the workspace.
    pub fn current(&self) -> Result<Option<Found>, SessionError> {
        let conversations = self.conversations()?;
        self.place_of_current(&conversations)
            .map(|place| the_only(conversations, place))
            .transpose()
    }

    /// Returns the id of the current conversation.
    pub fn current_id(&self) -> Result<Option<ConversationId>, SessionError> {
        let conversations = self.conversations()?;
        Ok(self
            .place_of_current(&conversations)
            .map(|place| conversations[place].located.id))
    }

    fn place_of_current(&self, conversations: &[Found]) -> Option<usize> {
        let current = self.sessions().current();
        let last_used = conversations
            .iter()
            .position(|found| Some(found.located.id) == current);
        last_used.or_else(|| conversations.iter().position(|found| !found.is_local))
    }

    fn named(&self, id: &str) -> Result<Found, SessionError> {
        let hint = "`jp conversation ls` lists the conversations.";
        let id = id
            .parse::<ConversationId>()
            .map_err(|error| SessionError::usage(format!("{error}")).with_hint(hint))?;
        let is_named = |found: &Found| found.located.id == id;
        let mut conversations = self.conversations()?;
        if !conversations.iter().any(is_named) {
            conversations = self.archived_conversations()?;
        }
        match conversations.iter().position(is_named) {
            Some(place) => the_only(conversations, place),
            None => {
                Err(SessionError::new(format!("there is no conversation {id}")).with_hint(hint))
            }
        }
    }

    /// Reads a conversation and says what was amiss with it.
    pub fn read(&self, found: &Found) -> Result<Conversation, SessionError> {
        let conversation = found.store.read(&found.located)?;
        conversation
            .warnings
            .iter()
            .cloned()
            .for_each(|warning| self.person.tell(Notice::ConversationDamaged { warning }));
        Ok(conversation)
    }

    /// Remembers which tools the person switched on in a conversation.
    pub fn remember_tools<'n>(&self, id: ConversationId, names: impl Iterator<Item = &'n str>) {
        let texts: Vec<_> = names.map(|name| switched_on(name, id)).collect();
        self.remember_agreed(texts.iter().map(String::as_str));
    }

    /// Remembers what the person made or agreed to; says so where that can't be kept, as nothing counts then.
    pub fn remember_agreed<'t>(&self, texts: impl IntoIterator<Item = &'t str>) {
        let trust = self.workspace.trust();
        if let Err(error) = trust.add(texts) {
            let path = self.surroundings.display(trust.path());
            self.person.tell(Notice::ApprovalsNotSaved {
                path,
                error: error.to_string(),
            });
        }
    }

    /// Returns the tools that a conversation's history switches on, and whether the person did.
    pub fn tools_of_history(&self, conversation: &Conversation) -> BTreeMap<String, bool> {
        let trust = self.workspace.trust();
        let mut tools = BTreeMap::new();
        for event in conversation.stream.events() {
            let EventKind::ConfigDelta(delta) = &event.kind else {
                continue;
            };
            let said = delta
                .delta
                .get("conversation")
                .and_then(|said| said.get("tools")?.as_object());
            for (name, tool) in said.into_iter().flatten() {
                match tool.get("enable").and_then(Value::as_bool) {
                    Some(true) => {
                        let was_switched_on = trust.contains(&switched_on(name, conversation.id));
                        tools.insert(name.clone(), may_switch_on(was_switched_on));
                    }
                    Some(false) => _ = tools.remove(name),
                    None => {}
                }
            }
        }
        tools
    }
}

/// Returns what is remembered where the person switches a tool on in a conversation.
pub(crate) fn switched_on(tool: &str, id: ConversationId) -> String {
    format!("tool {tool} is on in conversation {id}")
}
