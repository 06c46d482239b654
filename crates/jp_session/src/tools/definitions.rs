//! The tools that are not of MCP servers: the builtin ones, and those that the configuration defines.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    error::SessionError,
    notice::Notice,
    session::{Session, Setup},
    text::has_usual_characters,
    tools::{
        parameters,
        server_tools::{MAX_NAME, ServerToolName, is_about_server_tool},
        settings::{ALL, Settings, key},
    },
};
use jp_config::{CommandSetting, Layer, QuestionSettings, QuestionTarget, Resolved, ToolSettings};
use jp_turn::{Action, Answerer, Builtin, Command, Source, Stateful, Tool};

/// A tool, and whether it is on by default.
pub(crate) struct DefinedTool {
    pub(crate) tool: Tool,
    /// Models receive it if no flag says otherwise.
    pub(crate) is_on: bool,
}

/// Returns the builtin tools, and then the tools of the configuration that are not of MCP servers.
pub(crate) fn define_tools(setup: Setup<'_>) -> Result<Vec<DefinedTool>, SessionError> {
    let Setup { session, config } = setup;
    check_defaults(config)?;
    let mut defined = Vec::new();
    for builtin in Builtin::ALL {
        defined.push(define_builtin(builtin, config)?);
    }
    let names = config
        .config
        .conversation
        .tools
        .keys()
        .filter(|name| *name != ALL);
    for name in names.filter(|name| Builtin::from_name(name).is_none()) {
        let settings = Settings::new(name, config);
        match settings.own {
            Some(own) if is_about_server_tool(name, own, config) => {}
            Some(own) if !is_of_history(name, config) => {
                defined.extend(define_other(session, settings, own)?)
            }
            // A conversation that continued elsewhere may name tools that don't exist here.
            _ => {}
        }
    }
    Ok(defined)
}

/// Checks that the entry of all tools has only settings that can apply to all of them.
fn check_defaults(config: &Resolved) -> Result<(), SessionError> {
    let Some(all) = config.config.conversation.tools.get(ALL) else {
        return Ok(());
    };
    let Some(field) = list_specific_fields(all).next() else {
        return Ok(());
    };
    let failure = Settings::new(ALL, config).fault(&[field], "can't be set for all tools");
    Err(failure.with_hint("set it for one tool, in [conversation.tools.NAME]."))
}

/// Returns the fields that are set and that only make sense for one tool.
pub(crate) fn list_specific_fields(
    settings: &ToolSettings,
) -> impl Iterator<Item = &'static str> + use<> {
    let fields = [
        ("source", settings.source.is_some()),
        ("command", settings.command.is_some()),
        ("summary", settings.summary.is_some()),
        ("description", settings.description.is_some()),
        ("parameters", !settings.parameters.is_empty()),
        ("questions", !settings.questions.is_empty()),
        ("options", !settings.options.is_empty()),
        ("stateful", settings.stateful.is_some()),
        ("actions", settings.actions.is_some()),
        ("keep", settings.keep.is_some()),
    ];
    fields
        .into_iter()
        .filter_map(|(field, is_set)| is_set.then_some(field))
}

/// Returns whether only the conversation's history has an entry of a tool.
fn is_of_history(name: &str, config: &Resolved) -> bool {
    let layers = config.contributors(&key(name, &[]).to_string());
    layers.iter().all(|layer| **layer == Layer::Conversation)
}

/// Applies the configuration to a builtin tool.
fn define_builtin(builtin: Builtin, config: &Resolved) -> Result<DefinedTool, SessionError> {
    let mut tool = builtin.tool();
    let name = tool.name.clone();
    let settings = Settings::new(&name, config);
    // By default, only tools that can't change anything are on.
    let is_on = settings.enable().unwrap_or(builtin.is_reader());
    let Some(own) = settings.own else {
        apply_limits(&mut tool, settings)?;
        return Ok(DefinedTool { tool, is_on });
    };
    // `source = "builtin"` says nothing new, but is no mistake.
    let is_builtin = own
        .source
        .as_deref()
        .is_none_or(|source| source == "builtin");
    if !is_builtin || own.command.is_some() {
        let field = if is_builtin { "command" } else { "source" };
        let failure = settings.fault(&[field], &format!("redefines the builtin tool `{name}`"));
        return Err(failure.with_hint("give your tool another name."));
    }
    /// The fields that a builtin tool can have.
    const FREE: [&str; 4] = ["source", "questions", "options", "keep"];
    if let Some(field) = list_specific_fields(own).find(|field| !FREE.contains(field)) {
        let failure = settings.fault(
            &[field],
            &format!("has no effect on the builtin tool `{name}`"),
        );
        return Err(failure.with_hint("remove it, or define a tool with another name."));
    }
    apply_limits(&mut tool, settings)?;
    tool.options.clone_from(&own.options);
    tool.questions = answerers(&own.questions);
    match (&mut tool.stateful, own.keep) {
        (Some(stateful), Some(keep)) => stateful.keep = keep,
        (None, Some(_)) => {
            return Err(settings.fault(&["keep"], "has no effect: the tool is not stateful"));
        }
        (_, None) => {}
    }
    Ok(DefinedTool { tool, is_on })
}

/// Defines a tool of the configuration; `None` if it is of an MCP server.
fn define_other(
    session: &Session,
    settings: Settings<'_>,
    own: &ToolSettings,
) -> Result<Option<DefinedTool>, SessionError> {
    let name = settings.name;
    match own.source.as_deref() {
        None | Some("local") => define_local(settings, own).map(Some),
        Some("builtin") => {
            let names = Builtin::ALL.map(|builtin| builtin.tool().name).join(", ");
            let failure = settings.fault(
                &["source"],
                &format!("is \"builtin\", but there is no builtin tool `{name}`"),
            );
            Err(failure.with_hint(format!("the builtin tools are: {names}.")))
        }
        Some(source) if source.starts_with("mcp.") => {
            let Some(ServerToolName { server, .. }) = ServerToolName::parse(source, name) else {
                let failure = settings.fault(&["source"], "names no server");
                return Err(failure.with_hint(
                    "write `mcp.SERVER.TOOL`, or `mcp.SERVER` for a tool of the same name.",
                ));
            };
            if settings.config.config.providers.mcp.contains_key(server)
                || own.enable == Some(false)
            {
                return Ok(None);
            }
            // Only a notice, because people who share a workspace have different servers.
            let key = key(name, &["source"]).to_string();
            let layer = settings.config.contributors(&key).pop();
            session.person.tell(Notice::ToolWithoutServer {
                key,
                layer: layer.unwrap_or(&Layer::Default).to_string(),
                server: server.to_owned(),
            });
            Ok(None)
        }
        Some(source) => {
            let failure = settings.fault(
                &["source"],
                &format!("is not a source of tools: `{source}`"),
            );
            Err(failure.with_hint("use `local`, `builtin` or `mcp.SERVER.TOOL`."))
        }
    }
}

/// Defines a tool that is a program of the user's.
fn define_local(settings: Settings<'_>, own: &ToolSettings) -> Result<DefinedTool, SessionError> {
    check_name(settings)?;
    let source = Source::Local(command(settings, own)?);
    let parameters = parameters::schema(settings, own)?;
    let mut tool = Tool::new(settings.name, parameters, source);
    apply_limits(&mut tool, settings)?;
    tool.description = join_description(own);
    tool.options.clone_from(&own.options);
    tool.questions = answerers(&own.questions);
    tool.stateful = stateful(settings, own)?;
    Ok(DefinedTool {
        tool,
        is_on: settings.enable().unwrap_or(true),
    })
}

/// Joins the summary and the description of a tool; empty if it has neither.
pub(crate) fn join_description(own: &ToolSettings) -> String {
    let texts: Vec<_> = [&own.summary, &own.description]
        .into_iter()
        .flatten()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n")
}

/// Checks that providers accept the name.
fn check_name(settings: Settings<'_>) -> Result<(), SessionError> {
    if (1..=MAX_NAME).contains(&settings.name.len()) && has_usual_characters(settings.name) {
        return Ok(());
    }
    let failure = settings.fault(&[], "has a name that providers refuse");
    Err(failure.with_hint("use 1 to 64 of these characters: a-z, A-Z, 0-9, _ and -."))
}

/// Returns the program and its arguments.
fn command(settings: Settings<'_>, own: &ToolSettings) -> Result<Command, SessionError> {
    const EXAMPLE: &str =
        r#"set a program and its arguments, as in command = "scripts/count --lines"."#;
    const SAFE: &str = r#"pass the argument as a separate word: command = ["sh", "-c", 'grep -e "$1" notes.txt', "sh", "{{tool.arguments.pattern}}"]"#;
    const FILTERS: &str =
        "awk takes the argument with `-v word={{tool.arguments.word}}`, sed after `-e PROGRAM --`.";
    let words = match &own.command {
        None => {
            let failure = settings.fault(&[], "has no command, and is not a builtin tool");
            return Err(failure.with_hint(EXAMPLE));
        }
        Some(CommandSetting::Words(words)) => words.clone(),
        // jp splits the line as a shell does, but no shell runs it.
        Some(CommandSetting::Line(line)) => shlex::split(line)
            .ok_or_else(|| settings.fault(&["command"], "has an unclosed quotation mark"))?,
    };
    if words.first().is_none_or(String::is_empty) {
        return Err(settings.fault(&["command"], "is empty").with_hint(EXAMPLE));
    }
    let command = Command { words };
    if let Some(code) = command.unsafe_code() {
        let fault = format!(
            "puts a model's argument where it may run as code: {code:?}; the model could run any command"
        );
        let failure = settings.fault(&["command"], &fault).with_hint(SAFE);
        let is_filter = command
            .words
            .iter()
            .any(|word| word.ends_with("awk") || word.ends_with("sed"));
        return Err(if is_filter {
            failure.with_hint(FILTERS)
        } else {
            failure
        });
    }
    Ok(command)
}

/// Applies the configured timeout and size of results.
pub(crate) fn apply_limits(tool: &mut Tool, settings: Settings<'_>) -> Result<(), SessionError> {
    if let Some(seconds) = settings.first(|settings| settings.timeout_secs) {
        if seconds == 0 {
            let is_own = settings.own.is_some_and(|own| own.timeout_secs.is_some());
            let source = match is_own {
                true => settings,
                false => Settings::new(ALL, settings.config),
            };
            return Err(source.fault(&["timeout_secs"], "is 0; the minimum is 1"));
        }
        tool.timeout = Duration::from_secs(seconds);
    }
    if let Some(bytes) = settings.first(|settings| settings.max_output_bytes) {
        let bytes = usize::try_from(bytes.bytes()).unwrap_or(usize::MAX);
        (tool.max_output_bytes, tool.max_binary_bytes) = (bytes, bytes);
    }
    Ok(())
}

/// Returns who answers each question of a tool.
pub(crate) fn answerers(
    questions: &BTreeMap<String, QuestionSettings>,
) -> BTreeMap<String, Answerer> {
    questions
        .iter()
        .map(|(id, question)| (id.clone(), answerer(question)))
        .collect()
}

fn answerer(question: &QuestionSettings) -> Answerer {
    match (&question.answer, question.target) {
        (Some(answer), _) => Answerer::Fixed(answer.clone()),
        (None, QuestionTarget::Assistant) => Answerer::Assistant,
        (None, QuestionTarget::User) => Answerer::User,
    }
}

/// Returns how a tool keeps running between calls, if it does.
fn stateful(settings: Settings<'_>, own: &ToolSettings) -> Result<Option<Stateful>, SessionError> {
    if own.stateful != Some(true) {
        let mut fields = list_specific_fields(own);
        return match fields.find(|field| ["actions", "keep"].contains(field)) {
            Some(field) => Err(settings
                .fault(&[field], "has no effect: the tool is not stateful")
                .with_hint("add `stateful = true` if it keeps running between calls.")),
            None => Ok(None),
        };
    }
    let all = vec![Action::Spawn, Action::Fetch, Action::Apply, Action::Abort];
    let actions = own
        .actions
        .as_ref()
        .map_or(all, |actions| actions.iter().map(action).collect());
    if actions.is_empty() {
        return Err(settings.fault(&["actions"], "is empty: the tool needs at least one action"));
    }
    Ok(Some(Stateful {
        actions,
        keep: own.keep == Some(true),
    }))
}

fn action(action: &jp_config::Action) -> Action {
    match action {
        jp_config::Action::Spawn => Action::Spawn,
        jp_config::Action::Fetch => Action::Fetch,
        jp_config::Action::Apply => Action::Apply,
        jp_config::Action::Abort => Action::Abort,
    }
}
