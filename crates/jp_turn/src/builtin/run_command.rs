//! `run_command`: a command line, in the workspace.

use std::process::Command;

use jp_process::Bounds;
use jp_tool::{ContentBlock, ToolResponse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Builtin, files::Found, list_files, offered, parsed, preview};
use crate::{Preview, Tool, Toolbox, call::Plan, calls::Line};

/// How much a command may print, in bytes.
const MAX_BYTES: u64 = 16_000_000;

#[derive(Deserialize)]
struct Arguments {
    command: String,
    #[serde(default = "list_files::root")]
    path: String,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line, for `sh`."},
            "path": {"type": "string", "description": "The directory to run in, relative to the workspace root, which is the default."},
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    let description = "Runs a command line to its end and returns what it prints. It gets no input.";
    offered(Builtin::RunCommand, description, parameters)
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { command, path } = parsed(arguments)?;
    if command.trim().is_empty() || command.contains('\0') {
        return Err("`command` is no command line: it is empty, or has a NUL in it.".to_owned());
    }
    let spot = toolbox.files.readable(&path)?;
    if !matches!(spot.found, Found::Directory(_)) {
        return Err(format!("{} is no directory to run in.", spot.shown()));
    }
    let place = match spot.shown() {
        root if root == "." => String::new(),
        path => format!(" (in {})", preview::one_line(&path)),
    };
    let preview = Preview { title: format!("{}{place}", preview::one_line(&command)), detail: None };
    let directory = toolbox.files.absolute(&spot);
    let act = move |_: &Map<String, Value>, line: &Line| {
        let mut program = shell(&command);
        program.current_dir(&directory);
        for variable in &toolbox.surroundings.secret_variables {
            program.env_remove(variable);
        }
        run_program(program, &[], tool, toolbox, line)
    };
    Ok(Plan { preview, is_sensitive: false, act: Box::new(act) })
}

fn shell(command: &str) -> Command {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut program = Command::new(shell);
    program.args([flag, command]);
    program
}

/// Runs a program to its end and tells what it printed.
fn run_program(
    program: Command,
    _input: &[u8],
    tool: &Tool,
    _toolbox: &Toolbox,
    line: &Line,
) -> ToolResponse {
    let bounds = Bounds { timeout: tool.timeout, max_bytes: MAX_BYTES, is_moot: &|| line.is_cancelled() };
    match jp_process::run(program, &bounds) {
        Ok(Some(output)) => told(&output),
        Ok(None) => ToolResponse::error([ContentBlock::text("The call was interrupted.")]),
        Err(error) => ToolResponse::error([ContentBlock::text(format!("The command failed: {error}."))]),
    }
}

fn told(output: &jp_process::Output) -> ToolResponse {
    let mut blocks = Vec::new();
    if !output.stdout.is_empty() {
        blocks.push(ContentBlock::text(String::from_utf8_lossy(&output.stdout)));
    }
    if !output.stderr.is_empty() {
        blocks.push(ContentBlock::text(format!("stderr:\n{}", String::from_utf8_lossy(&output.stderr))));
    }
    match output.status {
        0 if blocks.is_empty() => blocks.push(ContentBlock::text("The command printed nothing.")),
        0 => {}
        status => blocks.push(ContentBlock::text(format!("The command ended with exit status {status}."))),
    }
    ToolResponse { is_error: output.status != 0, ..ToolResponse::new(blocks) }
}
