//! `shell`: a shell session on its own terminal.
//!
//! It is a stateful tool like any other. [`serve`] is the process behind it, which `jp
//! shell-session` runs. It types the model's text into the terminal, and returns the output until
//! the prompt is back.

mod output;
#[cfg(unix)]
mod pty;
#[cfg(unix)]
mod serve;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

#[cfg(unix)]
pub use self::serve::serve;
use super::{declare::declare, kind::Builtin};
use crate::{Action, Stateful, Tool};

/// The subcommand of `jp` that serves a session.
pub(crate) const SUBCOMMAND: &str = "shell-session";

/// The maximum text of a result, in bytes. It is less than for other tools, because a shell is
/// called often.
const MAX_OUTPUT_BYTES: usize = 64_000;

/// The error if the configuration makes the tool one that is not stateful.
pub(super) const NOT_STATEFUL: &str =
    "The tool `shell` must be stateful, but the configuration says that it is not.";

const DESCRIPTION: &str = "A shell session that keeps its directory, its variables and its running programs between calls. \
    `spawn` starts it. `apply` types into it and returns the output until the prompt is back. `fetch` returns new \
    output. `abort` ends the session and everything that it started.";

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The text to type: a command, or input for a running program. A newline is added."},
            "keys": {"type": "string", "enum": Key::ALL.map(Key::name), "description": "A key to press instead of typing `text`."},
            "wait_secs": {"type": "number", "minimum": 0, "maximum": 100, "description": "How many seconds to wait for the prompt. Default: 10."},
        },
        "additionalProperties": false,
    });
    let actions = vec![Action::Spawn, Action::Fetch, Action::Apply, Action::Abort];
    Tool {
        max_output_bytes: MAX_OUTPUT_BYTES,
        stateful: Some(Stateful {
            actions,
            keep: false,
        }),
        ..declare(Builtin::Shell, DESCRIPTION, parameters)
    }
}

/// Returns the input for the user's prompt.
pub(crate) fn describe_input(input: &Map<String, Value>) -> String {
    let text = input.get("text").and_then(Value::as_str);
    let keys = input.get("keys").and_then(Value::as_str);
    match (text, keys) {
        (Some(typed), None) | (None, Some(typed)) => typed.to_owned(),
        // Invalid input is shown unchanged.
        _ => Value::Object(input.clone()).to_string(),
    }
}

/// Keys that have no character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    CtrlC,
    CtrlD,
    Enter,
    Escape,
    Tab,
    Up,
    Down,
}

impl Key {
    const ALL: [Self; 7] = [
        Self::CtrlC,
        Self::CtrlD,
        Self::Enter,
        Self::Escape,
        Self::Tab,
        Self::Up,
        Self::Down,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::CtrlC => "ctrl-c",
            Self::CtrlD => "ctrl-d",
            Self::Enter => "enter",
            Self::Escape => "escape",
            Self::Tab => "tab",
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// Returns the bytes that a terminal sends for it.
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::CtrlC => b"\x03",
            Self::CtrlD => b"\x04",
            Self::Enter => b"\r",
            Self::Escape => b"\x1b",
            Self::Tab => b"\t",
            Self::Up => b"\x1b[A",
            Self::Down => b"\x1b[B",
        }
    }
}

/// Fails: this system has no such terminals.
#[cfg(not(unix))]
pub fn serve(
    _: impl std::io::BufRead + Send + 'static,
    _: impl std::io::Write,
) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
