//! The tools of MCP servers: each is offered as `SERVER_TOOL`, or under the name that the configuration gives it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    error::SessionError,
    notice::{Notice, UncheckedTool},
    query::request::QueryRequest,
    servers::{Refusal, Servers, advice, watched},
    session::{Session, Setup},
    tools::{
        declared::{Declared, answerers, limit, set},
        served_schema::Parameters,
        settings::{ALL, Settings},
    },
};
use jp_config::{Resolved, ToolSettings};
use jp_mcp::{Caller, Connection, Listed, ServerError, ToolInfo};
use jp_resource::Checksum;
use jp_turn::{ServerTool, Source, Tool};

/// How much of a server's own description models are told.
const MAX_DESCRIPTION: usize = 10_000;
/// How long a name may be, as providers take it.
const MAX_NAME: usize = 64;
/// From how many tools of a server on it is said that they are many.
const MANY_TOOLS: usize = 100;
/// How many tools that are passed over are told of one by one.
const MAX_TOLD: usize = 5;

/// The tools of the servers that are needed, and the connections that call them.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) tools: Vec<Declared>,
    pub(crate) connections: BTreeMap<String, Arc<Connection>>,
    /// The servers that failed.
    pub(crate) lost: BTreeSet<String>,
    /// What the person was told of servers, each once.
    pub(crate) told: Vec<Notice>,
    /// Names that no tool can have any more.
    taken: Vec<String>,
}

/// What the configuration has a tool of a server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServedName<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
}

impl<'a> ServedName<'a> {
    /// Reads a source, `mcp.SERVER` or `mcp.SERVER.TOOL`; without a tool it is the one of the entry's own name.
    pub(crate) fn read(source: &'a str, name: &'a str) -> Option<Self> {
        let rest = source.strip_prefix("mcp.")?;
        let (server, tool) = rest.split_once('.').unwrap_or((rest, name));
        (!server.is_empty() && !tool.is_empty()).then_some(Self { server, tool })
    }
}

/// Returns whether an entry is about a tool that is offered by its server's name: it says nothing of where it is from.
pub(crate) fn is_about_served(name: &str, settings: &ToolSettings, config: &Resolved) -> bool {
    settings.source.is_none() && settings.command.is_none() && by_name(name, config).is_some()
}

/// Returns the server that alone may offer a tool by this name, `SERVER_TOOL`, where the configuration does not say which.
///
/// Where one server's name goes on as another's, `git` and `git_hub`, it is the one with the longer name: each name is one
/// server's, and what is said of it in the configuration is said of nobody else's tool.
fn by_name<'c>(name: &str, config: &'c Resolved) -> Option<&'c str> {
    let is_of = |server: &&str| {
        name.strip_prefix(server)
            .is_some_and(|rest| rest.starts_with('_'))
    };
    config
        .config
        .providers
        .mcp
        .keys()
        .map(String::as_str)
        .filter(is_of)
        .max_by_key(|server| server.len())
}

/// Returns the server that a tool of this name is of: the one that the configuration gives it for, else the one of the name.
pub(crate) fn server_of<'c>(name: &str, config: &'c Resolved) -> Option<&'c str> {
    match config
        .config
        .conversation
        .tools
        .get(name)
        .and_then(|own| own.source.as_deref())
    {
        Some(source) => config
            .config
            .providers
            .mcp
            .keys()
            .map(String::as_str)
            .find(|server| {
                // The entry's own name stands for the tool where the source names none.
                ServedName::read(source, "-").is_some_and(|of| of.server == *server)
            }),
        None => by_name(name, config),
    }
}

/// Connects to the servers whose tools are needed, and lists them.
///
/// A server that fails costs its tools and a warning, unless the configuration says that it is not optional.
///
/// `taken` names the tools that there are already.
pub(crate) fn all(
    request: &QueryRequest,
    setup: Setup<'_>,
    taken: Vec<String>,
) -> Result<Served, SessionError> {
    let Setup { session, config } = setup;
    let needed: Vec<&str> = config
        .config
        .providers
        .mcp
        .keys()
        .map(String::as_str)
        .filter(|name| is_needed(name, request, config))
        .collect();
    let mut served = Served {
        taken,
        ..Served::default()
    };
    if needed.is_empty() {
        return Ok(served);
    }
    let servers = session.servers(config)?;
    let listed = |connection: &Arc<Connection>, caller: &dyn Caller| {
        Ok((Arc::clone(connection), list(connection, caller)?))
    };
    for (name, listed) in servers.ask(session, &needed, "Starting", listed)? {
        match listed {
            Ok((connection, listed)) => {
                connection.watch_lists();
                served.add(&name, listed, setup)?;
                served.connections.insert(name, connection);
            }
            Err(refusal) => {
                if let Some(way) = way_without(&name, request, servers, config) {
                    return Err(advice::failure(refusal).with_hint(way));
                }
                // Who was asked for their word knows it.
                if !matches!(refusal, Refusal::NotAgreed { .. }) {
                    advice::warn(&*session.person, refusal);
                }
                served.lost.insert(name);
            }
        }
    }
    Ok(served)
}

/// Lists the tools of a server; of a list that has no end there is nothing to choose from.
fn list(connection: &Connection, caller: &dyn Caller) -> Result<Listed<ToolInfo>, ServerError> {
    let listed = connection.tools(caller)?;
    listed.cut.clone().map_or(Ok(listed), Err)
}

/// The tools of a server, as it lists them now.
pub(crate) struct Relisted {
    pub(crate) server: String,
    listed: Result<Listed<ToolInfo>, ServerError>,
}

/// Lists the tools of servers again, all at once.
pub(crate) fn again(servers: &[(&String, &Arc<Connection>)], session: &Session) -> Vec<Relisted> {
    if servers.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
    let what = format!("Listing the tools of {}", names.join(", "));
    let connections: BTreeMap<_, _> = servers
        .iter()
        .map(|(name, connection)| (name.as_str(), *connection))
        .collect();
    watched::with_each(session, &names, &what, |server, person| Relisted {
        server: server.to_owned(),
        listed: list(connections[server], person),
    })
}

impl Relisted {
    /// Puts the tools together; where they can't be, they stay as they were, and that is told.
    ///
    /// `taken` names the tools that there are beside them.
    pub(crate) fn tools(
        self,
        taken: Vec<String>,
        told: &mut Vec<Notice>,
        setup: Setup<'_>,
    ) -> Option<Vec<Declared>> {
        let session = setup.session;
        let mut served = Served {
            taken,
            told: std::mem::take(told),
            ..Served::default()
        };
        let added = self.listed.map_err(advice::failure);
        let added = added.and_then(|listed| served.add(&self.server, listed, setup));
        if let Err(failure) = &added {
            let reason = failure.message.clone();
            served.tell(Notice::ServerToolsKept { reason }, session);
        }
        *told = served.told;
        added.is_ok().then_some(served.tools)
    }
}

/// Returns whether any tool of a server may be offered.
fn is_needed(server: &str, request: &QueryRequest, config: &Resolved) -> bool {
    let tools = &config.config.conversation.tools;
    let is_its = |name: &str| server_of(name, config) == Some(server);
    if request.tool.iter().any(|name| is_its(name)) {
        return true;
    }
    if request.no_tool.iter().any(|name| name == ALL) {
        return false;
    }
    let is_on = |name: &String| Settings::of(name, config).enable() == Some(true);
    if tools.keys().any(|name| is_its(name) && is_on(name)) {
        return true;
    }
    let has_own = tools.iter().any(|(name, own)| {
        own.source.is_some() && is_its(name) && Settings::of(name, config).enable() != Some(false)
    });
    let is_off = tools.get(ALL).and_then(|all| all.enable) == Some(false);
    (offers_all(server, config) || has_own) && !is_off
}

/// Says what lets the query go on without a server, where it does not by itself: it has to be there, or the person names a
/// tool of it.
fn way_without(
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

impl Served {
    fn add(
        &mut self,
        server: &str,
        mut listed: Listed<ToolInfo>,
        setup: Setup<'_>,
    ) -> Result<(), SessionError> {
        let Setup { session, config } = setup;
        let mut told: Vec<Notice> = listed
            .warnings
            .into_iter()
            .map(|fault| Notice::ServerListFault {
                server: server.to_owned(),
                fault,
            })
            .collect();
        // Servers need not keep to an order, prompt caches do.
        listed.items.sort_by(|one, other| one.name.cmp(&other.name));
        let before = self.tools.len();
        let tools = &config.config.conversation.tools;
        let mut named: Vec<(&str, ServedName<'_>)> = Vec::new();
        for (name, own) in tools {
            if let Some(of) = own
                .source
                .as_deref()
                .and_then(|source| ServedName::read(source, name))
            {
                named.extend((of.server == server).then_some((name.as_str(), of)));
            }
        }
        for (name, of) in &named {
            if !listed.items.iter().any(|info| info.name == of.tool) {
                told.push(Notice::ServerToolMissing {
                    server: server.to_owned(),
                    tool: of.tool.to_owned(),
                    name: (*name).to_owned(),
                });
            }
        }
        let mut unchecked = Vec::new();
        for info in listed.items {
            let names = match offered_names(server, &info.name, config) {
                Ok(names) => names,
                Err(reason) => {
                    told.push(describe_skipped(server, &info, reason));
                    continue;
                }
            };
            for name in names {
                if self.taken.contains(&name) {
                    told.push(Notice::ServerToolNameTaken {
                        server: server.to_owned(),
                        tool: info.name.clone(),
                        name,
                    });
                    continue;
                }
                match tool(server, &name, &info, config)? {
                    Ok((declared, doubt)) => {
                        unchecked.extend(doubt.map(|reason| UncheckedTool {
                            tool: info.name.clone(),
                            reason,
                        }));
                        self.taken.push(declared.tool.name.clone());
                        self.tools.push(declared);
                    }
                    Err(reason) => told.push(describe_skipped(server, &info, reason)),
                }
            }
        }
        if !unchecked.is_empty() {
            told.push(Notice::ServerToolsUnchecked {
                server: server.to_owned(),
                tools: unchecked,
            });
        }
        let is_about =
            |name: &str| offers_all(server, config) && by_name(name, config) == Some(server);
        for (name, settings) in tools {
            let is_there = self
                .tools
                .iter()
                .any(|declared| declared.tool.name == *name);
            if !is_there
                && settings.source.is_none()
                && settings.command.is_none()
                && is_about(name)
            {
                told.push(Notice::ServerToolNotOffered {
                    server: server.to_owned(),
                    name: name.clone(),
                });
            }
        }
        let count = self.tools.len() - before;
        if count > MANY_TOOLS {
            let server = server.to_owned();
            told.insert(0, Notice::ManyServerTools { server, count });
        }
        if let Some(count @ 1..) = told.len().checked_sub(MAX_TOLD) {
            told.truncate(MAX_TOLD);
            let server = server.to_owned();
            told.push(Notice::MoreServerTools { server, count });
        }
        told.into_iter()
            .for_each(|warning| self.tell(warning, session));
        Ok(())
    }

    /// Warns of something, once.
    fn tell(&mut self, warning: Notice, session: &Session) {
        if !self.told.contains(&warning) {
            self.told.push(warning.clone());
            session.person.tell(warning);
        }
    }
}

/// Says that a tool is not offered.
fn describe_skipped(server: &str, tool: &ToolInfo, reason: String) -> Notice {
    Notice::ServerToolSkipped {
        server: server.to_owned(),
        tool: tool.name.clone(),
        reason,
    }
}

/// Returns why the name that a tool of a server would have is not for it, where it is not.
fn is_anothers(name: &str, server: &str, tool: &str, config: &Resolved) -> Option<String> {
    let reason = if config
        .config
        .conversation
        .tools
        .get(name)
        .is_some_and(|own| own.source.is_some())
    {
        format!("conversation.tools.{name}.source gives its name `{name}` to another tool")
    } else {
        let other = by_name(name, config).filter(|other| *other != server)?;
        format!("its name `{name}` is reserved for tools of the MCP server `{other}`")
    };
    Some(format!(
        "{reason}; to offer it, add an entry with another name and source = \"mcp.{server}.{tool}\""
    ))
}

/// Builds a tool, with the reason if jp can't check all of its arguments; the inner error says why jp can't offer it.
fn tool(
    server: &str,
    name: &str,
    info: &ToolInfo,
    config: &Resolved,
) -> Result<Result<(Declared, Option<String>), String>, SessionError> {
    let settings = Settings::of(name, config);
    if let Some(own) = settings.own {
        check(settings, own)?;
    }
    if info.name.is_empty() {
        return Ok(Err("it has no name".to_owned()));
    }
    let Parameters {
        offered,
        checked,
        doubt,
    } = match Parameters::read(info) {
        Ok(parameters) => parameters,
        Err(reason) => return Ok(Err(reason)),
    };
    let source = Source::Server(ServerTool {
        server: server.to_owned(),
        tool: info.name.clone(),
        annotations: info.annotations.clone().unwrap_or_default(),
        checked,
        output: info.output_schema.clone(),
        timeout: settings
            .first(|settings| settings.timeout_secs)
            .map(Duration::from_secs),
    });
    let mut tool = Tool::new(name, offered, source);
    limit(&mut tool, settings)?;
    tool.description = description(info, settings.own);
    if let Some(own) = settings.own {
        tool.questions = answerers(&own.questions);
    }
    Ok(Ok((
        Declared {
            tool,
            is_on: settings.enable().unwrap_or(true),
        },
        doubt,
    )))
}

/// Checks that nothing is said of the tool that only a program of the person's has.
fn check(settings: Settings<'_>, own: &ToolSettings) -> Result<(), SessionError> {
    const FREE: [&str; 4] = ["source", "summary", "description", "questions"];
    match set(own).into_iter().find(|field| !FREE.contains(field)) {
        Some(field) => Err(settings.fault(&[field], "has no effect on a tool of an MCP server")),
        None => Ok(()),
    }
}

fn description(info: &ToolInfo, own: Option<&ToolSettings>) -> String {
    let said: Vec<&str> = own
        .into_iter()
        .flat_map(|own| [&own.summary, &own.description])
        .flatten()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    if !said.is_empty() {
        return said.join("\n\n");
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

/// Returns the names that a tool of a server is offered by: those that entries of the configuration give it, else its own.
/// Fails with why it has none of its own.
pub fn offered_names(server: &str, tool: &str, config: &Resolved) -> Result<Vec<String>, String> {
    let entries = config.config.conversation.tools.iter();
    let is_its = |(name, own): &(&String, &ToolSettings)| {
        own.source
            .as_deref()
            .and_then(|source| ServedName::read(source, name))
            == Some(ServedName { server, tool })
    };
    let named: Vec<String> = entries
        .filter(is_its)
        .map(|(name, _)| name.clone())
        .collect();
    if !named.is_empty() || !offers_all(server, config) {
        return Ok(named);
    }
    let name = offered_name(server, tool);
    is_anothers(&name, server, tool, config).map_or_else(|| Ok(vec![name]), Err)
}

/// Returns whether all tools of a server are offered, not only those that entries of the configuration name.
fn offers_all(server: &str, config: &Resolved) -> bool {
    config
        .config
        .providers
        .mcp
        .get(server)
        .is_some_and(|settings| settings.tools != Some(false))
}

/// Returns the name that a tool is offered by: its own after its server's, as providers take it.
///
/// What would be too long, or is not written as the tool's own, ends with a part of its checksum: it stays one of a kind.
fn offered_name(server: &str, tool: &str) -> String {
    let is_usual =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let plain: String = tool
        .chars()
        .map(|character| if is_usual(character) { character } else { '_' })
        .collect();
    let name = format!("{server}_{plain}");
    if plain == tool && name.len() <= MAX_NAME {
        return name;
    }
    let checksum = Checksum::compute(tool.as_bytes()).to_string();
    let end = checksum
        .char_indices()
        .rev()
        .nth(7)
        .map_or(0, |(start, _)| start);
    let kept: String = name.chars().take(MAX_NAME - 9).collect();
    format!("{kept}_{}", &checksum[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_the_servers_and_the_tools() {
        assert_eq!(offered_name("docs", "search"), "docs_search");
    }

    #[test]
    fn name_that_providers_refuse_is_made_one_they_take_and_stays_its_own() {
        let names =
            ["a.b", "a b", "a/b", &"x".repeat(300), ""].map(|tool| offered_name("docs", tool));
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
    fn source_names_a_server_and_its_tool() {
        let origin = |server, tool| Some(ServedName { server, tool });
        assert_eq!(
            ServedName::read("mcp.docs.search", "find"),
            origin("docs", "search")
        );
        assert_eq!(
            ServedName::read("mcp.docs.a.b", "find"),
            origin("docs", "a.b")
        );
        assert_eq!(ServedName::read("mcp.docs", "find"), origin("docs", "find"));
        assert_eq!(
            [
                ServedName::read("mcp.", "find"),
                ServedName::read("mcp.docs.", "find"),
                ServedName::read("local", "x")
            ],
            [None; 3]
        );
    }
}
