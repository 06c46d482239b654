//! The tools of a query: what the configuration says, and what the command line chose of it.

mod called;
mod declared;
mod parameters;
mod permission;
mod refreshing;
mod served;
mod served_schema;
mod settings;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    sync::Arc,
};

use crate::{
    attachments::declarations,
    error::SessionError,
    query::{Asked, request::QueryRequest},
    servers::secret_variables,
    session::Session,
    similar::find_similar,
    tools::{declared::Declared, permission::Settled, refreshing::Refresher, settings::Settings},
};
use jp_config::Resolved;
use jp_conversation::resolution;
use jp_mcp::Connection;
use jp_storage::Conversation;
use jp_turn::{Builtin, Files, Permission, Source, Surroundings, Tool, Toolbox};
use serde_json::{Map, Value, json};

pub(crate) use self::called::{EndedCall, calls};
pub use self::served::offered_names;

/// What `-T` without a name means, as in the configuration.
pub(crate) const ALL: &str = "*";

/// The tools that there are.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// Those that are on, in the order in which models are told of them.
    on: Vec<Tool>,
    /// Names of the others.
    off: Vec<String>,
    /// What the command line says of tools.
    flags: Flags,
    /// The MCP servers that tools are of.
    servers: BTreeMap<String, Arc<Connection>>,
    /// What the person was told of the servers' tools, each once.
    told: BTreeSet<String>,
    /// What the command line chose, for the conversation to keep to: `{"NAME": {"enable": true}}`.
    pub(crate) chosen: Map<String, Value>,
    /// Whether running a program again for its output asks.
    programs: Option<Permission>,
    /// What the person agrees to with the first call of a tool that the workspace lets do more than ask, by the tool's
    /// name.
    trust: HashMap<String, String>,
    /// The tools that ask because the workspace is not trusted to let them run.
    untrusted: BTreeSet<String>,
    /// The tools that would ask without `--yes`.
    raised: BTreeSet<String>,
}

/// The names that `--tool` and `--no-tool` give.
#[derive(Debug, Default)]
struct Flags {
    tool: Vec<String>,
    no_tool: Vec<String>,
}

/// Finds out which tools there are and which of them are on; fails where what is configured can't be offered.
pub(crate) fn choose(
    request: &QueryRequest,
    session: &Session,
    config: &Resolved,
    conversation: Option<&Conversation>,
) -> Result<Tools, SessionError> {
    let mut declared = declared::all(session, config)?;
    let names: Vec<String> = declared
        .iter()
        .map(|declared| declared.tool.name.clone())
        .collect();
    let mut served = served::all(request, session, config, names)?;
    declared.extend(std::mem::take(&mut served.tools));
    check_names(request, &declared, |name| {
        served::server_of(name, config).is_some_and(|server| served.lost.contains(server))
    })?;
    let flags = Flags {
        tool: request.tool.clone(),
        no_tool: request.no_tool.clone(),
    };
    let mut tools = Tools {
        servers: served.connections,
        told: served.told,
        flags,
        ..Tools::default()
    };
    for declared in declared {
        if let Some(enable) = tools.flags.chosen(&declared.tool.name, declared.is_on) {
            tools
                .chosen
                .insert(declared.tool.name.clone(), json!({"enable": enable}));
        }
        tools.settle(declared, session, config);
    }
    if let Some(conversation) = conversation {
        tell_of_history(&tools, session, conversation);
    }
    Ok(tools)
}

impl Tools {
    /// Puts a tool among those that are on, with its permission, or among the others.
    fn settle(
        &mut self,
        Declared { mut tool, is_on }: Declared,
        session: &Session,
        config: &Resolved,
    ) {
        if !self.flags.chosen(&tool.name, is_on).unwrap_or(is_on) {
            self.off.push(tool.name);
            return;
        }
        let Settled {
            agreement,
            is_untrusted,
            is_raised,
        } = permission::settle(&mut tool, session, config);
        if let Some(text) = agreement {
            warn_of_trust(session, &tool.name);
            self.trust.insert(tool.name.clone(), text);
        }
        for (is_so, tools) in [
            (is_untrusted, &mut self.untrusted),
            (is_raised, &mut self.raised),
        ] {
            if is_so {
                tools.insert(tool.name.clone())
            } else {
                tools.remove(&tool.name)
            };
        }
        if tool.source == Source::Builtin(Builtin::RefreshResource) {
            self.programs = Some(permission::of_programs(&tool, session, config));
        }
        self.on.push(tool);
    }

    /// Returns how many tools of MCP servers models are told of.
    pub(crate) fn served_that_may_run(&self) -> usize {
        self.on
            .iter()
            .filter(|tool| is_served(tool) && tool.may_run())
            .count()
    }

    /// Returns whether a tool is on explicitly, not by default.
    pub(crate) fn has_wanted(&self, config: &Resolved) -> bool {
        self.on.iter().any(|tool| match &tool.source {
            Source::Builtin(builtin) => {
                !builtin.is_reader()
                    || self.chosen_on().any(|name| name == tool.name)
                    || Settings::of(&tool.name, config).enable() == Some(true)
            }
            _ => true,
        })
    }

    /// Returns the names of the tools that the command line switches on.
    pub(crate) fn chosen_on(&self) -> impl Iterator<Item = &str> {
        let is_on = |choice: &Value| choice["enable"] == true;
        self.chosen
            .iter()
            .filter(move |(_, choice)| is_on(choice))
            .map(|(name, _)| name.as_str())
    }
}

/// Says which tools stay off though the history has them on: it may be somebody else's.
fn tell_of_history(tools: &Tools, session: &Session, conversation: &Conversation) {
    for (name, is_own) in session.tools_of_history(conversation) {
        if !is_own && tools.off.contains(&name) {
            session.person.status(&format!(
                "The history of this conversation has the tool `{name}` on; here it is off until you say `-t {name}`."
            ));
        }
    }
}

/// Puts the tools together with what they share.
pub(crate) fn toolbox(asked: &Asked<'_>) -> Result<Toolbox, SessionError> {
    let root = asked.session.workspace.root();
    let surroundings = Surroundings {
        root: root.to_owned(),
        conversation: asked.id.map(|id| id.to_string()),
        secret_variables: secret_variables(asked.session, &asked.config),
        executable: asked.session.surroundings.executable.clone(),
        place: Some(declarations::place(asked.session, &asked.config)?),
        handles: asked.id.map(|id| asked.session.workspace.handles(id)),
    };
    let files = Files::open(root, &read_only(asked, root))?;
    files.saw(&asked.stream);
    let (served, own): (Vec<_>, Vec<_>) = asked.tools.on.iter().cloned().partition(is_served);
    let mut toolbox = Toolbox::new(own, surroundings, files);
    toolbox.serve(served);
    toolbox.disabled.clone_from(&asked.tools.off);
    toolbox.servers.clone_from(&asked.tools.servers);
    offer_refreshing(asked, &mut toolbox)?;
    Ok(toolbox)
}

fn is_served(tool: &Tool) -> bool {
    matches!(tool.source, Source::Server(_))
}

/// Lists the tools of servers anew that say they have others now; returns those of all servers, where any did.
pub(crate) fn changed(asked: &mut Asked<'_>) -> Option<Vec<Tool>> {
    let servers = asked.tools.servers.iter();
    let others: Vec<_> = servers
        .filter(|(_, connection)| connection.has_other_tools())
        .collect();
    let (mut changed, mut new) = (Vec::new(), Vec::new());
    for relisted in served::again(&others, asked.session) {
        let server = relisted.server.clone();
        if let Some(added) = replace(relisted, asked) {
            changed.push(server);
            new.extend(added.into_iter().map(|name| format!("`{name}`")));
        }
    }
    if changed.is_empty() {
        return None;
    }
    let new = if new.is_empty() {
        String::new()
    } else {
        format!("; new: {}", new.join(", "))
    };
    asked.session.person.status(&format!(
        "The tools of {} have changed{new}.",
        changed.join(", ")
    ));
    Some(
        asked
            .tools
            .on
            .iter()
            .filter(|tool| is_served(tool))
            .cloned()
            .collect(),
    )
}

/// Has the tools of a server be those that it lists now; returns which are new, or nothing where all stays as it was.
fn replace(relisted: served::Relisted, asked: &mut Asked<'_>) -> Option<Vec<String>> {
    let server = relisted.server.clone();
    let is_its = |tool: &Tool| matches!(&tool.source, Source::Server(of) if of.server == server);
    let (before, kept): (Vec<_>, Vec<_>) = asked.tools.on.iter().cloned().partition(is_its);
    let taken = kept.iter().map(|tool| tool.name.clone()).collect();
    let listed = relisted.tools(taken, asked)?;
    asked.tools.on = kept;
    for declared in listed {
        asked.tools.settle(declared, asked.session, &asked.config);
    }
    let now: Vec<_> = asked.tools.on.iter().filter(|tool| is_its(tool)).collect();
    if now.iter().copied().eq(&before) {
        return None;
    }
    let new = now
        .into_iter()
        .filter(|tool| !before.iter().any(|before| before.name == tool.name));
    Some(new.map(|tool| tool.name.clone()).collect())
}

/// Gives `refresh_resource` what it works on; without anything declared it is not offered.
///
/// Once it was offered it stays: another list of tools would cost the whole prompt cache.
fn offer_refreshing(asked: &Asked<'_>, toolbox: &mut Toolbox) -> Result<(), SessionError> {
    let name = Builtin::RefreshResource.name();
    let Some(position) = toolbox.tools.iter().position(|tool| tool.name == name) else {
        return Ok(());
    };
    let conversation = &asked.config.config.conversation;
    let is_chosen = asked.tools.chosen_on().any(|chosen| chosen == name)
        || conversation
            .tools
            .get(name)
            .is_some_and(|settings| settings.enable == Some(true));
    if is_chosen || !conversation.attachments.is_empty() || resolution::has_attached(&asked.stream)
    {
        toolbox.refresh = Some(Box::new(Refresher::new(asked, &toolbox.tools[position])?));
    } else {
        toolbox.disabled.push(toolbox.tools.remove(position).name);
    }
    Ok(())
}

/// Returns what no tool writes to: what is configured, and what jp keeps of its own where that is in the workspace.
fn read_only(asked: &Asked<'_>, root: &Path) -> Vec<String> {
    let environment = &asked.session.surroundings;
    let config = environment.config.as_ref().map(|config| config.join("jp"));
    let own = config
        .into_iter()
        .chain([environment.data.clone(), environment.cache.clone()]);
    let inside =
        own.filter_map(|path| Some(format!("/{}/", path.strip_prefix(root).ok()?.display())));
    asked
        .config
        .config
        .conversation
        .read_only_paths
        .iter()
        .cloned()
        .chain(inside)
        .collect()
}

/// Returns what the person agrees to for good if they let this tool run: what the workspace lets it do, in words.
pub(crate) fn agreement<'a>(asked: &'a Asked<'_>, tool: &str) -> Option<&'a str> {
    asked.tools.trust.get(tool).map(String::as_str)
}

/// Remembers that the person agrees to what the workspace lets a tool do.
pub(crate) fn agreed(asked: &Asked<'_>, tool: &str) {
    asked.session.remember_agreed(agreement(asked, tool));
}

/// Says that the workspace's word does not count, where nobody is there to give theirs.
fn warn_of_trust(session: &Session, name: &str) {
    if !session.can_ask() {
        session.person.warn(&format!(
            "the tool `{name}` asks, as the workspace has a part in what it runs, and a workspace can come from anywhere"
        ));
        session.person.hint(&format!(
            "`--yes` takes its word for this command; yours counts always: -c conversation.tools.{name}.run=unattended"
        ));
    }
}

impl Flags {
    /// Returns what the flags say of a tool, if they say anything.
    fn chosen(&self, name: &str, is_on: bool) -> Option<bool> {
        let has = |names: &[String], name: &str| names.iter().any(|named| named == name);
        if has(&self.tool, name) {
            return Some(true);
        }
        let is_off = has(&self.no_tool, name) || (is_on && has(&self.no_tool, ALL));
        is_off.then_some(false)
    }
}

/// Checks that the flags name tools that there are, and each once; one that went with its server is off already.
fn check_names(
    request: &QueryRequest,
    declared: &[Declared],
    is_lost: impl Fn(&str) -> bool,
) -> Result<(), SessionError> {
    let off = request
        .no_tool
        .iter()
        .filter(|name| *name != ALL && !is_lost(name));
    for name in request.tool.iter().chain(off) {
        if !declared.iter().any(|declared| declared.tool.name == *name) {
            return Err(unknown(name, declared));
        }
    }
    match request
        .tool
        .iter()
        .find(|name| request.no_tool.contains(name))
    {
        Some(name) => Err(SessionError::usage(format!(
            "--tool and --no-tool both name `{name}`"
        ))),
        None => Ok(()),
    }
}

fn unknown(name: &str, declared: &[Declared]) -> SessionError {
    let names: Vec<_> = declared
        .iter()
        .map(|declared| declared.tool.name.as_str())
        .collect();
    let failure = SessionError::usage(format!("there is no tool `{name}`"));
    let failure = match find_similar(name, &names) {
        Some(known) => failure.with_hint(format!("did you mean `{known}`?")),
        None => failure,
    };
    failure.with_hint(format!("there are: {}.", names.join(", ")))
}
