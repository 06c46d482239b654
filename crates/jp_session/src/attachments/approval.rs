//! The approval that a declaration needs to run a program, to read from a server or to reach a private address.

use std::sync::Arc;

use crate::{
    error::SessionError,
    notice::Notice,
    scripts::{self, CommandWords, Script},
    servers::{Servers, reading},
    session::{Session, Setup},
    trust::{Approvals, Decision, Effect, Occasion, Origin, Reached, decide, decide_unapproved},
};
use jp_attachment::{ApprovalScope, Declared, McpUri, Place, Reach, Source};
use jp_storage::Trust;

/// The approval of a declaration.
#[derive(Debug)]
struct Approval {
    /// The text that jp remembers: if any of it changes, jp asks the user again.
    text: String,
    /// The files of the workspace that the command runs.
    scripts: Vec<Script>,
}

impl Approval {
    fn new(declared: &Declared, place: &Place) -> Self {
        let scripts = find_scripts(declared, place);
        let declaration = declared.declaration.as_deref().unwrap_or(&declared.input);
        Self {
            text: format!("{declaration}{}", scripts::describe_content(&scripts)),
            scripts,
        }
    }

    /// Marks a declaration as the user's own if they made it, or approved it before with the same scripts.
    fn apply(&self, declared: Declared, trust: &Trust, place: &Place) -> Declared {
        // The approvals are on disk: jp reads them only if one can make a difference.
        let is_remembered = declared.source.approval_scope(place) == ApprovalScope::Resolving
            && trust.contains(&self.text);
        // It makes no difference here whose server it is.
        let effect = Effect::ResolveAsUser(find_reached(&declared, None, place));
        let approvals = Approvals::with_remembered(is_remembered);
        let decision = decide(find_origin(&declared), effect, approvals);
        Declared {
            is_trusted: decision == Decision::Allowed,
            ..declared
        }
    }
}

/// Returns the files of the workspace that a declaration runs.
pub(crate) fn find_scripts(declared: &Declared, place: &Place) -> Vec<Script> {
    let Source::Command(line) = &declared.source else {
        return Vec::new();
    };
    let words = CommandWords {
        program: line.program(),
        arguments: line.arguments(),
    };
    words.scripts_in_path(&place.root)
}

/// Returns a declaration if jp may resolve it, and asks the user if that takes their approval.
///
/// Declarations that came with the workspace or its history need approval to run a program or to read from a server of
/// the user's. So does every command that runs a script of the workspace that has changed since the approval.
///
/// # Errors
///
/// If no one can be asked, or the user interrupts.
pub fn obtain_approval(
    setup: Setup<'_>,
    declared: Declared,
    place: &Place,
) -> Result<Option<Declared>, SessionError> {
    let session = setup.session;
    if declared.is_trusted {
        return Ok(Some(declared));
    }
    let approval = Approval::new(&declared, place);
    let declared = approval.apply(declared, &session.workspace.trust(), place);
    let servers = reading::find_servers(setup)?;
    let effect = Effect::Resolve {
        reached: find_reached(&declared, servers, place),
        occasion: Occasion::Attach,
    };
    let origin = find_origin(&declared);
    if decide_unapproved(origin, effect) == Decision::Allowed {
        return Ok(Some(declared));
    }
    let approved = Declared {
        is_trusted: true,
        ..declared
    };
    // `--yes` approves for this command only: jp does not remember it.
    if decide(origin, effect, Approvals::with_yes(session.options.yes)) == Decision::Allowed {
        return Ok(Some(approved));
    }
    // Only commands and resources of servers have a question. Any other source is left out.
    let Some(prompt) = ApprovalPrompt::new(&approved) else {
        return Ok(None);
    };
    let answer = session.confirm(None, &[], &prompt.question(&approval.scripts))?;
    if !answer.ok_or_else(|| prompt.no_terminal_error(&approval.scripts))? {
        session
            .person
            .tell(Notice::AttachmentNotApproved { what: prompt.what });
        return Ok(None);
    }
    session.remember_approvals([approval.text.as_str()]);
    Ok(Some(approved))
}

/// The words of the question about a declaration.
struct ApprovalPrompt {
    what: String,
    act: &'static str,
}

impl ApprovalPrompt {
    /// Words the question about a declaration; jp only asks about commands and resources of servers.
    fn new(declared: &Declared) -> Option<Self> {
        match &declared.source {
            Source::Command(line) => Some(Self {
                what: format!("the output of `{}`", escape(&line.name())),
                act: "Run",
            }),
            Source::Mcp(McpUri { server, uri }) => Some(Self {
                what: format!("`{}` of your MCP server `{server}`", escape(uri)),
                act: "Read",
            }),
            _ => None,
        }
    }

    fn question(&self, scripts: &[Script]) -> String {
        let Self { what, act } = self;
        match scripts {
            [] => format!("The workspace or its history attaches {what}. {act} it?"),
            scripts => format!("Attaching {what} {}. {act} it?", runs_unapproved(scripts)),
        }
    }

    fn no_terminal_error(&self, scripts: &[Script]) -> SessionError {
        let Self { what, act } = self;
        let reason = match scripts {
            [] => "the workspace or its history attaches it".to_owned(),
            scripts => format!("it {}", runs_unapproved(scripts)),
        };
        SessionError::new(format!(
            "failed to attach {what}: {reason}, and there is no terminal to ask you on"
        ))
        .with_hint(format!("pass `--yes` to {} it.", act.to_lowercase()))
    }
}

/// Returns the reason why jp would have to ask before it resolves a declaration, and what the user can do.
pub(crate) fn explain_prompt(declared: &Declared, place: &Place) -> (String, &'static str) {
    match &find_scripts(declared, place)[..] {
        [] => (
            "it came with the workspace or its history, and you have not attached it yourself"
                .to_owned(),
            "attach it once with --attach, or declare it in ~/.config/jp/config.toml.",
        ),
        scripts => (
            format!("it {}", runs_unapproved(scripts)),
            "attach it once with --attach, or pass --yes.",
        ),
    }
}

/// Names the files of the workspace that a command runs and that need the user's approval: `runs FILE, whose …`.
pub(crate) fn runs_unapproved(scripts: &[Script]) -> String {
    format!(
        "runs {}, whose current content you have not approved",
        escape(&scripts::names(scripts))
    )
}

/// Returns a declaration if jp may resolve it again without asking.
///
/// That is the case if it stays in the workspace, or if the user made or approved it. `--yes` also covers programs.
pub(crate) fn approve_unasked(
    session: &Session,
    servers: Option<&Arc<Servers>>,
    declared: Declared,
    place: &Place,
) -> Option<Declared> {
    let declared = apply_earlier_approval(declared, &session.workspace.trust(), place);
    let reached = find_reached(&declared, servers, place);
    let effect = Effect::Resolve {
        reached,
        occasion: Occasion::Check,
    };
    let approvals = Approvals::with_yes(session.options.yes);
    let decision = decide(find_origin(&declared), effect, approvals);
    (decision == Decision::Allowed).then(|| Declared {
        // A program that `--yes` allows runs as the user's own. Other sources keep their rights.
        is_trusted: declared.is_trusted || reached == Reached::Command,
        ..declared
    })
}

/// Marks a declaration as the user's own if they made it, or approved it before with the same scripts.
pub(crate) fn apply_earlier_approval(declared: Declared, trust: &Trust, place: &Place) -> Declared {
    match declared.is_trusted {
        true => declared,
        false => Approval::new(&declared, place).apply(declared, trust, place),
    }
}

/// Returns whether a declaration that is not the user's reaches for files outside the workspace.
pub(crate) fn is_out_of_bounds(declared: &Declared, place: &Place) -> bool {
    let effect = Effect::Resolve {
        reached: find_reached(declared, None, place),
        occasion: Occasion::Attach,
    };
    decide_unapproved(find_origin(declared), effect) == Decision::Refused
}

/// Returns who a declaration counts as. One that isn't the user's own came with the workspace or its
/// history, which have the same rights here.
pub(crate) fn find_origin(declared: &Declared) -> Origin {
    match declared.is_trusted {
        true => Origin::CommandLine,
        false => Origin::History,
    }
}

/// Returns what resolving a declaration reaches.
pub(crate) fn find_reached(
    declared: &Declared,
    servers: Option<&Arc<Servers>>,
    place: &Place,
) -> Reached {
    match (declared.source.reach(place), &declared.source) {
        (Reach::Workspace, _) => Reached::Workspace,
        (Reach::Network, _) => Reached::Page,
        (Reach::Machine, _) => Reached::Outside,
        (Reach::Program, _) => Reached::Command,
        (Reach::Server, Source::Mcp(uri)) if is_users_server(servers, &uri.server) => {
            Reached::UsersServer
        }
        (Reach::Server, _) => Reached::OtherServer,
    }
}

fn is_users_server(servers: Option<&Arc<Servers>>, server: &str) -> bool {
    servers.is_some_and(|servers| servers.check(server).is_ok() && !servers.is_of_workspace(server))
}

/// Writes a command line or URI for a question: on one line, shortened, every unusual character as its escape.
fn escape(line: &str) -> String {
    /// Length in characters that a prompt can show on a few rows of a terminal.
    const SHOWN: usize = 300;
    let mut text = String::new();
    for character in line.chars().take(SHOWN) {
        if character == ' ' || character.is_ascii_graphic() || character.is_alphanumeric() {
            text.push(character);
        } else {
            text.extend(character.escape_unicode());
        }
    }
    match line.chars().count() {
        count if count > SHOWN => format!("{text}… ({} more characters)", count - SHOWN),
        _ => text,
    }
}

/// Returns the approvals to remember for declarations of the user's own, if they make a difference another time.
///
/// They decide whether jp resolves a declaration without asking, and whether `jp mcp serve` gives a file that a walk of
/// the workspace would leave out. The texts contain checksums of scripts as they are now, so call this before anything
/// runs.
pub fn list_approvals(declared: &[Declared], place: &Place) -> Vec<String> {
    declared
        .iter()
        .filter(|one| one.declaration.is_some() && needs_remembering(&one.source, place))
        .map(|one| Approval::new(one, place).text)
        .collect()
}

fn needs_remembering(source: &Source, place: &Place) -> bool {
    match (source.approval_scope(place), source) {
        (ApprovalScope::Resolving, _) => true,
        (ApprovalScope::Serving, Source::Path(path)) => path.is_file(),
        _ => false,
    }
}

/// Says that jp doesn't attach a file outside the workspace, because the declaration came with the workspace.
pub fn warn_of_outside_file(session: &Session, declaration: &str) {
    session.person.tell(Notice::OutsideWorkspace {
        declaration: declaration.to_owned(),
    });
}
