//! The tools of MCP servers: each is offered as `SERVER_TOOL`, or under the name that the configuration gives it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jp_config::{Resolved, ToolSettings};
use jp_mcp::{Connection, Listed, ToolInfo};
use jp_resource::Checksum;
use jp_turn::{Schema, ServerTool, Source, Tool};
use serde_json::{Map, Value};

use super::{
    ALL,
    declared::{Declared, answerers, limit, set},
    settings::Settings,
};
use crate::{
    args::Query,
    cmd::query::Asked,
    error::Failure,
    servers::{Refusal, Servers, Waiting, advice},
    workspace::Context,
};

/// How much of a server's own description models are told.
const MAX_DESCRIPTION: usize = 10_000;
/// How large the schema of a tool's arguments may be, in bytes.
const MAX_SCHEMA: usize = 200_000;
/// How long a name may be, as providers take it.
const MAX_NAME: usize = 64;
/// How many tools that are passed over are told of one by one.
const MAX_TOLD: usize = 5;

/// The tools of the servers that are needed, and the connections that call them.
#[derive(Default)]
pub(super) struct Served {
    pub(super) tools: Vec<Declared>,
    pub(super) connections: BTreeMap<String, Arc<Connection>>,
    /// Names that no tool can have any more.
    taken: Vec<String>,
}

/// What the configuration has a tool of a server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
}

impl<'a> Origin<'a> {
    /// Reads a source, `mcp.SERVER` or `mcp.SERVER.TOOL`; without a tool it is the one of the entry's own name.
    pub(super) fn read(source: &'a str, name: &'a str) -> Option<Self> {
        let rest = source.strip_prefix("mcp.")?;
        let (server, tool) = rest.split_once('.').unwrap_or((rest, name));
        (!server.is_empty() && !tool.is_empty()).then_some(Self { server, tool })
    }
}

/// Returns whether an entry is about a tool that is offered by its server's name: it says nothing of where it is from.
pub(super) fn is_about_served(name: &str, settings: &ToolSettings, config: &Resolved) -> bool {
    let is_of =
        |server: &String| name.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('_'));
    settings.source.is_none() && settings.command.is_none() && config.config.providers.mcp.keys().any(is_of)
}

/// Returns whether a name is one that a server's tool would have, and no other server's.
fn is_about_served_by(server: &str, name: &str, config: &Resolved) -> bool {
    let is_of =
        |server: &String| name.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('_'));
    let mut servers = config.config.providers.mcp.keys().filter(|server| is_of(server));
    servers.next().is_some_and(|first| first == server) && servers.next().is_none()
}

/// Connects to the servers whose tools are needed, and lists them.
///
/// A server that fails costs its tools and a warning, unless the configuration says that it is not optional.
///
/// `taken` names the tools that there are already.
pub(super) fn all(
    query: &Query,
    context: &Context<'_>,
    config: &Resolved,
    taken: Vec<String>,
) -> Result<Served, Failure> {
    let needed: Vec<&str> = config
        .config
        .providers
        .mcp
        .keys()
        .map(String::as_str)
        .filter(|name| is_needed(name, query, config))
        .collect();
    let mut served = Served { taken, ..Served::default() };
    if needed.is_empty() {
        return Ok(served);
    }
    let servers = context.servers(config)?;
    for (name, connected) in servers.connect_all(context, &needed)? {
        let listed = connected.and_then(|connection| {
            let listed = connection.tools(&servers.waiting())?;
            // Of a list that has no end there is nothing to choose from.
            listed.cut.clone().map_or(Ok((connection, listed)), |cut| Err(Refusal::Server(cut)))
        });
        match listed {
            Ok((connection, listed)) => {
                connection.watch_lists();
                served.add(&name, listed, context, config)?;
                served.connections.insert(name, connection);
            }
            Err(refusal) => lost(&name, refusal, servers, context)?,
        }
    }
    Ok(served)
}

/// Lists the tools of servers again; nothing where none could be.
pub(super) fn again(names: &[String], taken: Vec<String>, asked: &Asked<'_>) -> Option<Vec<Declared>> {
    let mut served = Served { taken, ..Served::default() };
    let waiting = Waiting(asked.context.interrupt().flag());
    for name in names {
        let listed =
            asked.tools.servers.get(name)?.tools(&waiting).and_then(|listed| match listed.cut.clone() {
                Some(cut) => Err(cut),
                None => Ok(listed),
            });
        let added = listed
            .map_err(advice::failure)
            .and_then(|listed| served.add(name, listed, asked.context, asked.config));
        if let Err(failure) = added {
            asked.context.output.warn(&format!("{}; its tools stay as they were", failure.message));
            return None;
        }
    }
    (!names.is_empty()).then_some(served.tools)
}

/// Returns whether any tool of a server may be offered.
fn is_needed(server: &str, query: &Query, config: &Resolved) -> bool {
    let tools = &config.config.conversation.tools;
    let is_of = |name: &str| name.strip_prefix(server).is_some_and(|rest| rest.starts_with('_'));
    let origin = |name: &str| {
        tools
            .get(name)
            .and_then(|own| Origin::read(own.source.as_deref()?, name).map(|of| of.server == server))
    };
    let is_its = |name: &str| origin(name).unwrap_or_else(|| is_of(name));
    if query.tool.iter().any(|name| is_its(name)) {
        return true;
    }
    if query.no_tool.iter().any(|name| name == ALL) {
        return false;
    }
    let is_on = |name: &String| Settings::of(name, config).enable() == Some(true);
    if tools.keys().any(|name| is_its(name) && is_on(name)) {
        return true;
    }
    let offers_all = config.config.providers.mcp[server].tools != Some(false);
    let has_own = tools
        .keys()
        .any(|name| origin(name) == Some(true) && Settings::of(name, config).enable() != Some(false));
    let is_off = tools.get(ALL).and_then(|all| all.enable) == Some(false);
    (offers_all || has_own) && !is_off
}

/// Says that the tools of a server are not there.
fn lost(name: &str, refusal: Refusal, servers: &Servers, context: &Context<'_>) -> Result<(), Failure> {
    if servers.is_optional(name) {
        advice::warn(context.output, refusal);
        return Ok(());
    }
    let failure = advice::failure(refusal);
    Err(failure.with_hint(format!("`-c providers.mcp.{name}.optional=true` goes on without it.")))
}

impl Served {
    fn add(
        &mut self,
        server: &str,
        mut listed: Listed<ToolInfo>,
        context: &Context<'_>,
        config: &Resolved,
    ) -> Result<(), Failure> {
        let mut told = listed.warnings;
        // Servers need not keep to an order, prompt caches do.
        listed.items.sort_by(|one, other| one.name.cmp(&other.name));
        let tools = &config.config.conversation.tools;
        let mut named: Vec<(&str, Origin<'_>)> = Vec::new();
        for (name, own) in tools {
            if let Some(of) = own.source.as_deref().and_then(|source| Origin::read(source, name)) {
                named.extend((of.server == server).then_some((name.as_str(), of)));
            }
        }
        for (name, of) in &named {
            if !listed.items.iter().any(|info| info.name == of.tool) {
                told.push(format!(
                    "it has no tool `{}`, which conversation.tools.{name}.source names",
                    of.tool
                ));
            }
        }
        for info in listed.items {
            for name in offered_names(server, &info.name, config) {
                if self.taken.contains(&name) {
                    told.push(format!(
                        "its tool {:?} was passed over: there is another one with the name `{name}`",
                        info.name
                    ));
                    continue;
                }
                match tool(server, &name, &info, config)? {
                    Ok(declared) => {
                        self.taken.push(declared.tool.name.clone());
                        self.tools.push(declared);
                    }
                    Err(reason) => told.push(format!("its tool {:?} was passed over: {reason}", info.name)),
                }
            }
        }
        let offers_all = config.config.providers.mcp[server].tools != Some(false);
        let is_about = |name: &str| offers_all && is_about_served_by(server, name, config);
        for (name, settings) in tools {
            let is_there = self.tools.iter().any(|declared| declared.tool.name == *name);
            if !is_there && settings.source.is_none() && settings.command.is_none() && is_about(name) {
                told.push(format!(
                    "none of its tools is offered as `{name}`, which conversation.tools.{name} is about"
                ));
            }
        }
        let count = told.len();
        for warning in told.iter().take(MAX_TOLD) {
            context.output.warn(&format!("the MCP server `{server}`: {}", crate::output::visible(warning)));
        }
        if count > MAX_TOLD {
            context.output.warn(&format!(
                "the MCP server `{server}`: {} more of its tools were passed over",
                count - MAX_TOLD
            ));
        }
        Ok(())
    }
}

/// Puts a tool together; the inner error says why it can't be offered.
fn tool(
    server: &str,
    name: &str,
    info: &ToolInfo,
    config: &Resolved,
) -> Result<Result<Declared, String>, Failure> {
    let settings = Settings::of(name, config);
    if let Some(own) = settings.own {
        check(settings, own)?;
    }
    if info.name.is_empty() {
        return Ok(Err("it has no name".to_owned()));
    }
    let parameters = match parameters(info) {
        Ok(parameters) => parameters,
        Err(reason) => return Ok(Err(reason)),
    };
    let source = Source::Server(ServerTool {
        server: server.to_owned(),
        tool: info.name.clone(),
        annotations: info.annotations.clone().unwrap_or_default(),
        output: info.output_schema.clone(),
        timeout: settings.first(|settings| settings.timeout_secs).map(Duration::from_secs),
    });
    let mut tool = Tool::new(name, parameters, source);
    limit(&mut tool, settings)?;
    tool.description = description(info, settings.own);
    if let Some(own) = settings.own {
        tool.questions = answerers(&own.questions);
    }
    Ok(Ok(Declared { tool, is_on: settings.enable().unwrap_or(true) }))
}

/// Checks that nothing is said of the tool that only a program of the person's has.
fn check(settings: Settings<'_>, own: &ToolSettings) -> Result<(), Failure> {
    const FREE: [&str; 4] = ["source", "summary", "description", "questions"];
    match set(own).into_iter().find(|field| !FREE.contains(field)) {
        Some(field) => Err(settings.fault(&[field], "has no effect: the tool is an MCP server's")),
        None => Ok(()),
    }
}

/// Returns the schema of the arguments, as providers and jp can read it.
fn parameters(info: &ToolInfo) -> Result<Map<String, Value>, String> {
    let mut parameters = info.input_schema.clone();
    parameters.entry("type").or_insert_with(|| "object".into());
    if parameters["type"] != "object" {
        return Err("its arguments are no object".to_owned());
    }
    let bytes = Value::Object(parameters.clone()).to_string().len();
    if bytes > MAX_SCHEMA {
        return Err(format!("the schema of its arguments has {bytes} bytes, and {MAX_SCHEMA} are the most"));
    }
    match Schema::compile(&parameters) {
        Ok(_) => Ok(parameters),
        Err(error) => Err(format!("the schema of its arguments is none: {error}")),
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
    let text = info.description.as_deref().or(info.title.as_deref()).unwrap_or_default();
    match text.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) => format!("{}… (the rest of what the server says of it is left out)", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the names that a tool of a server is offered by: those that entries of the configuration give it, else its own.
pub(crate) fn offered_names(server: &str, tool: &str, config: &Resolved) -> Vec<String> {
    let entries = config.config.conversation.tools.iter();
    let is_its = |(name, own): &(&String, &ToolSettings)| {
        own.source.as_deref().and_then(|source| Origin::read(source, name)) == Some(Origin { server, tool })
    };
    let named: Vec<String> = entries.filter(is_its).map(|(name, _)| name.clone()).collect();
    let offers_all =
        config.config.providers.mcp.get(server).is_some_and(|settings| settings.tools != Some(false));
    if named.is_empty() && offers_all { vec![offered_name(server, tool)] } else { named }
}

/// Returns the name that a tool is offered by: its own after its server's, as providers take it.
///
/// What would be too long, or is not written as the tool's own, ends with a part of its checksum: it stays one of a kind.
fn offered_name(server: &str, tool: &str) -> String {
    let is_usual = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let plain: String =
        tool.chars().map(|character| if is_usual(character) { character } else { '_' }).collect();
    let name = format!("{server}_{plain}");
    if plain == tool && name.len() <= MAX_NAME {
        return name;
    }
    let checksum = Checksum::of(tool.as_bytes()).to_string();
    let end = checksum.char_indices().rev().nth(7).map_or(0, |(start, _)| start);
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
        let names = ["a.b", "a b", "a/b", &"x".repeat(300), ""].map(|tool| offered_name("docs", tool));
        for name in &names {
            assert!(name.len() <= MAX_NAME, "{name}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
                "{name}"
            );
        }
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn source_names_a_server_and_its_tool() {
        let origin = |server, tool| Some(Origin { server, tool });
        assert_eq!(Origin::read("mcp.docs.search", "find"), origin("docs", "search"));
        assert_eq!(Origin::read("mcp.docs.a.b", "find"), origin("docs", "a.b"));
        assert_eq!(Origin::read("mcp.docs", "find"), origin("docs", "find"));
        assert_eq!(
            [Origin::read("mcp.", "find"), Origin::read("mcp.docs.", "find"), Origin::read("local", "x")],
            [None; 3]
        );
    }
}
