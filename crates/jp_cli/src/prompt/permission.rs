//! Asks the person whether a call may run.

use jp_turn::{Decision, PermissionRequest};
use serde_json::{Map, Value};

use jp_session::person::Answer;

use super::{Extent, editor, quote, shortened};
use crate::{
    console::Console,
    output::Tone,
    terminal::{Terminal, Typed},
};

const PROMPT: &str = "Run it? [y]es, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";
const PROMPT_OF_WORKSPACE: &str =
    "Run it? [y]es, [t]rust it from now on, [n]o, [a]lways this turn, [e]dit arguments, [w]hy not:";
/// Said where not all was shown: nobody agrees to what they can't have read.
const UNSEEN: &str = "Not all of it is shown: v shows it.";
const HELP: [&str; 7] = [
    "y  runs it",
    "n  refuses it, as does Enter alone; the model is told so",
    "a  runs it and, until the answer ends, this tool without asking",
    "t  runs it and, here, from now on without asking, until what is shown of it changes; where that is offered",
    "e  opens the arguments in your editor ($VISUAL, $EDITOR); you are asked again with what they give",
    "v  shows all of what was cut",
    "w  refuses it and tells the model why",
];

/// Asks for leave; `None` where nobody is there to give it.
///
/// `agreement` is what the person may agree to for good: what the workspace lets the tool do.
pub(crate) fn permit(
    request: &PermissionRequest,
    agreement: Option<&str>,
    console: &Console,
) -> Option<Answer> {
    let terminal = &Terminal::open(console)?;
    let mut is_whole = show(request, terminal, Extent::Part);
    if let Some(agreement) = agreement {
        terminal.tell(
            Tone::Plain,
            "It would run without asking if you trusted the workspace with this, as it is now:",
        );
        is_whole &= quote(terminal, agreement, Extent::Part, |_| Tone::Plain);
    }
    if !is_whole {
        terminal.tell(Tone::Faint, UNSEEN);
    }
    let mut draft = Draft::of(request);
    let prompt = if agreement.is_some() {
        PROMPT_OF_WORKSPACE
    } else {
        PROMPT
    };
    loop {
        let line = match terminal.ask(prompt) {
            Typed::Line(line) => line,
            Typed::Nothing => return Some(Answer::Decision(Decision::Refuse { reason: None })),
            Typed::Interrupted => return Some(Answer::Decision(Decision::Interrupted)),
        };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" | "a" | "always" | "t" | "trust" if !is_whole => {
                terminal.tell(Tone::Fault, UNSEEN)
            }
            "v" | "view" => {
                is_whole = show(request, terminal, Extent::Whole);
                agreement
                    .map(|agreement| quote(terminal, agreement, Extent::Whole, |_| Tone::Plain));
            }
            "y" | "yes" => return Some(Answer::Decision(Decision::Allow)),
            "a" | "always" => return Some(Answer::Decision(Decision::AllowForTurn)),
            "t" | "trust" if agreement.is_some() => return Some(Answer::Trust),
            "" | "n" | "no" => return Some(Answer::Decision(Decision::Refuse { reason: None })),
            "w" | "why" => return Some(Answer::Decision(why_not(terminal))),
            "e" | "edit" => match draft.edit(terminal, console) {
                Ok(arguments) => return Some(Answer::Decision(Decision::Edit(arguments))),
                Err(reason) => terminal.tell(Tone::Fault, &reason),
            },
            _ => HELP
                .iter()
                .for_each(|line| terminal.tell(Tone::Faint, line)),
        }
    }
}

/// Shows what would run; returns whether all of it was shown. Where that has no detail of its own, the arguments are
/// it.
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
        None => quote(terminal, &pretty(arguments), extent, |_| Tone::Plain),
    };
    if let Some((_, fault)) = rejected {
        terminal.tell(Tone::Fault, &shortened(fault));
    }
    is_whole
}

/// Returns how a line of a diff stands out.
fn tone(line: &str) -> Tone {
    match line.as_bytes().first() {
        Some(b'+') => Tone::Added,
        Some(b'-') => Tone::Removed,
        _ => Tone::Plain,
    }
}

fn why_not(terminal: &Terminal<'_>) -> Decision {
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

/// Arguments as the person left them in the editor.
struct Draft {
    original: String,
    text: String,
}

impl Draft {
    /// Begins with what the person wrote last, where that did not fit.
    fn of(request: &PermissionRequest) -> Self {
        let rejected = request.rejected.as_ref().map(|(arguments, _)| arguments);
        let text = |arguments| pretty(arguments) + "\n";
        Self {
            original: text(&request.arguments),
            text: text(rejected.unwrap_or(&request.arguments)),
        }
    }

    /// Lets the person edit what they left last time; the error says why it changes nothing.
    fn edit(
        &mut self,
        terminal: &Terminal<'_>,
        console: &Console,
    ) -> Result<Map<String, Value>, String> {
        let text = editor::edit(&self.text, terminal, console)?;
        let is_unchanged = text.trim() == self.original.trim();
        if text.trim().is_empty() || is_unchanged {
            self.text.clone_from(&self.original);
            return Err("The arguments are unchanged.".to_owned());
        }
        self.text = text;
        serde_json::from_str(&self.text).map_err(|error| {
            format!("The arguments are no JSON object: {error}. `e` opens them as you left them.")
        })
    }
}

fn pretty(arguments: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_diff_adds_and_removes_stands_out() {
        let diff = "@@ -1,2 +1,2 @@\n-old\n+new\n same\n";
        let tones: Vec<_> = diff.lines().map(tone).collect();
        assert_eq!(
            tones,
            [Tone::Plain, Tone::Removed, Tone::Added, Tone::Plain]
        );
    }
}
