//! What the model wants done with a stateful tool.

use std::process::Command;

use serde_json::{Map, Value, json};

use crate::{
    Action, Builtin, Preview, Source, Stateful, Surroundings, Tool, arguments, builtin::shell,
    local,
};

/// One action on one handle.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) action: Action,
    pub(super) handle: String,
    pub(super) input: Map<String, Value>,
}

impl Order {
    /// Reads arguments that fit the offered schema; what is spawned must fit the tool's own parameters too.
    pub(super) fn read(tool: &Tool, arguments: &Map<String, Value>) -> Result<Self, String> {
        let word = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let action = Action::from_name(word("action"))
            .ok_or_else(|| format!("There is no action {:?}.", word("action")))?;
        let input = arguments
            .get("input")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if action == Action::Spawn {
            let misfit = format!("The `input` does not fit the parameters of `{}`", tool.name);
            arguments::check(&input, &tool.parameters, tool, &misfit)?;
        }
        Ok(Self {
            action,
            handle: word("handle").to_owned(),
            input,
        })
    }

    /// Shows the action, the handle, what runs and what is sent.
    pub(super) fn preview(
        &self,
        tool: &Tool,
        surroundings: &Surroundings,
    ) -> Result<Preview, String> {
        let title = format!("{} {}", self.action.name(), self.handle);
        let sent = match &tool.source {
            _ if self.input.is_empty() => None,
            Source::Builtin(Builtin::Shell) => Some(shell::shown(&self.input)),
            _ => serde_json::to_string_pretty(&self.input).ok(),
        };
        let (Source::Local(command), Action::Spawn) = (&tool.source, self.action) else {
            return Ok(Preview {
                title,
                detail: sent,
            });
        };
        let program = local::preview(command, tool, &self.input, surroundings)?;
        let detail: Vec<_> = program.detail.into_iter().chain(sent).collect();
        Ok(Preview {
            title: format!("{title}: {}", program.title),
            detail: (!detail.is_empty()).then(|| detail.join("\n")),
        })
    }

    /// Makes the line that the process reads.
    pub(super) fn line(&self, kind: Kind, sent: &Map<String, Value>) -> Vec<u8> {
        let action = match kind {
            Kind::Arguments => self.action,
            Kind::Answers => Action::Apply,
        };
        let kind = match kind {
            Kind::Arguments => "arguments",
            Kind::Answers => "answers",
        };
        let mut line =
            json!({"action": action.name(), "handle": self.handle, kind: sent}).to_string();
        line.push('\n');
        line.into_bytes()
    }
}

/// What a line brings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Arguments,
    Answers,
}

/// Makes the schema of a call: an action of the configured ones, a handle, and an input that names the tool's own
/// parameters without demanding them, as they are needed for `spawn` alone.
pub(super) fn schema(stateful: &Stateful, tool: &Tool) -> Map<String, Value> {
    let actions: Vec<_> = stateful
        .actions
        .iter()
        .map(|action| action.name())
        .collect();
    let meanings: Vec<_> = stateful
        .actions
        .iter()
        .map(|action| meaning(*action))
        .collect();
    let mut input = json!({"type": "object", "description": described(tool)});
    if let Some(properties) = tool.parameters.get("properties") {
        input["properties"] = properties.clone();
    }
    let mut schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": actions, "description": meanings.join(" ")},
            "handle": {
                "type": "string",
                "pattern": "^[A-Za-z0-9_.-]{1,64}$",
                "description": "A name of your choice for what `spawn` starts; the other actions name it again. \
                    Calls with the same handle are to be made one after another.",
            },
            "input": input,
        },
        "required": ["action", "handle"],
        "additionalProperties": false,
    });
    // References of the properties lead to the top of the document.
    for definitions in ["$defs", "definitions"] {
        if let Some(found) = tool.parameters.get(definitions) {
            schema[definitions] = found.clone();
        }
    }
    match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("an object was written"),
    }
}

fn meaning(action: Action) -> &'static str {
    match action {
        Action::Spawn => "`spawn` starts it.",
        Action::Fetch => "`fetch` asks how far it is.",
        Action::Apply => "`apply` gives it more, or answers its questions.",
        Action::Abort => "`abort` ends it.",
    }
}

fn described(tool: &Tool) -> String {
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let names: Vec<_> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let needed = match names.as_slice() {
        [] => String::new(),
        names => format!(" `spawn` needs: {}.", names.join(", ")),
    };
    format!(
        "What the tool is given; where it waits for answers, those, by the ids of its questions.{needed}"
    )
}

/// Makes the command of a tool, in the workspace root and without what programs are not to have.
pub(super) fn command(
    tool: &Tool,
    input: &Map<String, Value>,
    surroundings: &Surroundings,
) -> Result<Command, String> {
    local::check_root(tool, surroundings)?;
    let document = local::document(tool, input, &Map::new(), surroundings);
    match &tool.source {
        Source::Local(command) => Ok(local::program(&command.words, &document, surroundings)),
        Source::Builtin(Builtin::Shell) => {
            let executable = surroundings.executable.to_string_lossy().into_owned();
            Ok(local::program(
                &[executable, shell::SUBCOMMAND.to_owned()],
                &document,
                surroundings,
            ))
        }
        Source::Builtin(_) | Source::Server(_) => Err(format!(
            "The tool `{}` does not live on between calls.",
            tool.name
        )),
    }
}
