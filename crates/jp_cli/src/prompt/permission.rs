//! Asks the user whether a call may run.

use jp_turn::{Decision, PermissionRequest};
use serde_json::{Map, Value};

use jp_session::person::Answer;

use super::{Extent, editor, quote, shorten, to_pretty_json};
use crate::{
    output::Tone,
    terminal::{Terminal, Typed},
};

const PROMPT: &str = "Run it? [y]es, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";
const PROMPT_OF_WORKSPACE: &str =
    "Run it? [y]es, [t]rust it from now on, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";
/// Shown if some of the call was cut. The user can't approve what they have not seen.
const UNSEEN: &str = "Some of it is not shown. Type v to see all of it.";
const HELP: [&str; 7] = [
    "y  runs it",
    "n  refuses it, and tells the model so; Enter does the same",
    "a  runs it, and runs this tool without asking until the answer ends",
    "t  if offered: runs it, and runs it without asking in this workspace until it changes",
    "e  opens the arguments in your editor ($VISUAL or $EDITOR); jp then asks again",
    "v  shows everything that was cut",
    "w  refuses it, and tells the model your reason",
];

/// Asks for permission to run a call.
///
/// `approvable` describes what the workspace lets the tool do, which the user may approve permanently.
pub(crate) fn permit(
    request: &PermissionRequest,
    approvable: Option<&str>,
    terminal: &Terminal<'_>,
) -> Answer {
    let mut is_whole = show(request, terminal, Extent::Part);
    if let Some(approvable) = approvable {
        terminal.tell(
            Tone::Plain,
            "If you trust the workspace, it runs without asking until this changes:",
        );
        is_whole &= quote(terminal, approvable, Extent::Part, |_| Tone::Plain);
    }
    if !is_whole {
        terminal.tell(Tone::Faint, UNSEEN);
    }
    let mut draft = Draft::new(request);
    let prompt = if approvable.is_some() {
        PROMPT_OF_WORKSPACE
    } else {
        PROMPT
    };
    loop {
        let line = match terminal.ask(prompt) {
            Typed::Line(line) => line,
            Typed::Nothing => return Answer::Decision(Decision::Refuse { reason: None }),
            Typed::Interrupted => return Answer::Decision(Decision::Interrupted),
        };
        match line.trim().to_lowercase().as_str() {
            // What runs without the user's knowledge must not be in the part that was cut.
            "y" | "yes" | "a" | "always" | "t" | "trust" if !is_whole => {
                terminal.tell(Tone::Fault, UNSEEN)
            }
            "v" | "view" => {
                is_whole = show(request, terminal, Extent::Whole);
                if let Some(approvable) = approvable {
                    quote(terminal, approvable, Extent::Whole, |_| Tone::Plain);
                }
            }
            "y" | "yes" => return Answer::Decision(Decision::Allow),
            "a" | "always" => return Answer::Decision(Decision::AllowForTurn),
            "t" | "trust" if approvable.is_some() => return Answer::Trust,
            // Enter alone refuses: it may have been pressed by accident.
            "" | "n" | "no" => return Answer::Decision(Decision::Refuse { reason: None }),
            "w" | "why" => return Answer::Decision(ask_for_reason(terminal)),
            "e" | "edit" => match draft.edit(terminal) {
                Ok(arguments) => return Answer::Decision(Decision::Edit(arguments)),
                Err(reason) => terminal.tell(Tone::Fault, &reason),
            },
            _ => HELP
                .iter()
                .for_each(|line| terminal.tell(Tone::Faint, line)),
        }
    }
}

/// Shows the call; returns whether all of it was shown. If its preview has no details, shows the arguments instead.
fn show(request: &PermissionRequest, terminal: &Terminal<'_>, extent: Extent) -> bool {
    let PermissionRequest {
        tool,
        preview,
        arguments,
        rejected,
    } = request;
    terminal.tell(Tone::Strong, &format!("The model wants to run `{tool}`:"));
    let mut is_whole = quote(terminal, &preview.title, extent, |_| Tone::Plain);
    is_whole &= match &preview.detail {
        Some(detail) => quote(terminal, detail, extent, tone),
        None if arguments.is_empty() => true,
        None => quote(terminal, &to_pretty_json(arguments), extent, |_| {
            Tone::Plain
        }),
    };
    if let Some((_, fault)) = rejected {
        terminal.tell(Tone::Fault, &shorten(fault));
    }
    is_whole
}

/// Returns the tone of a line of a diff.
fn tone(line: &str) -> Tone {
    match line.as_bytes().first() {
        Some(b'+') => Tone::Added,
        Some(b'-') => Tone::Removed,
        _ => Tone::Plain,
    }
}

/// Asks why the call is refused; the model receives the reason.
fn ask_for_reason(terminal: &Terminal<'_>) -> Decision {
    match terminal.ask("Why not?") {
        Typed::Line(line) => {
            let reason = line.trim();
            Decision::Refuse {
                reason: (!reason.is_empty()).then(|| reason.to_owned()),
            }
        }
        Typed::Nothing => Decision::Refuse { reason: None },
        Typed::Interrupted => Decision::Interrupted,
    }
}

/// Arguments as the user left them in the editor.
struct Draft {
    original: String,
    text: String,
}

impl Draft {
    /// Starts with the user's last arguments if the tool rejected them.
    fn new(request: &PermissionRequest) -> Self {
        let rejected = request.rejected.as_ref().map(|(arguments, _)| arguments);
        Self {
            original: to_pretty_json(&request.arguments),
            text: to_pretty_json(rejected.unwrap_or(&request.arguments)),
        }
    }

    /// Opens the arguments in the editor; the error is a sentence that says why they stay unchanged.
    fn edit(&mut self, terminal: &Terminal<'_>) -> Result<Map<String, Value>, String> {
        let text = editor::edit(&self.text, terminal)?;
        let is_unchanged = text.trim() == self.original.trim();
        // An empty file is how editors' users abort, as with `git commit`.
        if text.trim().is_empty() || is_unchanged {
            self.text.clone_from(&self.original);
            return Err("The arguments are unchanged.".to_owned());
        }
        self.text = text;
        serde_json::from_str(&self.text).map_err(|error| {
            format!("The arguments are not a JSON object: {error}. Type e to edit them again.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_of_a_diff_have_their_tones() {
        let diff = "@@ -1,2 +1,2 @@\n-old\n+new\n same\n";
        let tones: Vec<_> = diff.lines().map(tone).collect();
        assert_eq!(
            tones,
            [Tone::Plain, Tone::Removed, Tone::Added, Tone::Plain]
        );
    }
}
