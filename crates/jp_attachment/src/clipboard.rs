mod displays;
mod error;

use std::{env, process::Command};

use crate::{
    AttachError, CommandError, Context, Declared, Resolved,
    command::{Output, run_within},
    snapshot::resolve_once,
};

pub use self::{displays::Displays, error::ClipboardError};

/// Resolves `clip:` to the content of the clipboard, which becomes a snapshot. The platform's own
/// tool reads it.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    resolve_once("clip", "clipboard", declared, context, |_| {
        read(context)?.map_err(|source| AttachError::Clipboard { source })
    })
}

/// A program that prints the clipboard.
#[derive(Debug, PartialEq, Eq)]
struct Tool {
    program: &'static str,
    arguments: &'static [&'static str],
    /// A part of its error message for an empty clipboard.
    empty: Option<&'static str>,
}

const WL_PASTE: Tool = Tool {
    program: "wl-paste",
    arguments: &["--no-newline"],
    empty: Some("Nothing is copied"),
};
const XCLIP: Tool = Tool {
    program: "xclip",
    arguments: &["-selection", "clipboard", "-o"],
    empty: Some("target STRING not available"),
};
const XSEL: Tool = Tool {
    program: "xsel",
    arguments: &["--clipboard", "--output"],
    empty: None,
};
const PBPASTE: Tool = Tool {
    program: "pbpaste",
    arguments: &[],
    empty: None,
};
const POWERSHELL: Tool = Tool {
    program: "powershell",
    arguments: &["-NoProfile", "-Command", "Get-Clipboard", "-Raw"],
    empty: None,
};

/// Lists the programs that may read the clipboard, the best first. `os` is [`env::consts::OS`].
///
/// A Mac has one clipboard even if an X server runs.
fn tools(has_wayland: bool, has_x11: bool, os: &str) -> Vec<Tool> {
    match os {
        "macos" => vec![PBPASTE],
        "windows" => vec![POWERSHELL],
        _ => {
            let wayland = has_wayland.then_some(WL_PASTE);
            let x11 = has_x11.then_some([XCLIP, XSEL]);
            wayland
                .into_iter()
                .chain(x11.into_iter().flatten())
                .collect()
        }
    }
}

/// Runs the first tool that is installed. Interruption is the outer error.
fn read(context: &Context<'_>) -> Result<Result<Vec<u8>, ClipboardError>, AttachError> {
    let displays = context.displays.cloned().unwrap_or_default();
    let tools = tools(
        displays.wayland.is_some(),
        displays.x11.is_some(),
        env::consts::OS,
    );
    if tools.is_empty() {
        return Ok(Err(ClipboardError::NoDisplay));
    }
    // A tool that is not installed is skipped. The error of one that is installed is final.
    for tool in &tools {
        let mut command = Command::new(tool.program);
        command
            .args(tool.arguments)
            .current_dir(&context.place.root);
        displays.pass(&mut command);
        match run_within(command, &|| false, context)? {
            Err(CommandError::NotFound { .. }) => {}
            Err(source) => {
                return Ok(Err(ClipboardError::Tool {
                    tool: tool.program,
                    source,
                }));
            }
            Ok(output) => return Ok(tool.content(output)),
        }
    }
    let tried: Vec<&str> = tools.iter().map(|tool| tool.program).collect();
    Ok(Err(ClipboardError::NoTool {
        tried: tried.join(", "),
    }))
}

impl Tool {
    /// Returns the content of the clipboard. wl-paste and xclip fail if there is none; the other
    /// tools print nothing.
    fn content(&self, output: Output) -> Result<Vec<u8>, ClipboardError> {
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status == 0 {
            return if output.stdout.is_empty() {
                Err(ClipboardError::Empty)
            } else {
                Ok(output.stdout)
            };
        }
        if self.empty.is_some_and(|empty| message.contains(empty)) {
            return Err(ClipboardError::Empty);
        }
        let message = match message.trim() {
            "" => format!("exit status: {}", output.status),
            message => message.to_owned(),
        };
        Err(ClipboardError::Refused {
            tool: self.program,
            message,
        })
    }
}

#[cfg(test)]
mod tests;
