//! The tools of a query: what the configuration says, and what the command line chose of it.

pub(crate) mod called;
mod declared;
mod parameters;
mod permission;
mod refreshing;
mod served;
mod served_schema;
mod settings;
pub(crate) mod toolbox;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    error::SessionError,
    notice::Notice,
    query::request::QueryRequest,
    session::{Session, Setup},
    similar::find_similar,
    tools::{
        called::Circumstances,
        declared::Declared,
        permission::Settled,
        settings::{ALL, Settings},
    },
};
use jp_config::Resolved;
use jp_mcp::Connection;
use jp_storage::Conversation;
use jp_turn::{Builtin, Permission, Source, Tool};
use serde_json::{Map, Value, json};

pub use self::served::offered_names;

/// The tools that there are.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// Those that are on, in the order in which models are told of them.
    pub(crate) on: Vec<Tool>,
    /// Names of the others.
    pub(crate) off: Vec<String>,
    /// What the command line says of tools.
    flags: Flags,
    /// The MCP servers that tools are of.
    pub(crate) servers: BTreeMap<String, Arc<Connection>>,
    /// What the person was told of the servers' tools, each once.
    pub(crate) told: Vec<Notice>,
    /// What the command line chose, for the conversation to keep to: `{"NAME": {"enable": true}}`.
    pub(crate) chosen: Map<String, Value>,
    /// Whether running a program again for its output asks.
    pub(crate) programs: Option<Permission>,
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
    setup: Setup<'_>,
    conversation: Option<&Conversation>,
) -> Result<Tools, SessionError> {
    let Setup { session, config } = setup;
    let mut declared = declared::all(setup)?;
    let names: Vec<String> = declared
        .iter()
        .map(|declared| declared.tool.name.clone())
        .collect();
    let mut served = served::all(request, setup, names)?;
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
        tools.settle(declared, setup);
    }
    if let Some(conversation) = conversation {
        tell_of_history(&tools, session, conversation);
    }
    Ok(tools)
}

impl Tools {
    /// Puts a tool among those that are on, with its permission, or among the others.
    fn settle(&mut self, Declared { mut tool, is_on }: Declared, setup: Setup<'_>) {
        let session = setup.session;
        if !self.flags.chosen(&tool.name, is_on).unwrap_or(is_on) {
            self.off.push(tool.name);
            return;
        }
        let Settled {
            agreement,
            is_untrusted,
            is_raised,
        } = permission::settle(&mut tool, setup);
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
            self.programs = Some(permission::of_programs(&tool, setup));
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

    /// Returns what the user may approve for good with a call of a tool: what the workspace lets
    /// it do, in words.
    pub(crate) fn approvable(&self, tool: &str) -> Option<&str> {
        self.trust.get(tool).map(String::as_str)
    }

    /// Returns what the command line and the workspace have to do with a tool's permission.
    pub(crate) fn circumstances(&self, tool: &str, is_yes: bool) -> Circumstances {
        Circumstances {
            is_yes,
            is_raised: self.raised.contains(tool),
            is_untrusted: self.untrusted.contains(tool),
        }
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
            session.person.tell(Notice::ToolOffByHistory { tool: name });
        }
    }
}

/// Says that the workspace's word does not count, where nobody is there to give theirs.
fn warn_of_trust(session: &Session, name: &str) {
    if !session.can_ask() {
        session.person.tell(Notice::ToolNeedsApproval {
            tool: name.to_owned(),
        });
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
    failure.with_hint(format!("the tools are: {}.", names.join(", ")))
}

pub(crate) fn is_served(tool: &Tool) -> bool {
    matches!(tool.source, Source::Server(_))
}
