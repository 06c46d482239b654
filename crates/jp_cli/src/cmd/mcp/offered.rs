//! `jp mcp ls`: the configured servers, or the tools of one.

use crate::{
    cmd::mcp::{
        Answer, ChosenServers, SHOWN_URI, choose_servers, listed::warn_of_gaps, shorten,
        shorten_first_line,
    },
    context::Context,
    error::{Code, SessionError},
};
use jp_config::Resolved;
use jp_mcp::{About, Caller, Connection, Fault, Listed, ServerError, ToolInfo, Transport};
use jp_session::{
    servers::{Refusal, Servers, advice},
    size,
    text::{one_line, without_credentials},
    tools::offered_names,
};
use serde_json::{Value, json};

/// The offer of a server: its description and the lengths of its lists.
struct ServerOffer {
    about: About,
    tools: ListLength,
    resources: ListLength,
    templates: ListLength,
}

/// The length of a list.
struct ListLength {
    /// `None` if the server did not return the list.
    number: Option<usize>,
    /// The reason why the list is incomplete or missing.
    fault: Option<ServerError>,
}

/// Lists the servers. A server that fails has a row, too.
pub(super) fn list_servers(context: &Context<'_>, servers: &Servers) -> Result<Code, SessionError> {
    let chosen = choose_servers(context, servers, &[])?;
    let answers = chosen.ask(context, ServerOffer::read)?;
    // One working server makes the command succeed: the table shows the others' faults.
    let has_failed = !answers.is_empty() && answers.iter().all(|(_, answer)| answer.is_err());
    let code = if has_failed { Code::Failed } else { Code::Done };
    if context.output.is_json() {
        let documents: Vec<_> = answers
            .iter()
            .map(|answer| to_json(servers, answer))
            .collect();
        context.output.json(&documents)?;
        return Ok(code);
    }
    if answers.is_empty() {
        return Ok(code);
    }
    let header = [
        "server",
        "tools",
        "resources",
        "templates",
        "MCP",
        "software",
        "",
    ]
    .map(str::to_owned)
    .to_vec();
    let rows = answers.iter().map(|answer| cells(servers, answer));
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    context.output.table(&rows)?;
    for answer in &answers {
        report_faults(context, answer);
    }
    Ok(code)
}

impl ServerOffer {
    fn read(connection: &Connection, caller: &dyn Caller) -> Result<Self, ServerError> {
        Ok(Self {
            about: connection.about().clone(),
            tools: ListLength::new(connection.tools(caller))?,
            resources: ListLength::new(connection.resources(caller))?,
            templates: ListLength::new(connection.templates(caller))?,
        })
    }

    fn lengths(&self) -> [&ListLength; 3] {
        [&self.tools, &self.resources, &self.templates]
    }

    /// Returns the name and the version that the server reports.
    fn name(&self) -> String {
        let name = self.about.name.iter().chain(&self.about.version);
        let name: Vec<_> = name.map(|word| shorten(word)).collect();
        if name.is_empty() {
            "-".to_owned()
        } else {
            name.join(" ")
        }
    }
}

impl ListLength {
    /// Counts a list. If the server refuses it or sends nonsense, jp still asks for the other lists. Other faults mean that the
    /// server is gone or that the user has interrupted the command.
    fn new<T>(listed: Result<Listed<T>, ServerError>) -> Result<Self, ServerError> {
        match listed {
            Ok(listed) => Ok(Self {
                number: Some(listed.items.len()),
                fault: listed.cut,
            }),
            Err(error) if matches!(error.fault, Fault::Refused { .. } | Fault::Malformed(_)) => {
                Ok(Self {
                    number: None,
                    fault: Some(error),
                })
            }
            Err(error) => Err(error),
        }
    }

    fn cell(&self) -> String {
        // `4+` means: at least 4, because the list broke off.
        let more = if self.fault.is_some() { "+" } else { "" };
        self.number.map_or_else(
            || "?".to_owned(),
            |number| size::thousands(number as u64) + more,
        )
    }
}

fn cells(servers: &Servers, (server, answer): &Answer<ServerOffer>) -> Vec<String> {
    match answer {
        Ok(offer) => {
            // The description is a sentence about the server: `it runs …`. The table needs only its verb.
            let reached = servers.description(server);
            let reached = shorten(&without_credentials(
                reached.strip_prefix("it ").unwrap_or(reached),
            ));
            let [tools, resources, templates] = offer.lengths().map(ListLength::cell);
            vec![
                server.clone(),
                tools,
                resources,
                templates,
                shorten(&offer.about.revision),
                offer.name(),
                reached,
            ]
        }
        Err(refusal) => {
            let mut cells = vec!["-".to_owned(); 7];
            cells[0] = server.clone();
            cells[6] = advice::state(refusal);
            cells
        }
    }
}

/// Reports the faults of a server, for which the table has no room.
fn report_faults(context: &Context<'_>, (server, answer): &Answer<ServerOffer>) {
    match answer {
        Ok(offer) => {
            let faults = offer
                .lengths()
                .into_iter()
                .filter_map(|count| count.fault.as_ref());
            faults.for_each(|error| {
                context
                    .output
                    .warn(&one_line(&error.to_string(), SHOWN_URI))
            });
        }
        Err(refusal) => {
            let stderr = advice::stderr(refusal);
            if !stderr.is_empty() {
                context.output.warn(&format!(
                    "`{server}` wrote to stderr:\n{}",
                    stderr.join("\n")
                ));
            }
            advice::hints(refusal)
                .iter()
                .for_each(|hint| context.output.hint(&format!("`{server}`: {hint}")));
        }
    }
}

fn to_json(servers: &Servers, (server, answer): &Answer<ServerOffer>) -> Value {
    let mut document = json!({"name": server, "optional": servers.is_optional(server)});
    match servers
        .servers
        .config(server)
        .map(|config| &config.transport)
    {
        Some(Transport::Stdio(program)) => {
            let words: Vec<_> = std::iter::once(&program.program)
                .chain(&program.arguments)
                .collect();
            document["type"] = "stdio".into();
            document["command"] = json!(words);
        }
        Some(Transport::Http(endpoint)) => {
            document["type"] = "http".into();
            document["url"] = without_credentials(endpoint.url.as_str()).into();
        }
        None => {}
    }
    match answer {
        Ok(offer) => {
            let about = &offer.about;
            document["revision"] = json!(about.revision);
            document["server"] = json!({"name": about.name, "version": about.version});
            document["instructions"] = json!(about.instructions);
            for (key, count) in ["tools", "resources", "templates"]
                .into_iter()
                .zip(offer.lengths())
            {
                document[key] = json!(count.number);
            }
            let warnings = offer
                .lengths()
                .into_iter()
                .filter_map(|count| count.fault.as_ref());
            document["warnings"] = warnings.map(|error| error.to_string()).collect();
        }
        Err(refusal) => {
            // The hints are for people; a script reads the fault.
            document["error"] = refusal.to_string().into();
            let stderr = if let Refusal::Server(error) = refusal {
                error.stderr.as_slice()
            } else {
                &[]
            };
            document["stderr"] = json!(stderr);
        }
    }
    document
}

/// Lists the tools of a server.
pub(super) fn list_tools(
    context: &Context<'_>,
    servers: &Servers,
    config: &Resolved,
    name: &str,
) -> Result<Code, SessionError> {
    let listed = ChosenServers::only(servers, name)?
        .ask_one(context, |connection, caller| connection.tools(caller))?;
    warn_of_gaps(context, name, &listed);
    if context.output.is_json() {
        let documents = listed.items.iter().map(|tool| {
            let mut document = tool_to_json(tool);
            // A tool may have several names, or none if it is disabled.
            document["offeredAs"] = json!(enabled_names(name, tool, config));
            document
        });
        context.output.json(&documents.collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let rows = listed.items.iter().map(|tool| {
        vec![
            shorten(&tool.name),
            enabled_names(name, tool, config).join(", "),
            shorten_first_line(tool.description.as_deref().or(tool.title.as_deref())),
        ]
    });
    context.output.table(&rows.collect::<Vec<_>>())?;
    if listed.items.is_empty() {
        context
            .output
            .status(&format!("The MCP server `{name}` has no tools."));
    }
    Ok(Code::Done)
}

/// Returns the names under which models see a tool of a server. A tool that is disabled has none.
fn enabled_names(server: &str, tool: &ToolInfo, config: &Resolved) -> Vec<String> {
    let configured = &config.config.conversation.tools;
    let mut names = offered_names(server, &tool.name, config).unwrap_or_default();
    names.retain(|name| {
        configured
            .get(name)
            .is_none_or(|tool| tool.enable != Some(false))
    });
    names
}

/// Describes a tool in the form of MCP.
fn tool_to_json(tool: &ToolInfo) -> Value {
    let mut document = json!({"name": tool.name, "inputSchema": tool.input_schema});
    for (key, text) in [("title", &tool.title), ("description", &tool.description)] {
        if let Some(text) = text {
            document[key] = text.clone().into();
        }
    }
    if let Some(schema) = &tool.output_schema {
        document["outputSchema"] = schema.clone().into();
    }
    if let Some(hints) = &tool.annotations {
        let hints = [
            ("readOnlyHint", hints.read_only_hint),
            ("destructiveHint", hints.destructive_hint),
            ("idempotentHint", hints.idempotent_hint),
            ("openWorldHint", hints.open_world_hint),
        ];
        let present = hints
            .into_iter()
            .filter_map(|(key, hint)| Some((key.to_owned(), hint?.into())));
        document["annotations"] = Value::Object(present.collect());
    }
    document
}
