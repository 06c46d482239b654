//! The order of a model to a stateful tool: an action on a handle.

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
    /// Reads arguments that match the offered schema. The input of `spawn` must match the tool's
    /// own parameters, too.
    pub(super) fn read(tool: &Tool, arguments: &Map<String, Value>) -> Result<Self, String> {
        let name = text(arguments, "action");
        let action =
            Action::from_name(name).ok_or_else(|| format!("There is no action {name:?}."))?;
        let input = arguments
            .get("input")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if action == Action::Spawn {
            let misfit = format!(
                "The `input` does not match the parameters of `{}`",
                tool.name
            );
            arguments::check(&input, &tool.parameters, tool, &misfit)?;
        }
        Ok(Self {
            action,
            handle: text(arguments, "handle").to_owned(),
            input,
        })
    }

    /// Makes the preview: the action, the handle, the command line and the input.
    pub(super) fn preview(
        &self,
        tool: &Tool,
        surroundings: &Surroundings,
    ) -> Result<Preview, String> {
        let title = format!("{} {}", self.action.name(), self.handle);
        let sent = match &tool.source {
            _ if self.input.is_empty() => None,
            Source::Builtin(Builtin::Shell) => Some(shell::describe_input(&self.input)),
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
    pub(super) fn line(&self, kind: Payload, sent: &Map<String, Value>) -> Vec<u8> {
        let action = match kind {
            Payload::Arguments => self.action,
            Payload::Answers => Action::Apply,
        };
        let kind = match kind {
            Payload::Arguments => "arguments",
            Payload::Answers => "answers",
        };
        let mut line =
            json!({"action": action.name(), "handle": self.handle, kind: sent}).to_string();
        line.push('\n');
        line.into_bytes()
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The content of a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload {
    Arguments,
    Answers,
}

/// Makes the schema of a call: an action of the configured ones, a handle, and an input that names
/// the tool's own parameters without demanding them, as they are needed for `spawn` alone.
pub(super) fn schema(stateful: &Stateful, tool: &Tool) -> Map<String, Value> {
    let actions: Vec<_> = stateful
        .actions
        .iter()
        .map(|action| action.name())
        .collect();
    let meanings: Vec<_> = stateful
        .actions
        .iter()
        .map(|action| describe_action(*action))
        .collect();
    let mut input = json!({"type": "object", "description": describe_parameters(tool)});
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
                "description": "A name that you choose for the process that `spawn` starts. Use it again for the other actions. \
                    Make calls with the same handle one after another.",
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

fn describe_action(action: Action) -> &'static str {
    match action {
        Action::Spawn => "`spawn` starts it.",
        Action::Fetch => "`fetch` asks for its progress.",
        Action::Apply => "`apply` sends it input or answers its questions.",
        Action::Abort => "`abort` ends it.",
    }
}

fn describe_parameters(tool: &Tool) -> String {
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let names: Vec<_> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let needed = match names.as_slice() {
        [] => String::new(),
        names => format!(" `spawn` requires: {}.", names.join(", ")),
    };
    format!(
        "The input of the tool. If the tool is waiting for answers: one property for each question id.{needed}"
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
        Source::Builtin(_) | Source::Server(_) => {
            Err(format!("The tool `{}` is not stateful.", tool.name))
        }
    }
}
