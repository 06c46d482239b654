//! The tools of a query, from the configuration and the command line.

pub(crate) mod call_outcome;
mod definitions;
mod parameters;
mod permission;
mod refresher;
mod server_tool_schema;
mod server_tools;
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
    similar::hints_for_unknown,
    tools::{
        call_outcome::Circumstances,
        definitions::DefinedTool,
        permission::PermissionReasons,
        settings::{ALL, Settings},
    },
};
use jp_config::Resolved;
use jp_mcp::Connection;
use jp_storage::Conversation;
use jp_turn::{Builtin, Permission, Source, Tool};
use serde_json::{Map, Value, json};

pub use self::server_tools::offered_names;

/// The tools of a query.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// The tools that are on, in the order in which models receive them.
    pub(crate) on: Vec<Tool>,
    /// The names of the other tools.
    pub(crate) off: Vec<String>,
    /// The flags for tools.
    flags: Flags,
    /// The MCP servers of the tools.
    pub(crate) servers: BTreeMap<String, Arc<Connection>>,
    /// The notices about the servers' tools that the user has seen, so that none appears twice.
    pub(crate) notices: Vec<Notice>,
    /// The flags' choices, which the conversation stores: `{"NAME": {"enable": true}}`.
    pub(crate) chosen: Map<String, Value>,
    /// The permission of `refresh_resource` to run a program again.
    pub(crate) programs: Option<Permission>,
    /// By the name of the tool, the text of the approval that the user can give with its first call.
    approvals: HashMap<String, String>,
    /// The tools that ask because such an approval is missing.
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

/// Defines the tools and decides which of them are on. It fails if the configuration of a tool is invalid.
pub(crate) fn choose(
    request: &QueryRequest,
    setup: Setup<'_>,
    conversation: Option<&Conversation>,
) -> Result<Tools, SessionError> {
    let Setup { session, config } = setup;
    let mut defined = definitions::define_tools(setup)?;
    let names = defined
        .iter()
        .map(|defined| defined.tool.name.clone())
        .collect();
    // The tools of servers come last, so that they can't take the name of another tool.
    let served = server_tools::list_server_tools(request, setup, names)?;
    defined.extend(served.tools);
    // A misspelled name fails before jp asks for any approval.
    check_names(request, &defined, |name| {
        server_tools::server_of(name, config).is_some_and(|server| served.lost.contains(server))
    })?;
    let mut tools = Tools {
        servers: served.connections,
        notices: served.notices,
        flags: Flags {
            tool: request.tool.clone(),
            no_tool: request.no_tool.clone(),
        },
        ..Tools::default()
    };
    for defined in defined {
        if let Some(enable) = tools.flags.choice(&defined.tool.name, defined.is_on) {
            tools
                .chosen
                .insert(defined.tool.name.clone(), json!({"enable": enable}));
        }
        tools.settle(defined, setup);
    }
    if let Some(conversation) = conversation {
        tell_of_history(&tools, session, conversation);
    }
    Ok(tools)
}

impl Tools {
    /// Adds a tool to those that are on, with its permission, or to the others.
    fn settle(&mut self, DefinedTool { mut tool, is_on }: DefinedTool, setup: Setup<'_>) {
        let session = setup.session;
        if !self.flags.choice(&tool.name, is_on).unwrap_or(is_on) {
            self.off.push(tool.name);
            return;
        }
        let PermissionReasons {
            approval,
            is_untrusted,
            is_raised,
        } = permission::settle(&mut tool, setup);
        if let Some(text) = approval {
            warn_without_terminal(session, &tool.name);
            self.approvals.insert(tool.name.clone(), text);
        }
        // A server may list a tool again, so earlier reasons go.
        for (applies, tools) in [
            (is_untrusted, &mut self.untrusted),
            (is_raised, &mut self.raised),
        ] {
            if applies {
                tools.insert(tool.name.clone())
            } else {
                tools.remove(&tool.name)
            };
        }
        if tool.source == Source::Builtin(Builtin::RefreshResource) {
            self.programs = Some(permission::program_permission(&tool, setup));
        }
        self.on.push(tool);
    }

    /// Returns the number of tools of MCP servers that models receive.
    pub(crate) fn count_server_tools(&self) -> usize {
        self.on
            .iter()
            .filter(|tool| is_served(tool) && tool.may_run())
            .count()
    }

    /// Returns whether a tool is on that would be off by default.
    pub(crate) fn has_explicit(&self, config: &Resolved) -> bool {
        self.on.iter().any(|tool| match &tool.source {
            Source::Builtin(builtin) => {
                !builtin.is_reader()
                    || self.chosen_on().any(|name| name == tool.name)
                    || Settings::new(&tool.name, config).enable() == Some(true)
            }
            _ => true,
        })
    }

    /// Returns the text of the approval that the user can give with a call of a tool: what the workspace
    /// lets it do.
    pub(crate) fn approvable(&self, tool: &str) -> Option<&str> {
        self.approvals.get(tool).map(String::as_str)
    }

    /// Returns how the command line and the workspace affect the permission of a tool.
    pub(crate) fn circumstances(&self, tool: &str, is_yes: bool) -> Circumstances {
        Circumstances {
            is_yes,
            is_raised: self.raised.contains(tool),
            is_untrusted: self.untrusted.contains(tool),
        }
    }

    /// Returns the names of the tools that the command line switches on.
    pub(crate) fn chosen_on(&self) -> impl Iterator<Item = &str> {
        self.chosen
            .iter()
            .filter(|(_, choice)| choice["enable"] == true)
            .map(|(name, _)| name.as_str())
    }
}

/// Tells the user which tools stay off though the history has them on, because it may be a stranger's.
fn tell_of_history(tools: &Tools, session: &Session, conversation: &Conversation) {
    for (name, is_own) in session.tools_of_history(conversation) {
        if !is_own && tools.off.contains(&name) {
            session.person.tell(Notice::ToolOffByHistory { tool: name });
        }
    }
}

/// Warns that a tool will be refused if no one can be asked for the approval.
fn warn_without_terminal(session: &Session, name: &str) {
    if !session.can_ask() {
        session.person.tell(Notice::ToolNeedsApproval {
            tool: name.to_owned(),
        });
    }
}

impl Flags {
    /// Returns whether the flags switch a tool on or off, if they do either. `is_on` is its default.
    fn choice(&self, name: &str, is_on: bool) -> Option<bool> {
        if contains(&self.tool, name) {
            return Some(true);
        }
        // `-T` without a name leaves tools alone that are off anyway, so that nothing is stored for them.
        let is_off = contains(&self.no_tool, name) || (is_on && contains(&self.no_tool, ALL));
        is_off.then_some(false)
    }
}

fn contains(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

/// Checks that the flags name known tools, and none in both. `is_lost` tells whether a tool's server failed, because
/// such a tool is off already.
fn check_names(
    request: &QueryRequest,
    defined: &[DefinedTool],
    is_lost: impl Fn(&str) -> bool,
) -> Result<(), SessionError> {
    let off = request
        .no_tool
        .iter()
        // A tool whose server failed can be switched off, but not on.
        .filter(|name| *name != ALL && !is_lost(name));
    for name in request.tool.iter().chain(off) {
        if !defined.iter().any(|defined| defined.tool.name == *name) {
            return Err(unknown_tool_error(name, defined));
        }
    }
    let mut both = request.tool.iter();
    match both.find(|name| request.no_tool.contains(name)) {
        Some(name) => Err(SessionError::usage(format!(
            "--tool and --no-tool both name `{name}`"
        ))),
        None => Ok(()),
    }
}

fn unknown_tool_error(name: &str, defined: &[DefinedTool]) -> SessionError {
    let names: Vec<_> = defined
        .iter()
        .map(|defined| defined.tool.name.as_str())
        .collect();
    SessionError {
        hints: hints_for_unknown(name, &names, "tools"),
        ..SessionError::usage(format!("there is no tool `{name}`"))
    }
}

/// Returns whether a tool is of an MCP server.
pub(crate) fn is_served(tool: &Tool) -> bool {
    matches!(tool.source, Source::Server(_))
}
