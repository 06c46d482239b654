//! Local tools: programs of the person's.

use jp_process::{Bounds, ProcessError};
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value};

use crate::{Preview, Tool, Toolbox, call::Plan, calls::Line};

/// What a local tool runs; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; `{{context}}` stands for the JSON document that the tool is given.
    pub words: Vec<String>,
}

/// Plans a call of a local tool.
pub(crate) fn plan<'a>(
    command: &'a Command,
    tool: &'a Tool,
    _arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let preview = Preview { title: command.words.join(" "), detail: None };
    let act = move |_: &Map<String, Value>, line: &Line| run(command, tool, toolbox, line);
    Ok(Plan { preview, is_sensitive: false, act: Box::new(act) })
}

fn run(command: &Command, tool: &Tool, toolbox: &Toolbox, line: &Line) -> ToolResponse {
    let mut program = std::process::Command::new(&command.words[0]);
    program.args(&command.words[1..]).current_dir(&toolbox.surroundings.root);
    let bounds = Bounds { timeout: tool.timeout, max_bytes: 16_000_000, is_moot: &|| line.is_cancelled() };
    match jp_process::run(program, &bounds) {
        Ok(Some(output)) => ToolResponse::new([ContentBlock::text(String::from_utf8_lossy(&output.stdout))]),
        Ok(None) => ToolResponse::error([ContentBlock::text("The call was interrupted.")]),
        Err(error) => failed(&error),
    }
}

fn failed(error: &ProcessError) -> ToolResponse {
    ToolResponse::error([ContentBlock::text(error.to_string())])
}
