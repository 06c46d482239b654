//! `run_command`: a command line, in the workspace.

use std::process::Command;

use jp_process::{Bounds, Captured, End};
use jp_tool::{ContentBlock, ToolResponse};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    declare::{declare, read_arguments},
    files::Found,
    kind::Builtin,
    list_files, preview,
};
use crate::{
    Preview, Tool, Toolbox,
    line::Line,
    parse::{MAX_PRINTED, sentence, stderr_block, text, warning_block},
    plan::Plan,
};

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
    let description =
        "Runs a command line to its end and returns what it prints. It gets no input.";
    declare(Builtin::RunCommand, description, parameters)
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { command, path } = read_arguments(arguments)?;
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
    let preview = Preview {
        title: format!("{}{place}", preview::one_line(&command)),
        detail: None,
    };
    let act = move |_: &Map<String, Value>, line: &Line| {
        // It may be another by now, and lead elsewhere.
        let spot = match toolbox.files.readable(&path) {
            Ok(spot) => spot,
            Err(reason) => return ToolResponse::from_error(reason),
        };
        let mut program = shell(&command);
        program.current_dir(toolbox.files.absolute(&spot));
        for variable in &toolbox.surroundings.secret_variables {
            program.env_remove(variable);
        }
        run(program, tool, line)
    };
    Ok(Plan {
        preview,
        is_sensitive: false,
        act: Box::new(act),
    })
}

fn shell(command: &str) -> Command {
    let (shell, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut program = Command::new(shell);
    program.args([flag, command]);
    program
}

/// Runs a program to its end and tells what it printed: as text, whatever it is.
fn run(program: Command, tool: &Tool, line: &Line) -> ToolResponse {
    let bounds = Bounds {
        timeout: tool.timeout,
        max_bytes: MAX_PRINTED as u64,
        is_moot: &|| line.is_cancelled(),
    };
    match jp_process::capture(program, &[], &bounds) {
        Ok(captured) => told(captured, line),
        Err(error) => ToolResponse::from_error(format!("The command failed: {error}.")),
    }
}

fn told(captured: Captured, line: &Line) -> ToolResponse {
    let mut warnings = Vec::new();
    let is_whole = captured.stdout.left_out() + captured.stderr.left_out() == 0;
    let stdout = text(captured.stdout, "standard output", &mut warnings);
    let stderr = text(captured.stderr, "standard error", &mut warnings);
    let mut blocks = Vec::new();
    if !stdout.is_empty() {
        blocks.push(ContentBlock::text(stdout));
    }
    blocks.extend(stderr_block(stderr));
    let end = match captured.end {
        End::Exited(0) if blocks.is_empty() => Some("The command printed nothing.".to_owned()),
        End::Exited(0) => None,
        end => Some(sentence("command", end)),
    };
    blocks.extend(end.map(ContentBlock::text));
    if captured.was_held {
        warnings.push(
            "something that it started still held its output; it is not waited for".to_owned(),
        );
    }
    for warning in &warnings {
        line.notice(format!("`run_command`: {warning}"));
    }
    blocks.extend(warning_block(&warnings));
    ToolResponse {
        is_error: captured.end != End::Exited(0) || !is_whole,
        ..ToolResponse::new(blocks)
    }
}
