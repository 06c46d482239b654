//! The workspace a command works in, with its configuration and its conversations.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use jp_config::{Assignment, Layer, Layers, Resolved};
use jp_conversation::EventKind;
use jp_storage::{
    Conversation, ConversationId, Located, Sessions, Store, StoreError, Workspace, Writer,
};
use serde_json::{Map, Value, json};

use crate::{
    args::Global,
    environment::Environment,
    error::{Code, Failure, cause_after},
    interrupt::Interrupt,
    output::Output,
    servers::Servers,
};

/// What every command but `init` works with.
pub(crate) struct Context<'a> {
    pub(crate) global: &'a Global,
    pub(crate) environment: &'a Environment,
    pub(crate) output: &'a Output,
    pub(crate) workspace: Workspace,
    interrupt: OnceCell<Interrupt>,
    servers: OnceCell<Arc<Servers>>,
}

/// A conversation's place, and the store it is in.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) store: Store,
    pub(crate) located: Located,
    pub(crate) is_local: bool,
}

impl Found {
    /// Fails if the conversation is archived.
    pub(crate) fn refuse_archived(&self) -> Result<(), Failure> {
        let id = self.located.id;
        match self.located.is_archived() {
            true => Err(
                Failure::new(format!("conversation {id} is archived and read-only")).with_hint(
                    format!("`jp conversation fork {id}` continues a copy of it."),
                ),
            ),
            false => Ok(()),
        }
    }
}

/// Takes a conversation out of all, unless there is another of its id: it is not known which one is meant.
fn the_only(mut conversations: Vec<Found>, place: usize) -> Result<Found, Failure> {
    let found = conversations.swap_remove(place);
    let id = found.located.id;
    match conversations.iter().find(|other| other.located.id == id) {
        Some(other) => {
            let [one, two] = [&found, other].map(|found| found.located.directory.display());
            let hint = "rename or remove one of them; a copy or a merge may have made it.";
            Err(Failure::new(format!(
                "two conversations have the id {id}: {one} and {two}"
            ))
            .with_hint(hint))
        }
        None => Ok(found),
    }
}

impl<'a> Context<'a> {
    /// Finds and opens the workspace.
    pub(crate) fn open(
        global: &'a Global,
        environment: &'a Environment,
        output: &'a Output,
    ) -> Result<Self, Failure> {
        let start = match &global.workspace {
            Some(directory) => environment.current_dir.join(directory),
            None => environment.current_dir.clone(),
        };
        let root = Workspace::find(&start).ok_or_else(|| {
            Failure::new(format!(
                "no workspace at or above {}",
                environment.display(&start)
            ))
            .with_hint("`jp init` makes the current directory one; `-w DIR` names another.")
        })?;
        let workspace = Workspace::open(&root, &environment.data, &environment.cache)?;
        Ok(Self {
            global,
            environment,
            output,
            workspace,
            interrupt: OnceCell::new(),
            servers: OnceCell::new(),
        })
    }

    /// Returns the time.
    #[expect(
        clippy::unused_self,
        reason = "the clock is part of the context, and read nowhere else"
    )]
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Lets Ctrl-C from now on end what is under way in order.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        self.interrupt.get_or_init(Interrupt::listen)
    }

    /// Returns the MCP servers of a configuration; none of them is started by that.
    ///
    /// A conversation's history says nothing of them, so they are the same for all that a command does.
    pub(crate) fn servers(&self, config: &Resolved) -> Result<&Arc<Servers>, Failure> {
        if self.servers.get().is_none() {
            let servers = Arc::new(Servers::configured(self, config)?);
            _ = self.servers.set(servers);
        }
        Ok(self
            .servers
            .get()
            .unwrap_or_else(|| unreachable!("it was set above")))
    }

    /// Returns the store for shared conversations, or for this user's own.
    pub(crate) fn store(&self, is_local: bool) -> Store {
        if is_local {
            self.workspace.local_store()
        } else {
            self.workspace.store()
        }
    }

    /// Starts a conversation in one of the stores, with an id that neither has.
    pub(crate) fn start(
        &self,
        is_local: bool,
        title: Option<&str>,
        now: Timestamp,
    ) -> Result<Writer, Failure> {
        Ok(self
            .store(is_local)
            .start(title, now, &[self.store(!is_local)])?)
    }

    pub(crate) fn sessions(&self) -> Sessions {
        self.workspace.sessions(self.environment.session.as_deref())
    }

    /// Returns all conversations of both stores but those that are archived, newest first.
    pub(crate) fn conversations(&self) -> Result<Vec<Found>, Failure> {
        self.found_by(Store::list)
    }

    /// Returns the archived conversations of both stores, newest first.
    pub(crate) fn archived_conversations(&self) -> Result<Vec<Found>, Failure> {
        self.found_by(Store::list_archived)
    }

    fn found_by(
        &self,
        list: impl Fn(&Store) -> Result<Vec<Located>, StoreError>,
    ) -> Result<Vec<Found>, Failure> {
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
    pub(crate) fn selected(&self, id: Option<&str>) -> Result<Found, Failure> {
        match id {
            Some(id) => self.named(id),
            None => self.current()?.ok_or_else(|| {
                Failure::new("there is no current conversation").with_hint(
                    "`jp query --new` starts one; `jp conversation ls` lists what there is.",
                )
            }),
        }
    }

    /// Returns the current conversation: the one last used here, or else the newest of the workspace.
    pub(crate) fn current(&self) -> Result<Option<Found>, Failure> {
        let conversations = self.conversations()?;
        self.place_of_current(&conversations)
            .map(|place| the_only(conversations, place))
            .transpose()
    }

    /// Returns the id of the current conversation.
    pub(crate) fn current_id(&self) -> Result<Option<ConversationId>, Failure> {
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

    fn named(&self, id: &str) -> Result<Found, Failure> {
        let hint = "`jp conversation ls` lists what there is.";
        let id = id
            .parse::<ConversationId>()
            .map_err(|error| Failure::usage(format!("{error}")).with_hint(hint))?;
        let is_named = |found: &Found| found.located.id == id;
        let mut conversations = self.conversations()?;
        if !conversations.iter().any(is_named) {
            conversations = self.archived_conversations()?;
        }
        match conversations.iter().position(is_named) {
            Some(place) => the_only(conversations, place),
            None => Err(Failure::new(format!("there is no conversation {id}")).with_hint(hint)),
        }
    }

    /// Reads a conversation and says what was amiss with it.
    pub(crate) fn read(&self, found: &Found) -> Result<Conversation, Failure> {
        let conversation = found.store.read(&found.located)?;
        conversation
            .warnings
            .iter()
            .for_each(|warning| self.output.warn(warning));
        Ok(conversation)
    }

    /// Resolves the configuration, for a conversation or for a new one.
    ///
    /// `flags` are flags that set a key: their name, the key and the value.
    pub(crate) fn config(
        &self,
        conversation: Option<&Conversation>,
        flags: &[(&str, &str, &str)],
    ) -> Result<Resolved, Failure> {
        let mut layers = Layers::new();
        self.add_files(&mut layers)?;
        conversation.map_or(Ok(()), |conversation| {
            self.add_conversation(&mut layers, conversation)
        })?;
        layers.add_env(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))?;
        for argument in &self.global.cfg {
            self.add_argument(&mut layers, argument)?;
        }
        for (name, key, value) in flags {
            let assignment = Assignment::Set {
                key: key.parse()?,
                text: (*value).to_owned(),
            };
            layers.add_assignment(
                Layer::Flag {
                    name: (*name).to_owned(),
                },
                &assignment,
            )?;
        }
        layers.resolve().map_err(config_failure)
    }

    fn add_files(&self, layers: &mut Layers) -> Result<(), Failure> {
        let shown = |path: &PathBuf| PathBuf::from(self.environment.display(path));
        let workspace = self.workspace.config();
        let bytes = self
            .workspace
            .read_config()
            .map_err(|error| unread(&workspace, error))?;
        if let Some(bytes) = bytes {
            let text = String::from_utf8(bytes)
                .map_err(|error| unread(&workspace, io::Error::other(error)))?;
            layers.add_toml(
                Layer::Workspace {
                    path: shown(&workspace),
                },
                &text,
            )?;
        }
        if let Some(user) = self.environment.user_config()
            && let Some(text) = read_optional(&user)?
        {
            layers.add_toml(Layer::User { path: shown(&user) }, &text)?;
        }
        Ok(())
    }

    /// Adds what a conversation says: that a tool is on only where the person switched it on themself, here.
    fn add_conversation(
        &self,
        layers: &mut Layers,
        conversation: &Conversation,
    ) -> Result<(), Failure> {
        let trust = self.workspace.trust();
        let may_be_on = |tool: &str| trust.contains(&switched_on(tool, conversation.id));
        let mut aliases = Map::new();
        if let Some(Value::Object(base)) = &conversation.base_config {
            add_aliases(base, layers, &mut aliases);
            let own = with_alias(of_conversation(base, &may_be_on), &aliases);
            layers.add_json(Layer::Conversation, &Value::Object(own))?;
        }
        for event in conversation.stream.events() {
            if let EventKind::ConfigDelta(delta) = &event.kind {
                add_aliases(&delta.delta, layers, &mut aliases);
                let mut delta = with_alias(of_conversation(&delta.delta, &may_be_on), &aliases);
                if let Some(Value::Object(conversation)) = delta.get_mut("conversation") {
                    // The stream has its own account of what is attached.
                    conversation.shift_remove("attachments");
                }
                layers.add_json(Layer::Conversation, &Value::Object(delta))?;
            }
        }
        Ok(())
    }

    /// Remembers which tools the person switched on in a conversation.
    pub(crate) fn remember_tools<'n>(
        &self,
        id: ConversationId,
        names: impl Iterator<Item = &'n str>,
    ) {
        let texts: Vec<_> = names.map(|name| switched_on(name, id)).collect();
        self.remember_agreed(texts.iter().map(String::as_str));
    }

    /// Remembers what the person made or agreed to; says so where that can't be kept, as nothing counts then.
    pub(crate) fn remember_agreed<'t>(&self, texts: impl IntoIterator<Item = &'t str>) {
        let trust = self.workspace.trust();
        if let Err(error) = trust.add(texts) {
            let path = self.environment.display(trust.path());
            self.output.warn(&format!(
                "what you agreed to was not remembered in {path}: {error}"
            ));
            self.output.hint(
                "if that file is damaged, remove it: you are asked again about what it held.",
            );
        }
    }

    /// Returns the tools that a conversation's history switches on, and whether the person did.
    pub(crate) fn tools_of_history(&self, conversation: &Conversation) -> BTreeMap<String, bool> {
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
                        let is_own = trust.contains(&switched_on(name, conversation.id));
                        tools.insert(name.clone(), is_own);
                    }
                    Some(false) => _ = tools.remove(name),
                    None => {}
                }
            }
        }
        tools
    }

    fn add_argument(&self, layers: &mut Layers, argument: &str) -> Result<(), Failure> {
        let path = self.environment.current_dir.join(argument);
        let is_file = path.is_file();
        let usage = |error: jp_config::Error| Failure {
            code: Code::Usage,
            ..Failure::from(error)
        };
        if is_file {
            let text = fs::read_to_string(&path)
                .map_err(|error| Failure::new(format!("failed to read {argument}: {error}")))?;
            return Ok(layers.add_toml(
                Layer::File {
                    path: PathBuf::from(argument),
                },
                &text,
            )?);
        }
        match Assignment::parse(argument).map_err(usage)? {
            Assignment::File(path) => Err(Failure::usage(format!(
                "failed to load {}: there is no such file",
                path.display()
            ))
            .with_hint("`-c KEY=VALUE` sets a value, `-c FILE` loads a TOML file.")),
            assignment => layers
                .add_assignment(
                    Layer::Argument {
                        text: argument.to_owned(),
                    },
                    &assignment,
                )
                .map_err(usage),
        }
    }
}

/// A mistake on the command line is one of usage.
fn config_failure(error: jp_config::Error) -> Failure {
    let layer = match &error {
        jp_config::Error::Invalid { layer, .. } | jp_config::Error::UnknownKey { layer, .. } => {
            Some(layer)
        }
        _ => None,
    };
    let is_typed = matches!(layer, Some(Layer::Argument { .. } | Layer::Flag { .. }));
    let code = if is_typed { Code::Usage } else { Code::Failed };
    Failure {
        code,
        ..Failure::from(error)
    }
}

/// Keeps what a conversation may set: history can come from anywhere, so it says nothing of where
/// requests go, which keys go with them, how much is attached how safely and what tools may do: of those it
/// says no more than which are off, and which of those are on that `may_be_on`.
fn of_conversation(
    config: &Map<String, Value>,
    may_be_on: &dyn Fn(&str) -> bool,
) -> Map<String, Value> {
    let may_set = |key: &str| matches!(key, "assistant" | "conversation");
    let mut config: Map<String, Value> = config
        .iter()
        .filter(|(key, _)| may_set(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(Value::Object(conversation)) = config.get_mut("conversation") {
        conversation.shift_remove("attachment");
        conversation.shift_remove("read_only_paths");
        if let Some(Value::Object(tools)) = conversation.get_mut("tools") {
            tools.shift_remove("*");
            tools.iter_mut().for_each(|(name, tool)| {
                let enable = tool.get("enable").and_then(Value::as_bool);
                let enable = enable.filter(|is_on| !is_on || may_be_on(name));
                *tool = enable.map_or_else(|| json!({}), |enable| json!({"enable": enable}));
            });
        }
    }
    config
}

/// Takes the names that a conversation gives to models, as older versions of jp wrote them into it, but for those that
/// the person gives.
fn add_aliases(config: &Map<String, Value>, layers: &Layers, aliases: &mut Map<String, Value>) {
    let providers = config.get("providers");
    let said = ["/llm/aliases", "/aliases"].map(|pointer| providers?.pointer(pointer)?.as_object());
    let said = said
        .into_iter()
        .flatten()
        .flatten()
        .filter(|(name, _)| !layers.has_alias(name) && !name.contains('/'));
    aliases.extend(said.map(|(name, model)| (name.clone(), model.clone())));
}

/// Puts a model in the place of its name.
fn with_alias(mut config: Map<String, Value>, aliases: &Map<String, Value>) -> Map<String, Value> {
    let id = config
        .get_mut("assistant")
        .and_then(|assistant| assistant.pointer_mut("/model/id"));
    if let Some(id) = id
        && let Some(model) = id.as_str().and_then(|name| aliases.get(name))
    {
        *id = model.clone();
    }
    config
}

/// Returns what is remembered where the person switches a tool on in a conversation.
fn switched_on(tool: &str, id: ConversationId) -> String {
    format!("tool {tool} is on in conversation {id}")
}

fn read_optional(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unread(path, error)),
    }
}

/// Makes the error for a configuration file that can't be read.
fn unread(path: &Path, error: io::Error) -> Failure {
    let deed = format!("failed to read {}", path.display());
    let message = format!("{deed}: {}", cause_after(&deed, &error));
    Failure {
        message,
        ..Failure::from(error)
    }
}
