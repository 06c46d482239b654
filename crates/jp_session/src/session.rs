//! A session: the workspace, its conversations, the user and the clock of one command.

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

/// Options of the user for the whole command.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The directory to look for the workspace in. The default is the current directory.
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
    /// Show progress.
    pub shows_progress: bool,
}

/// The environment of a command, opened once.
///
/// Stores and MCP servers are opened on first use, so a command that needs none stays fast.
pub struct Session {
    /// The options of the command.
    pub options: Options,
    /// Directories and devices.
    pub surroundings: Surroundings,
    /// The front end that asks and informs the user.
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
    /// The configuration, with the origin of each value.
    pub config: &'s Resolved,
}

impl<'s> Setup<'s> {
    /// Pairs a session with a configuration.
    pub fn new(session: &'s Session, config: &'s Resolved) -> Self {
        Self { session, config }
    }
}

/// A conversation that was found, with its store.
#[derive(Debug, Clone)]
pub struct Found {
    /// The store.
    pub store: Store,
    /// The place.
    pub located: Located,
    /// True if it is kept out of the workspace.
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

/// Takes a conversation out of all. Fails if another one has the same id, because either may be meant.
fn take_unique(mut conversations: Vec<Found>, place: usize) -> Result<Found, SessionError> {
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
    /// `listen` starts to listen for interrupts. The session calls it once, before the first work that
    /// takes time.
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

    /// Replaces the clock, for example in tests.
    #[must_use]
    pub fn with_clock(self, clock: fn() -> Timestamp) -> Self {
        Self { clock, ..self }
    }

    /// Returns the current time of the clock.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the interrupt of the command. The first call starts to listen for it.
    pub fn interrupt(&self) -> &Interrupt {
        self.interrupt.get_or_init(|| (self.listen)())
    }

    /// Returns the root of the workspace, with symbolic links resolved.
    pub(crate) fn canonical_root(&self) -> Result<PathBuf, SessionError> {
        let root = self.workspace.root();
        jp_attachment::canonical_path(root)
            .map_err(|error| SessionError::from_system(&format!("read {}", root.display()), error))
    }

    /// Returns whether anyone can be asked a question.
    pub fn can_ask(&self) -> bool {
        self.person.ask(Question::Presence).is_some()
    }

    /// Asks a question of yes or no, after `intro` and `details`. Returns `None` if no one can be
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

    /// Returns the configured MCP servers, and starts none of them.
    ///
    /// The first configuration decides. Every later one has the same servers, because a
    /// conversation's history must not set any.
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

    /// Returns the current conversation of each terminal.
    pub fn sessions(&self) -> Sessions {
        self.workspace
            .sessions(self.surroundings.terminal_session.as_deref())
    }

    /// Returns the conversations of both stores that are not archived, newest first.
    pub fn conversations(&self) -> Result<Vec<Found>, SessionError> {
        self.list_both(Store::list)
    }

    /// Returns the archived conversations of both stores, newest first.
    pub fn archived_conversations(&self) -> Result<Vec<Found>, SessionError> {
        self.list_both(Store::list_archived)
    }

    /// Lists both stores, newest first.
    fn list_both(
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

    /// Returns the conversation with this id, or the current one.
    pub fn select(&self, id: Option<&str>) -> Result<Found, SessionError> {
        match id {
            Some(id) => self.find_named(id),
            None => self.current()?.ok_or_else(|| {
                SessionError::new("there is no current conversation").with_hint(
                    "`jp query --new` starts one; `jp conversation ls` lists the others.",
                )
            }),
        }
    }

    /// Returns the current conversation: the one that this terminal used last, or else the newest one
    /// of the workspace.
    pub fn current(&self) -> Result<Option<Found>, SessionError> {
        let conversations = self.conversations()?;
        self.current_position(&conversations)
            .map(|place| take_unique(conversations, place))
            .transpose()
    }

    /// Returns the id of the current conversation.
    pub fn current_id(&self) -> Result<Option<ConversationId>, SessionError> {
        let conversations = self.conversations()?;
        Ok(self
            .current_position(&conversations)
            .map(|place| conversations[place].located.id))
    }

    /// Returns the index of the current conversation.
    fn current_position(&self, conversations: &[Found]) -> Option<usize> {
        let current = self.sessions().current();
        let last_used = conversations
            .iter()
            .position(|found| Some(found.located.id) == current);
        // Never a local one: jp continues those only where the user used them last.
        last_used.or_else(|| conversations.iter().position(|found| !found.is_local))
    }

    /// Returns the conversation with this id, archived or not.
    fn find_named(&self, id: &str) -> Result<Found, SessionError> {
        let hint = "`jp conversation ls` lists the conversations.";
        let id = id
            .parse::<ConversationId>()
            .map_err(|error| SessionError::usage(format!("{error}")).with_hint(hint))?;
        // Archived conversations come second: their list is read only if it is needed.
        for list in [Self::conversations, Self::archived_conversations] {
            let conversations = list(self)?;
            let position = conversations
                .iter()
                .position(|found| found.located.id == id);
            if let Some(position) = position {
                return take_unique(conversations, position);
            }
        }
        Err(SessionError::new(format!("there is no conversation {id}")).with_hint(hint))
    }

    /// Reads a conversation, and warns of damaged files.
    pub fn read(&self, found: &Found) -> Result<Conversation, SessionError> {
        let conversation = found.store.read(&found.located)?;
        conversation
            .warnings
            .iter()
            .cloned()
            .for_each(|warning| self.person.tell(Notice::ConversationDamaged { warning }));
        Ok(conversation)
    }

    /// Remembers the tools that the user enabled in a conversation.
    pub fn remember_tools<'n>(&self, id: ConversationId, names: impl Iterator<Item = &'n str>) {
        let texts: Vec<_> = names.map(|name| tool_approval(name, id)).collect();
        self.remember_approvals(texts.iter().map(String::as_str));
    }

    /// Remembers approvals of the user. Warns if they can't be stored: jp then asks again next time.
    pub fn remember_approvals<'t>(&self, texts: impl IntoIterator<Item = &'t str>) {
        let trust = self.workspace.trust();
        if let Err(error) = trust.add(texts) {
            let path = self.surroundings.display(trust.path());
            self.person.tell(Notice::ApprovalsNotSaved {
                path,
                error: error.to_string(),
            });
        }
    }

    /// Returns the tools that a conversation's history enables, each with whether the user enabled it.
    pub fn tools_of_history(&self, conversation: &Conversation) -> BTreeMap<String, bool> {
        let trust = self.workspace.trust();
        let mut tools = BTreeMap::new();
        for event in conversation.stream.events() {
            let EventKind::ConfigDelta(delta) = &event.kind else {
                continue;
            };
            let changed = delta
                .delta
                .get("conversation")
                .and_then(|conversation| conversation.get("tools")?.as_object());
            for (name, tool) in changed.into_iter().flatten() {
                match tool.get("enable").and_then(Value::as_bool) {
                    Some(true) => {
                        let was_switched_on = trust.contains(&tool_approval(name, conversation.id));
                        tools.insert(name.clone(), may_switch_on(was_switched_on));
                    }
                    // A later event may disable a tool again.
                    Some(false) => _ = tools.remove(name),
                    None => {}
                }
            }
        }
        tools
    }
}

/// Returns the text that jp remembers if the user enables a tool in a conversation. It is stored, so it must not change.
pub(crate) fn tool_approval(tool: &str, id: ConversationId) -> String {
    format!("tool {tool} is on in conversation {id}")
}
