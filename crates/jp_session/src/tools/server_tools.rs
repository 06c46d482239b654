//! The tools of MCP servers. jp offers each as `SERVER_TOOL`, or under the name that the configuration gives it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    error::SessionError,
    notice::{Notice, UncheckedTool},
    query::request::QueryRequest,
    servers::{Refusal, Servers, advice, progress},
    session::{Session, Setup},
    tools::{
        definitions::{
            DefinedTool, answerers, apply_limits, join_description, list_specific_fields,
        },
        server_tool_schema::Parameters,
        settings::{ALL, Settings},
    },
};
use jp_config::{Resolved, ToolSettings};
use jp_mcp::{Caller, Connection, Listed, ServerError, ToolInfo};
use jp_resource::Checksum;
use jp_turn::{ServerTool, Source, Tool};

/// Limit for a server's description of a tool, in characters. Longer ones cost tokens in every request.
const MAX_DESCRIPTION: usize = 10_000;
/// Limit for the name of a tool, in bytes, as the providers have it.
pub(crate) const MAX_NAME: usize = 64;
/// Number of tools of one server above which jp suggests to switch some off.
const MANY_TOOLS: usize = 100;
/// Limit for the notices about one server, so that a broken one doesn't fill the terminal.
const MAX_NOTICES: usize = 5;

/// The tools of the servers that a query needs, with their connections.
#[derive(Default)]
pub(crate) struct ServerTools {
    pub(crate) tools: Vec<DefinedTool>,
    pub(crate) connections: BTreeMap<String, Arc<Connection>>,
    /// The servers that failed.
    pub(crate) lost: BTreeSet<String>,
    /// The notices that the user has seen, so that none appears twice.
    pub(crate) notices: Vec<Notice>,
    /// Names that other tools have.
    taken: Vec<String>,
}

/// The tool that a `source` of the configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerToolName<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
}

impl<'a> ServerToolName<'a> {
    /// Parses a source, `mcp.SERVER` or `mcp.SERVER.TOOL`. The first form names the tool that is called as the entry is.
    pub(crate) fn parse(source: &'a str, entry: &'a str) -> Option<Self> {
        let rest = source.strip_prefix("mcp.")?;
        let (server, tool) = rest.split_once('.').unwrap_or((rest, entry));
        (!server.is_empty() && !tool.is_empty()).then_some(Self { server, tool })
    }

    /// Parses the source of an entry, if it has one.
    fn of_entry(entry: &'a str, settings: &'a ToolSettings) -> Option<Self> {
        Self::parse(settings.source.as_deref()?, entry)
    }
}

/// Returns whether an entry is about the tool of a server whose name it begins with, because it has no other source.
pub(crate) fn is_about_server_tool(name: &str, settings: &ToolSettings, config: &Resolved) -> bool {
    settings.source.is_none()
        && settings.command.is_none()
        && server_by_name(name, config).is_some()
}

/// Returns the server that may offer a tool by this name, `SERVER_TOOL`, if the configuration doesn't give it to another.
///
/// If the names of several servers fit, as with `git` and `git_hub`, only the longest counts. So each name belongs to one
/// server, and the settings of a tool never apply to another server's tool.
fn server_by_name<'c>(name: &str, config: &'c Resolved) -> Option<&'c str> {
    server_names(config)
        .filter(|server| {
            name.strip_prefix(server)
                .is_some_and(|rest| rest.starts_with('_'))
        })
        .max_by_key(|server| server.len())
}

/// Returns the server of a tool: the one that the configuration names, or else the one that the name begins with.
pub(crate) fn server_of<'c>(name: &str, config: &'c Resolved) -> Option<&'c str> {
    let entry = config.config.conversation.tools.get(name);
    match entry.and_then(|own| own.source.as_deref()) {
        Some(source) => {
            let named = ServerToolName::parse(source, name)?;
            server_names(config).find(|server| *server == named.server)
        }
        None => server_by_name(name, config),
    }
}

fn server_names(config: &Resolved) -> impl Iterator<Item = &str> {
    config.config.providers.mcp.keys().map(String::as_str)
}

/// Connects to the servers whose tools a query needs, and lists the tools.
///
/// `taken` has the names of the other tools. If an optional server fails, the query continues without its tools.
pub(crate) fn list_server_tools(
    request: &QueryRequest,
    setup: Setup<'_>,
    taken: Vec<String>,
) -> Result<ServerTools, SessionError> {
    let Setup { session, config } = setup;
    let needed: Vec<&str> = server_names(config)
        .filter(|name| is_needed(name, request, config))
        .collect();
    let mut tools = ServerTools {
        taken,
        ..ServerTools::default()
    };
    if needed.is_empty() {
        return Ok(tools);
    }
    let servers = session.servers(config)?;
    let answers = servers.ask(session, &needed, "Starting", |connection, caller| {
        Ok((Arc::clone(connection), list(connection, caller)?))
    })?;
    for (name, answer) in answers {
        match answer {
            Ok((connection, listed)) => {
                // From here on, the server's `list_changed` notifications count (`toolbox::list_again`).
                connection.watch_lists();
                tools.add_server(&name, listed, setup)?;
                tools.connections.insert(name, connection);
            }
            Err(refusal) => {
                if let Some(hint) = hint_to_continue(&name, request, servers, config) {
                    return Err(advice::failure(refusal).with_hint(hint));
                }
                // The prompt for the approval has already told the user.
                if !matches!(refusal, Refusal::NotApproved { .. }) {
                    advice::warn(&*session.person, refusal);
                }
                tools.lost.insert(name);
            }
        }
    }
    Ok(tools)
}

/// Lists the tools of a server. A list that was cut off is an error, because jp can't know what it lacks.
fn list(connection: &Connection, caller: &dyn Caller) -> Result<Listed<ToolInfo>, ServerError> {
    let listed = connection.tools(caller)?;
    listed.cut.clone().map_or(Ok(listed), Err)
}

/// A new list of a server's tools.
pub(crate) struct RelistedTools {
    pub(crate) server: String,
    listed: Result<Listed<ToolInfo>, ServerError>,
}

/// Lists the tools of servers again, all at once.
pub(crate) fn relist(
    servers: &[(&String, &Arc<Connection>)],
    session: &Session,
) -> Vec<RelistedTools> {
    if servers.is_empty() {
        return Vec::new();
    }
    let connections: BTreeMap<&str, _> = servers
        .iter()
        .map(|(name, connection)| (name.as_str(), *connection))
        .collect();
    let names: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
    let what = format!("Listing the tools of {}", names.join(", "));
    progress::with_each_server(session, &names, &what, |server, caller| RelistedTools {
        server: server.to_owned(),
        // `names` has the keys of `connections`.
        listed: list(connections[server], caller),
    })
}

impl RelistedTools {
    /// Defines the tools; `None` if that fails, so that the earlier tools stay.
    ///
    /// `taken` has the names of the other tools, and `notices` those that the user has seen.
    pub(crate) fn define(
        self,
        taken: Vec<String>,
        notices: &mut Vec<Notice>,
        setup: Setup<'_>,
    ) -> Option<Vec<DefinedTool>> {
        let mut tools = ServerTools {
            taken,
            notices: std::mem::take(notices),
            ..ServerTools::default()
        };
        let added = self
            .listed
            .map_err(advice::failure)
            .and_then(|listed| tools.add_server(&self.server, listed, setup));
        if let Err(failure) = &added {
            let reason = failure.message.clone();
            tools.tell(Notice::ServerToolsKept { reason }, setup.session);
        }
        *notices = tools.notices;
        added.is_ok().then_some(tools.tools)
    }
}

/// Returns whether a query may offer a tool of a server.
fn is_needed(server: &str, request: &QueryRequest, config: &Resolved) -> bool {
    let tools = &config.config.conversation.tools;
    // Flags count more than the configuration, and entries of single tools more than the entry of all.
    if has_tool_of(server, &request.tool, config) {
        return true;
    }
    if request.no_tool.iter().any(|name| name == ALL) {
        return false;
    }
    let is_all_off = tools.get(ALL).and_then(|all| all.enable) == Some(false);
    let mut may_offer = offers_all(server, config) && !is_all_off;
    for (name, own) in tools {
        if server_of(name, config) == Some(server) {
            may_offer |= match Settings::new(name, config).enable() {
                Some(is_on) => is_on,
                // An entry without a source only adjusts a tool that the server offers anyway.
                None => own.source.is_some() && !is_all_off,
            };
        }
    }
    may_offer
}

fn has_tool_of(server: &str, names: &[String], config: &Resolved) -> bool {
    names
        .iter()
        .any(|name| server_of(name, config) == Some(server))
}

/// Returns the hint how to continue without a failed server, if the query does not continue automatically.
///
/// That is the case if the server is not optional, or if the user names one of its tools.
fn hint_to_continue(
    server: &str,
    request: &QueryRequest,
    servers: &Servers,
    config: &Resolved,
) -> Option<String> {
    if !servers.is_optional(server) {
        return Some(format!(
            "`-c providers.mcp.{server}.optional=true` continues without it."
        ));
    }
    let wanted = request
        .tool
        .iter()
        .find(|tool| server_of(tool, config) == Some(server))?;
    Some(format!(
        "`{wanted}` is a tool of this server; leave out `-t {wanted}` to continue without it."
    ))
}

impl ServerTools {
    /// Defines the tools that a server lists, and tells the user about those that jp can't offer.
    fn add_server(
        &mut self,
        server: &str,
        mut listed: Listed<ToolInfo>,
        setup: Setup<'_>,
    ) -> Result<(), SessionError> {
        let Setup { session, config } = setup;
        let mut notices: Vec<Notice> = listed
            .warnings
            .into_iter()
            .map(|fault| Notice::ServerListFault {
                server: server.to_owned(),
                fault,
            })
            .collect();
        notices.extend(find_missing(server, &listed.items, config));
        // Servers need not keep an order, but prompt caches need the same bytes.
        listed.items.sort_by(|one, other| one.name.cmp(&other.name));
        let before = self.tools.len();
        self.define_tools(server, &listed.items, config, &mut notices)?;
        notices.extend(self.find_unused_entries(server, config));
        let count = self.tools.len() - before;
        if count > MANY_TOOLS {
            let server = server.to_owned();
            notices.insert(0, Notice::ManyServerTools { server, count });
        }
        if let Some(count @ 1..) = notices.len().checked_sub(MAX_NOTICES) {
            notices.truncate(MAX_NOTICES);
            let server = server.to_owned();
            notices.push(Notice::MoreServerTools { server, count });
        }
        for notice in notices {
            self.tell(notice, session);
        }
        Ok(())
    }

    /// Defines each listed tool under each of its names.
    fn define_tools(
        &mut self,
        server: &str,
        listed: &[ToolInfo],
        config: &Resolved,
        notices: &mut Vec<Notice>,
    ) -> Result<(), SessionError> {
        let mut unchecked = Vec::new();
        for info in listed {
            let names = match offered_names(server, &info.name, config) {
                Ok(names) => names,
                Err(reason) => {
                    notices.push(skip_notice(server, info, reason));
                    continue;
                }
            };
            for name in names {
                // The first tool keeps the name: builtin and configured tools, then servers in alphabetical order.
                if self.taken.contains(&name) {
                    notices.push(Notice::ServerToolNameTaken {
                        server: server.to_owned(),
                        tool: info.name.clone(),
                        name,
                    });
                    continue;
                }
                match define(server, &name, info, config)? {
                    Ok((defined, doubt)) => {
                        unchecked.extend(doubt.map(|reason| UncheckedTool {
                            tool: info.name.clone(),
                            reason,
                        }));
                        self.taken.push(name);
                        self.tools.push(defined);
                    }
                    Err(reason) => notices.push(skip_notice(server, info, reason)),
                }
            }
        }
        if !unchecked.is_empty() {
            notices.push(Notice::ServerToolsUnchecked {
                server: server.to_owned(),
                tools: unchecked,
            });
        }
        Ok(())
    }

    /// Returns notices about entries that are for a tool of the server by their name, but match none.
    fn find_unused_entries(&self, server: &str, config: &Resolved) -> Vec<Notice> {
        if !offers_all(server, config) {
            return Vec::new();
        }
        let entries = config.config.conversation.tools.iter();
        entries
            .filter(|(name, own)| {
                own.source.is_none()
                    && own.command.is_none()
                    && server_by_name(name, config) == Some(server)
                    && !self.tools.iter().any(|defined| defined.tool.name == **name)
            })
            .map(|(name, _)| Notice::ServerToolNotOffered {
                server: server.to_owned(),
                name: name.clone(),
            })
            .collect()
    }

    /// Tells the user something, unless they have seen it.
    fn tell(&mut self, notice: Notice, session: &Session) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice.clone());
            session.person.tell(notice);
        }
    }
}

/// Returns notices about entries whose source the server does not list.
fn find_missing(server: &str, listed: &[ToolInfo], config: &Resolved) -> Vec<Notice> {
    let entries = config.config.conversation.tools.iter();
    entries
        .filter_map(|(name, own)| Some((name, ServerToolName::of_entry(name, own)?)))
        .filter(|(_, source)| {
            source.server == server && !listed.iter().any(|info| info.name == source.tool)
        })
        .map(|(name, source)| Notice::ServerToolMissing {
            server: server.to_owned(),
            tool: source.tool.to_owned(),
            name: name.clone(),
        })
        .collect()
}

fn skip_notice(server: &str, tool: &ToolInfo, reason: String) -> Notice {
    Notice::ServerToolSkipped {
        server: server.to_owned(),
        tool: tool.name.clone(),
        reason,
    }
}

/// Returns the reason why a tool can't have the name `SERVER_TOOL`, if another tool has it.
fn name_conflict(name: &str, server: &str, tool: &str, config: &Resolved) -> Option<String> {
    let entry = config.config.conversation.tools.get(name);
    let reason = if entry.is_some_and(|own| own.source.is_some()) {
        format!("conversation.tools.{name}.source gives its name `{name}` to another tool")
    } else {
        // With `git` and `git_hub`, the tool `hub_log` of `git` would get a name of the other server.
        let other = server_by_name(name, config).filter(|other| *other != server)?;
        format!("its name `{name}` is reserved for tools of the MCP server `{other}`")
    };
    Some(format!(
        "{reason}; to offer it, add an entry with another name and source = \"mcp.{server}.{tool}\""
    ))
}

/// Defines a tool. The text says why jp can't check all of its arguments. The inner error says why jp can't offer it.
fn define(
    server: &str,
    name: &str,
    info: &ToolInfo,
    config: &Resolved,
) -> Result<Result<(DefinedTool, Option<String>), String>, SessionError> {
    let settings = Settings::new(name, config);
    if let Some(own) = settings.own {
        check_fields(settings, own)?;
    }
    // Two tools without a name could not be told apart.
    if info.name.is_empty() {
        return Ok(Err("it has no name".to_owned()));
    }
    let parameters = match Parameters::read(info) {
        Ok(parameters) => parameters,
        Err(reason) => return Ok(Err(reason)),
    };
    let source = Source::Server(ServerTool {
        server: server.to_owned(),
        tool: info.name.clone(),
        annotations: info.annotations.clone().unwrap_or_default(),
        checked: parameters.checked,
        output: info.output_schema.clone(),
        timeout: settings
            .first(|settings| settings.timeout_secs)
            .map(Duration::from_secs),
    });
    let mut tool = Tool::new(name, parameters.offered, source);
    apply_limits(&mut tool, settings)?;
    tool.description = description(info, settings.own);
    if let Some(own) = settings.own {
        tool.questions = answerers(&own.questions);
    }
    let is_on = settings.enable().unwrap_or(true);
    Ok(Ok((DefinedTool { tool, is_on }, parameters.doubt)))
}

/// Checks that an entry has only fields that a tool of a server can have.
fn check_fields(settings: Settings<'_>, own: &ToolSettings) -> Result<(), SessionError> {
    const FREE: [&str; 4] = ["source", "summary", "description", "questions"];
    match list_specific_fields(own).find(|field| !FREE.contains(field)) {
        Some(field) => Err(settings.fault(&[field], "has no effect on a tool of an MCP server")),
        None => Ok(()),
    }
}

/// Returns the description of the configuration, or else the server's, shortened.
fn description(info: &ToolInfo, own: Option<&ToolSettings>) -> String {
    let configured = own.map(join_description).unwrap_or_default();
    if !configured.is_empty() {
        return configured;
    }
    let text = info
        .description
        .as_deref()
        .or(info.title.as_deref())
        .unwrap_or_default();
    match text.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) => format!(
            "{}… (jp left out the rest of this description)",
            &text[..end]
        ),
        None => text.to_owned(),
    }
}

/// Returns the names of a server's tool: those of the entries with this source, or else `SERVER_TOOL`.
///
/// # Errors
///
/// The reason why the tool has no name.
pub fn offered_names(server: &str, tool: &str, config: &Resolved) -> Result<Vec<String>, String> {
    let named: Vec<String> = config
        .config
        .conversation
        .tools
        .iter()
        .filter(|(name, own)| {
            ServerToolName::of_entry(name, own) == Some(ServerToolName { server, tool })
        })
        .map(|(name, _)| name.clone())
        .collect();
    if !named.is_empty() || !offers_all(server, config) {
        return Ok(named);
    }
    let name = default_name(server, tool);
    name_conflict(&name, server, tool, config).map_or_else(|| Ok(vec![name]), Err)
}

/// Returns whether jp offers all tools of a server, not only those that the configuration names.
fn offers_all(server: &str, config: &Resolved) -> bool {
    config
        .config
        .providers
        .mcp
        .get(server)
        .is_some_and(|settings| settings.tools != Some(false))
}

/// Returns the name `SERVER_TOOL`, with characters and a length that providers accept.
///
/// If that changes the tool's own name, the result ends with 8 digits of the checksum of that name. So two tools never
/// have the same name.
fn default_name(server: &str, tool: &str) -> String {
    let plain: String = tool
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
            _ => '_',
        })
        .collect();
    let name = format!("{server}_{plain}");
    if plain == tool && name.len() <= MAX_NAME {
        return name;
    }
    let checksum = Checksum::compute(tool.as_bytes()).to_string();
    let digits = &checksum[checksum.len() - 8..];
    // The digits and the underscore before them take 9 characters.
    let kept: String = name.chars().take(MAX_NAME - 9).collect();
    format!("{kept}_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_joins_server_and_tool() {
        assert_eq!(default_name("docs", "search"), "docs_search");
    }

    #[test]
    fn name_that_providers_refuse_becomes_a_distinct_valid_one() {
        let names =
            ["a.b", "a b", "a/b", &"x".repeat(300), ""].map(|tool| default_name("docs", tool));
        for name in &names {
            assert!(name.len() <= MAX_NAME, "{name}");
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
                "{name}"
            );
        }
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn source_names_a_tool_of_a_server() {
        let origin = |server, tool| Some(ServerToolName { server, tool });
        assert_eq!(
            ServerToolName::parse("mcp.docs.search", "find"),
            origin("docs", "search")
        );
        assert_eq!(
            ServerToolName::parse("mcp.docs.a.b", "find"),
            origin("docs", "a.b")
        );
        assert_eq!(
            ServerToolName::parse("mcp.docs", "find"),
            origin("docs", "find")
        );
        assert_eq!(
            [
                ServerToolName::parse("mcp.", "find"),
                ServerToolName::parse("mcp.docs.", "find"),
                ServerToolName::parse("local", "x")
            ],
            [None; 3]
        );
    }
}
