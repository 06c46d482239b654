//! Which tools there are: jp's own, and those that the configuration declares.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    error::SessionError,
    notice::Notice,
    session::{Session, Setup},
    tools::{
        parameters,
        served::{ServedName, is_about_served},
        settings::{ALL, Settings, key},
    },
};
use jp_config::{CommandSetting, Layer, QuestionSettings, QuestionTarget, Resolved, ToolSettings};
use jp_turn::{Action, Answerer, Builtin, Command, Source, Stateful, Tool};

/// A tool that there is.
pub(crate) struct Declared {
    pub(crate) tool: Tool,
    /// Whether models are offered it where no flag says otherwise.
    pub(crate) is_on: bool,
}

/// Returns all tools but those of MCP servers, in the order in which models are told of them.
pub(crate) fn all(setup: Setup<'_>) -> Result<Vec<Declared>, SessionError> {
    let Setup { session, config } = setup;
    check_defaults(config)?;
    let mut declared = Vec::new();
    for builtin in Builtin::ALL {
        declared.push(own(builtin, config)?);
    }
    let names = config
        .config
        .conversation
        .tools
        .keys()
        .filter(|name| *name != ALL);
    for name in names.filter(|name| Builtin::named(name).is_none()) {
        let settings = Settings::of(name, config);
        match settings.own {
            Some(own) if is_about_served(name, own, config) => {}
            Some(own) if !is_history(name, config) => {
                declared.extend(other(session, settings, own)?)
            }
            // The tools of a conversation that went on elsewhere are not all here.
            _ => {}
        }
    }
    Ok(declared)
}

/// Checks that what is said of all tools is something that can hold for all of them.
fn check_defaults(config: &Resolved) -> Result<(), SessionError> {
    let Some(all) = config.config.conversation.tools.get(ALL) else {
        return Ok(());
    };
    let Some(field) = set(all).into_iter().next() else {
        return Ok(());
    };
    let failure = Settings::of(ALL, config).fault(&[field], "can't be set for all tools");
    Err(failure.with_hint("set it for one tool, in [conversation.tools.NAME]."))
}

/// Names the fields that are set and that are about one tool alone.
pub(crate) fn set(settings: &ToolSettings) -> Vec<&'static str> {
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
        .collect()
}

/// Returns whether a tool is known from the conversation's history alone.
fn is_history(name: &str, config: &Resolved) -> bool {
    let layers = config.contributors(&key(name, &[]).to_string());
    layers.iter().all(|layer| **layer == Layer::Conversation)
}

/// Puts a tool of jp's own together.
fn own(builtin: Builtin, config: &Resolved) -> Result<Declared, SessionError> {
    let mut tool = builtin.tool();
    let name = tool.name.clone();
    let settings = Settings::of(&name, config);
    let is_reader = builtin.is_reader();
    let is_on = settings.enable().unwrap_or(is_reader);
    let Some(own) = settings.own else {
        limit(&mut tool, settings)?;
        return Ok(Declared { tool, is_on });
    };
    let is_builtin = own
        .source
        .as_deref()
        .is_none_or(|source| source == "builtin");
    if !is_builtin || own.command.is_some() {
        let field = if is_builtin { "command" } else { "source" };
        let failure = settings.fault(&[field], &format!("redefines the builtin tool `{name}`"));
        return Err(failure.with_hint("give your tool another name."));
    }
    const FREE: [&str; 4] = ["source", "questions", "options", "keep"];
    if let Some(field) = set(own).into_iter().find(|field| !FREE.contains(field)) {
        let failure = settings.fault(
            &[field],
            &format!("has no effect on the builtin tool `{name}`"),
        );
        return Err(failure.with_hint("remove it, or define a tool with another name."));
    }
    limit(&mut tool, settings)?;
    tool.options.clone_from(&own.options);
    tool.questions = answerers(&own.questions);
    match (&mut tool.stateful, own.keep) {
        (Some(stateful), Some(keep)) => stateful.keep = keep,
        (None, Some(_)) => {
            return Err(settings.fault(&["keep"], "has no effect: the tool is not stateful"));
        }
        (_, None) => {}
    }
    Ok(Declared { tool, is_on })
}

/// Puts together a tool that the configuration declares; `None` if an MCP server has it.
fn other(
    session: &Session,
    settings: Settings<'_>,
    own: &ToolSettings,
) -> Result<Option<Declared>, SessionError> {
    let name = settings.name;
    match own.source.as_deref() {
        None | Some("local") => local(settings, own).map(Some),
        Some("builtin") => {
            let names = Builtin::ALL.map(|builtin| builtin.tool().name).join(", ");
            let failure = settings.fault(
                &["source"],
                &format!("is \"builtin\", but there is no builtin tool `{name}`"),
            );
            Err(failure.with_hint(format!("the builtin tools are: {names}.")))
        }
        Some(source) if source.starts_with("mcp.") => {
            let Some(ServedName { server, .. }) = ServedName::read(source, name) else {
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
            // Servers are each person's own, and a workspace is everybody's.
            let (key, layer) = settings.find_origin(&["source"]);
            session.person.tell(Notice::ToolWithoutServer {
                key,
                layer: layer.to_string(),
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

/// Puts together a tool that is a program of the person's.
fn local(settings: Settings<'_>, own: &ToolSettings) -> Result<Declared, SessionError> {
    check_name(settings)?;
    let source = Source::Local(command(settings, own)?);
    let parameters = parameters::schema(settings, own)?;
    let mut tool = Tool::new(settings.name, parameters, source);
    limit(&mut tool, settings)?;
    let said = [&own.summary, &own.description]
        .into_iter()
        .flatten()
        .map(|text| text.trim());
    tool.description = said
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    tool.options.clone_from(&own.options);
    tool.questions = answerers(&own.questions);
    tool.stateful = stateful(settings, own)?;
    Ok(Declared {
        tool,
        is_on: settings.enable().unwrap_or(true),
    })
}

/// Checks that providers take the name.
fn check_name(settings: Settings<'_>) -> Result<(), SessionError> {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=64).contains(&settings.name.len()) && settings.name.bytes().all(is_usual) {
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

/// Takes over what bounds a run.
pub(crate) fn limit(tool: &mut Tool, settings: Settings<'_>) -> Result<(), SessionError> {
    if let Some(seconds) = settings.first(|settings| settings.timeout_secs) {
        if seconds == 0 {
            let is_own = settings.own.is_some_and(|own| own.timeout_secs.is_some());
            let settings = if is_own {
                settings
            } else {
                Settings::of(ALL, settings.config)
            };
            return Err(settings.fault(&["timeout_secs"], "is 0; the minimum is 1"));
        }
        tool.timeout = Duration::from_secs(seconds);
    }
    if let Some(bytes) = settings.first(|settings| settings.max_output_bytes) {
        let bytes = usize::try_from(bytes.bytes()).unwrap_or(usize::MAX);
        (tool.max_output_bytes, tool.max_binary_bytes) = (bytes, bytes);
    }
    Ok(())
}

pub(crate) fn answerers(
    questions: &BTreeMap<String, QuestionSettings>,
) -> BTreeMap<String, Answerer> {
    let answerer = |question: &QuestionSettings| match (&question.answer, question.target) {
        (Some(answer), _) => Answerer::Fixed(answer.clone()),
        (None, QuestionTarget::Assistant) => Answerer::Assistant,
        (None, QuestionTarget::User) => Answerer::User,
    };
    questions
        .iter()
        .map(|(id, question)| (id.clone(), answerer(question)))
        .collect()
}

fn stateful(settings: Settings<'_>, own: &ToolSettings) -> Result<Option<Stateful>, SessionError> {
    if own.stateful != Some(true) {
        let moot = set(own)
            .into_iter()
            .find(|field| ["actions", "keep"].contains(field));
        return match moot {
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
