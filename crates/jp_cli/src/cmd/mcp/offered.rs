//! `jp mcp ls`: the servers, and the tools of one.

use crate::{
    cmd::mcp::{Answer, Chosen, SHOWN_URI, chosen, first_line, listed::warn_of, shown},
    context::Context,
    error::{Code, Failure},
    output::table,
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

/// What a server offers, and what was amiss with its lists.
struct Offer {
    about: About,
    tools: Count,
    resources: Count,
    templates: Count,
}

/// How many there are; `None` where the list could not be had.
struct Count {
    number: Option<usize>,
    /// What kept it from being all.
    trouble: Option<ServerError>,
}

/// Lists the servers; one that fails has its place like the others.
pub(super) fn list(context: &Context<'_>, servers: &Servers) -> Result<Code, Failure> {
    let chosen = chosen(context, servers, &[])?;
    let answers = chosen.ask(context, Offer::of)?;
    let has_failed = !answers.is_empty() && answers.iter().all(|(_, answer)| answer.is_err());
    let code = if has_failed { Code::Failed } else { Code::Done };
    if context.output.is_json() {
        context.output.json(
            &answers
                .iter()
                .map(|answer| document(servers, answer))
                .collect::<Vec<_>>(),
        )?;
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
        "says it is",
        "",
    ]
    .map(str::to_owned)
    .to_vec();
    let rows = answers.iter().map(|answer| cells(servers, answer));
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    table(&rows)
        .iter()
        .try_for_each(|line| context.output.line(line.trim_end()))?;
    answers.iter().for_each(|answer| explain(context, answer));
    Ok(code)
}

impl Offer {
    fn of(connection: &Connection, caller: &dyn Caller) -> Result<Self, ServerError> {
        Ok(Self {
            about: connection.about().clone(),
            tools: Count::of(connection.tools(caller))?,
            resources: Count::of(connection.resources(caller))?,
            templates: Count::of(connection.templates(caller))?,
        })
    }

    fn counts(&self) -> [&Count; 3] {
        [&self.tools, &self.resources, &self.templates]
    }

    /// Returns the name and the version that the server gives itself.
    fn name(&self) -> String {
        let name = self.about.name.iter().chain(&self.about.version);
        let name: Vec<_> = name.map(|word| shown(word)).collect();
        if name.is_empty() {
            "-".to_owned()
        } else {
            name.join(" ")
        }
    }
}

impl Count {
    /// Counts; a list that can't be had is no reason to have none of the others, unless nobody waits or answers any more.
    fn of<T>(listed: Result<Listed<T>, ServerError>) -> Result<Self, ServerError> {
        match listed {
            Ok(listed) => Ok(Self {
                number: Some(listed.items.len()),
                trouble: listed.cut,
            }),
            Err(error) if matches!(error.fault, Fault::Refused { .. } | Fault::Malformed(_)) => {
                Ok(Self {
                    number: None,
                    trouble: Some(error),
                })
            }
            Err(error) => Err(error),
        }
    }

    fn cell(&self) -> String {
        let more = if self.trouble.is_some() { "+" } else { "" };
        self.number.map_or_else(
            || "?".to_owned(),
            |number| size::thousands(number as u64) + more,
        )
    }
}

fn cells(servers: &Servers, (server, answer): &Answer<Offer>) -> Vec<String> {
    let nothing = || "-".to_owned();
    match answer {
        Ok(offer) => {
            let reached = servers.description(server);
            let reached = shown(&without_credentials(
                reached.strip_prefix("it ").unwrap_or(reached),
            ));
            let [tools, resources, templates] = offer.counts().map(Count::cell);
            vec![
                server.clone(),
                tools,
                resources,
                templates,
                shown(&offer.about.revision),
                offer.name(),
                reached,
            ]
        }
        Err(refusal) => {
            let state = advice::state(refusal);
            vec![
                server.clone(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                state,
            ]
        }
    }
}

/// Says what there is no room for in the table.
fn explain(context: &Context<'_>, (server, answer): &Answer<Offer>) {
    match answer {
        Ok(offer) => {
            let troubles = offer
                .counts()
                .into_iter()
                .filter_map(|count| count.trouble.as_ref());
            troubles.for_each(|error| {
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

fn document(servers: &Servers, (server, answer): &Answer<Offer>) -> Value {
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
                .zip(offer.counts())
            {
                document[key] = json!(count.number);
            }
            let warnings = offer
                .counts()
                .into_iter()
                .filter_map(|count| count.trouble.as_ref());
            document["warnings"] = warnings.map(|error| error.to_string()).collect();
        }
        Err(refusal) => {
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
pub(super) fn tools(
    context: &Context<'_>,
    servers: &Servers,
    config: &Resolved,
    name: &str,
) -> Result<Code, Failure> {
    servers.check(name)?;
    let one = Chosen {
        servers,
        names: vec![name],
    };
    let listed = one.ask_one(context, |connection, caller| connection.tools(caller))?;
    warn_of(context, name, &listed);
    let offered = |tool: &ToolInfo| {
        on(
            offered_names(name, &tool.name, config).unwrap_or_default(),
            config,
        )
    };
    if context.output.is_json() {
        let document = |info: &ToolInfo| {
            let mut document = tool(info);
            document["offeredAs"] = json!(offered(info));
            document
        };
        context
            .output
            .json(&listed.items.iter().map(document).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let cells = |tool: &ToolInfo| {
        let said = tool.description.as_deref().or(tool.title.as_deref());
        vec![
            shown(&tool.name),
            offered(tool).join(", "),
            first_line(said),
        ]
    };
    let rows: Vec<_> = listed.items.iter().map(cells).collect();
    table(&rows)
        .iter()
        .try_for_each(|line| context.output.line(line.trim_end()))?;
    if listed.items.is_empty() {
        context
            .output
            .status(&format!("The MCP server `{name}` has no tools."));
    }
    Ok(Code::Done)
}

/// Leaves out the names of tools that are switched off.
fn on(names: Vec<String>, config: &Resolved) -> Vec<String> {
    let tools = &config.config.conversation.tools;
    let is_on = |name: &String| tools.get(name).is_none_or(|own| own.enable != Some(false));
    names.into_iter().filter(is_on).collect()
}

/// Describes a tool as MCP does.
fn tool(tool: &ToolInfo) -> Value {
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
        let said = hints
            .into_iter()
            .filter_map(|(key, hint)| Some((key.to_owned(), hint?.into())));
        document["annotations"] = Value::Object(said.collect());
    }
    document
}
