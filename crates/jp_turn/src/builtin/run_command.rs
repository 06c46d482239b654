//! `run_command`: runs a command line in the workspace.

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
    parse::{HELD_OUTPUT, MAX_PRINTED, decode_output, describe_end, stderr_block, warning_block},
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
            "path": {"type": "string", "description": "The directory to run in, relative to the workspace root. Default: the root."},
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    let description = "Runs a command and returns its output. The command gets no input.";
    declare(Builtin::RunCommand, description, parameters)
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let Arguments { command, path } = read_arguments(arguments)?;
    if command.trim().is_empty() || command.contains('\0') {
        return Err("`command` is empty or contains a NUL.".to_owned());
    }
    let spot = toolbox.files.find_readable(&path)?;
    if !matches!(spot.found, Found::Directory(_)) {
        return Err(format!("{} is not a directory.", spot.display()));
    }
    let place = match spot.display() {
        root if root == "." => String::new(),
        path => format!(" (in {})", preview::one_line(&path)),
    };
    let preview = Preview::from_title(format!("{}{place}", preview::one_line(&command)));
    let act = move |_: &Map<String, Value>, line: &Line| {
        // The directory may have been replaced by a link since the prompt.
        let spot = match toolbox.files.find_readable(&path) {
            Ok(spot) => spot,
            Err(reason) => return ToolResponse::from_error(reason),
        };
        let mut program = shell_command(&command);
        program.current_dir(toolbox.files.absolute_path(&spot));
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

fn shell_command(command: &str) -> Command {
    let (shell, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut program = Command::new(shell);
    program.args([flag, command]);
    program
}

/// Runs a program to its end. Its output is always text, even if it looks like a response.
fn run(program: Command, tool: &Tool, line: &Line) -> ToolResponse {
    let bounds = Bounds {
        timeout: tool.timeout,
        max_bytes: MAX_PRINTED as u64,
        is_moot: &|| line.is_cancelled(),
    };
    match jp_process::capture(program, &[], &bounds) {
        Ok(captured) => make_response(captured, line),
        Err(error) => ToolResponse::from_error(format!("The command failed: {error}.")),
    }
}

fn make_response(captured: Captured, line: &Line) -> ToolResponse {
    let mut warnings = Vec::new();
    let is_whole = captured.stdout.left_out() + captured.stderr.left_out() == 0;
    let stdout = decode_output(captured.stdout, "standard output", &mut warnings);
    let stderr = decode_output(captured.stderr, "standard error", &mut warnings);
    let mut blocks = Vec::new();
    if !stdout.is_empty() {
        blocks.push(ContentBlock::text(stdout));
    }
    blocks.extend(stderr_block(stderr));
    let end = match captured.end {
        End::Exited(0) if blocks.is_empty() => Some("The command printed nothing.".to_owned()),
        End::Exited(0) => None,
        end => Some(describe_end("command", end)),
    };
    blocks.extend(end.map(ContentBlock::text));
    if captured.was_held {
        warnings.push(HELD_OUTPUT.to_owned());
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
