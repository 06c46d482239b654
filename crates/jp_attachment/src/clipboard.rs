mod displays;
mod error;

use std::{env, process::Command};

use crate::{
    AttachError, CommandError, Context, Declared, Resolved,
    classify::classify,
    command::{Output, run_within},
    handler::Handler,
    keep::assemble,
    stdin::snapshot,
};

pub use self::{displays::Displays, error::ClipboardError};

/// Resolves `clip:` to what the clipboard holds, read by the platform's own tool.
///
/// The URI is `clip:` with the checksum of the content. It names a snapshot: nothing reads it again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClipboardHandler;

impl Handler for ClipboardHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["clip"]
    }

    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        let Some(first) = declared.first() else {
            return Ok(Resolved::default());
        };
        // The clipboard is read once, however often it is declared.
        let given = read(context).and_then(|bytes| {
            let bytes = bytes.map_err(|source| AttachError::Clipboard { source })?;
            let (content, mime_type) = classify(bytes, "");
            let resource = snapshot("clip", content)
                .with_mime_type(mime_type)
                .with_name("clipboard");
            context.keep(first, resource).map(|kept| vec![kept])
        });
        assemble(&declared[..1], vec![given], context)
    }
}

/// A program that prints the clipboard.
#[derive(Debug, PartialEq, Eq)]
struct Tool {
    program: &'static str,
    arguments: &'static [&'static str],
    /// What its complaint about an empty clipboard has in it.
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

/// Lists what may read the clipboard, the best first. `os` is as [`env::consts::OS`].
///
/// A Mac has one clipboard even where an X server runs.
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

/// Runs the first tool that is there; interruption is the outer error.
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
    fn content(&self, output: Output) -> Result<Vec<u8>, ClipboardError> {
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status == 0 {
            return if output.stdout.is_empty() {
                Err(ClipboardError::Empty)
            } else {
                Ok(output.stdout)
            };
        }
        if self.empty.is_some_and(|empty| said.contains(empty)) {
            return Err(ClipboardError::Empty);
        }
        let said = match said.trim() {
            "" => format!("exit status: {}", output.status),
            said => said.to_owned(),
        };
        Err(ClipboardError::Refused {
            tool: self.program,
            said,
        })
    }
}

#[cfg(test)]
mod tests;
