//! `shell`: a shell on a terminal of its own, which stays.
//!
//! It is a stateful tool like any other: [`serve`] is the process behind it, which `jp shell-session` runs. What the
//! model sends is typed into the terminal; what comes until the prompt is back is the answer.

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
use super::kind::Builtin;
use crate::{Action, Source, Stateful, Tool};

/// The subcommand of `jp` that serves a session.
pub(crate) const SUBCOMMAND: &str = "shell-session";

/// How much of a result the model is shown, in bytes; a shell is talked to often.
const MAX_OUTPUT_BYTES: usize = 64_000;

/// What a call is told where the configuration says that the tool does not live on.
pub(super) const NOT_STATEFUL: &str =
    "The shell is a tool that lives on between calls; it is configured as one that does not.";

const DESCRIPTION: &str = "A shell session that stays: directory, variables and running programs are kept between calls. \
    `spawn` starts it, `apply` types into it and returns what came until the prompt is back, `fetch` returns what came \
    since, `abort` ends it and all that it started.";

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What is typed, with a newline after it: a command, or the input of a program that runs."},
            "keys": {"type": "string", "enum": Key::ALL.map(Key::name), "description": "A key that is pressed instead."},
            "wait_secs": {"type": "number", "minimum": 0, "maximum": 100, "description": "How long to wait for the prompt; 10 by default."},
        },
        "additionalProperties": false,
    });
    let Value::Object(parameters) = parameters else {
        unreachable!("an object was written")
    };
    let actions = vec![Action::Spawn, Action::Fetch, Action::Apply, Action::Abort];
    Tool {
        description: DESCRIPTION.to_owned(),
        max_output_bytes: MAX_OUTPUT_BYTES,
        stateful: Some(Stateful {
            actions,
            keep: false,
        }),
        ..Tool::new("shell", parameters, Source::Builtin(Builtin::Shell))
    }
}

/// Shows what is typed, for a person.
pub(crate) fn shown(input: &Map<String, Value>) -> String {
    let word = |key: &str| input.get(key).and_then(Value::as_str);
    match (word("text"), word("keys")) {
        (Some(text), None) => text.to_owned(),
        (None, Some(keys)) => keys.to_owned(),
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

    /// Returns what a terminal sends for it.
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

/// There are no such terminals here.
#[cfg(not(unix))]
pub fn serve(
    _: impl std::io::BufRead + Send + 'static,
    _: impl std::io::Write,
) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
