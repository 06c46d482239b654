//! Whose word it takes to run a program, to read from a server or to reach a private address.

use std::sync::Arc;

use jp_attachment::{Declared, McpUri, Place, Reach, Source};
use jp_config::Resolved;
use jp_storage::Trust;

use crate::{
    error::Failure,
    servers::{Servers, reading},
    terminal::Terminal,
    workspace::Context,
};

/// Returns a declaration that came with the workspace or its history, if it may be resolved.
///
/// A program is run, and a server of the person's own is read from, only if the person made the declaration themself,
/// agrees now, or said `--yes`.
pub(super) fn agreed(
    context: &Context<'_>,
    config: &Resolved,
    declared: Declared,
    place: &Place,
) -> Result<Option<Declared>, Failure> {
    let declared = known(declared, &context.workspace.trust(), place);
    let Some(asking) = Asking::of(&declared, reading::configured(context, config)?) else {
        return Ok(Some(declared));
    };
    if declared.is_trusted {
        return Ok(Some(declared));
    }
    if context.global.yes {
        return Ok(Some(Declared { is_trusted: true, ..declared }));
    }
    let Asking { what, act, acts } = asking;
    let question = format!("The workspace or its history attaches {what}. {act} it?");
    let terminal = Terminal::open(context).ok_or_else(|| nobody_to_ask(&what, acts))?;
    if !terminal.confirm(&question)? {
        context.output.warn(&format!("{what} is left out"));
        context.output.hint("`jp attachment rm` detaches it from the conversation.");
        return Ok(None);
    }
    let declared = Declared { is_trusted: true, ..declared };
    remember(context, std::slice::from_ref(&declared), place);
    Ok(Some(declared))
}

/// What takes the person's word.
struct Asking {
    what: String,
    act: &'static str,
    acts: &'static str,
}

impl Asking {
    /// Returns what a declaration takes the person's word for, if it does. What servers that the workspace configures
    /// give is the workspace's: there it takes their word to start one.
    fn of(declared: &Declared, servers: Option<&Arc<Servers>>) -> Option<Self> {
        match &declared.source {
            Source::Command(line) => {
                let what = format!("the output of `{}`", shown(&line.name()));
                Some(Self { what, act: "Run", acts: "runs" })
            }
            Source::Mcp(McpUri { server, uri }) if is_persons(servers, server) => {
                let what = format!("`{}` of your MCP server `{server}`", shown(uri));
                Some(Self { what, act: "Read", acts: "reads" })
            }
            _ => None,
        }
    }
}

fn is_persons(servers: Option<&Arc<Servers>>, server: &str) -> bool {
    servers.is_some_and(|servers| servers.check(server).is_ok() && !servers.is_workspaces(server))
}

/// Returns a declaration if it may be resolved again without asking: it stays in the workspace, or the person made it
/// themself or agreed to it; a program runs with `--yes`, too.
pub(super) fn unasked(
    context: &Context<'_>,
    servers: Option<&Arc<Servers>>,
    declared: Declared,
    place: &Place,
) -> Option<Declared> {
    let declared = known(declared, &context.workspace.trust(), place);
    let reach = declared.source.reach(place);
    let may_be = match &declared.source {
        _ if reach == Reach::Workspace => true,
        Source::Command(_) => declared.is_trusted || context.global.yes,
        Source::Mcp(uri) => declared.is_trusted || context.global.yes || !is_persons(servers, &uri.server),
        _ => declared.is_trusted,
    };
    may_be.then(|| Declared { is_trusted: declared.is_trusted || reach == Reach::Program, ..declared })
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

fn nobody_to_ask(what: &str, acts: &str) -> Failure {
    let reason = "the workspace or its history asks for it, and there is no terminal to ask you on";
    Failure::new(format!("failed to attach {what}: {reason}")).with_hint(format!("`--yes` {acts} it."))
}

/// Returns whether it makes a difference who made a declaration.
pub(super) fn matters_to_trust(declared: &Declared, place: &Place) -> bool {
    matches!(declared.source.reach(place), Reach::Network | Reach::Program | Reach::Server)
}

/// Remembers declarations that are the person's own, where that makes a difference another time: to whether they are
/// resolved, or to whether `jp mcp serve` gives a file that a walk would leave out.
pub(crate) fn remember(context: &Context<'_>, declared: &[Declared], place: &Place) {
    let matter = declared.iter().filter(|one| matters_to_trust(one, place) || is_workspace_file(one, place));
    context.remember_agreed(matter.filter_map(|one| one.declaration.as_deref()));
}

fn is_workspace_file(declared: &Declared, place: &Place) -> bool {
    let is_file = matches!(&declared.source, Source::Path(path) if path.is_file());
    is_file && declared.source.reach(place) == Reach::Workspace
}

/// Says that a file outside the workspace is not attached because of what came with the workspace.
pub(crate) fn refused(context: &Context<'_>, declaration: &str) {
    context.output.warn(&format!(
        "{declaration} is outside the workspace and is left out: a workspace and its history can come from anywhere"
    ));
    context.output.hint("attach it yourself with --attach, or in ~/.config/jp/config.toml.");
}
