//! Whose word it takes to run a program or to reach a private address.

use jp_attachment::{Declared, Place, Reach, Source};
use jp_storage::Trust;

use crate::{error::Failure, terminal::Terminal, workspace::Context};

/// Returns a declaration that came with the workspace or its history, if it may be resolved.
///
/// A program is run only if the person made the declaration themself, agrees now, or said `--yes`.
pub(super) fn agreed(
    context: &Context<'_>,
    declared: Declared,
    place: &Place,
) -> Result<Option<Declared>, Failure> {
    let declared = known(declared, &context.workspace.trust(), place);
    let Source::Command(line) = &declared.source else { return Ok(Some(declared)) };
    if declared.is_trusted {
        return Ok(Some(declared));
    }
    if context.global.yes {
        return Ok(Some(Declared { is_trusted: true, ..declared }));
    }
    let line = shown(&line.name());
    let question = format!("The workspace or its history attaches the output of `{line}`. Run it?");
    let terminal = Terminal::open(context).ok_or_else(|| nobody_to_ask(&line))?;
    if !terminal.confirm(&question)? {
        context.output.warn(&format!("the output of `{line}` is left out"));
        context.output.hint("`jp attachment rm` detaches it from the conversation.");
        return Ok(None);
    }
    let declared = Declared { is_trusted: true, ..declared };
    remember(context, std::slice::from_ref(&declared), place);
    Ok(Some(declared))
}

/// Returns a declaration if it may be resolved again without asking: it stays in the workspace, or the person made it
/// themself or agreed to it; a program runs with `--yes`, too.
pub(super) fn unasked(context: &Context<'_>, declared: Declared, place: &Place) -> Option<Declared> {
    let declared = known(declared, &context.workspace.trust(), place);
    let reach = declared.source.reach(place);
    let is_trusted = declared.is_trusted || (reach == Reach::Program && context.global.yes);
    (is_trusted || reach == Reach::Workspace).then_some(Declared { is_trusted, ..declared })
}

/// Returns a declaration as the person's own, where they made it or agreed to it before.
pub(super) fn known(declared: Declared, trust: &Trust, place: &Place) -> Declared {
    let text = declared.declaration.as_deref().unwrap_or(&declared.input);
    let matters = matters_to_trust(&declared, place);
    let is_trusted = declared.is_trusted || (matters && trust.contains(text));
    Declared { is_trusted, ..declared }
}

/// Returns whether a declaration that is not the person's reaches for files outside the workspace.
pub(super) fn is_out_of_bounds(declared: &Declared, place: &Place) -> bool {
    !declared.is_trusted && declared.source.reach(place) == Reach::Machine
}

/// Returns a command line as a question may show it: on one line, with nothing in it that is not seen.
fn shown(line: &str) -> String {
    const SHOWN: usize = 300;
    let visible = |character: char| match character {
        ' ' => " ".to_owned(),
        character if character.is_ascii_graphic() || character.is_alphanumeric() => character.to_string(),
        character => character.escape_unicode().to_string(),
    };
    let text: String = line.chars().take(SHOWN).map(visible).collect();
    match line.chars().count() {
        count if count > SHOWN => format!("{text}… ({} more characters)", count - SHOWN),
        _ => text,
    }
}

fn nobody_to_ask(line: &str) -> Failure {
    let reason = "the workspace or its history asks for it, and there is no terminal to ask you on";
    Failure::new(format!("failed to attach the output of `{line}`: {reason}")).with_hint("`--yes` runs it.")
}

/// Returns whether it makes a difference who made a declaration.
pub(super) fn matters_to_trust(declared: &Declared, place: &Place) -> bool {
    matches!(declared.source.reach(place), Reach::Network | Reach::Program)
}

/// Remembers declarations that are the person's own, where that makes a difference another time.
pub(crate) fn remember(context: &Context<'_>, declared: &[Declared], place: &Place) {
    let matter = declared.iter().filter(|one| matters_to_trust(one, place));
    let declarations = matter.filter_map(|one| one.declaration.as_deref());
    if let Err(error) = context.workspace.trust().add(declarations) {
        context.output.detail(&format!("what was agreed to was not remembered: {error}"));
    }
}

/// Says that a file outside the workspace is not attached because of what came with the workspace.
pub(super) fn refused(context: &Context<'_>, declaration: &str) {
    context.output.warn(&format!(
        "{declaration} is outside the workspace and is left out: a workspace and its history can come from anywhere"
    ));
    context.output.hint("attach it yourself with --attach, or in ~/.config/jp/config.toml.");
}
