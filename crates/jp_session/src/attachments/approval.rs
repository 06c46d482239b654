//! Whose word it takes to run a program, to read from a server or to reach a private address.

use std::{env, sync::Arc};

use crate::{
    error::SessionError,
    notice::Notice,
    scripts::{self, CommandWords, Script, SearchPath, as_they_are},
    servers::{Servers, reading},
    session::{Session, Setup},
    trust::{Approvals, Decision, Effect, Occasion, Origin, Reached, decide, decide_unapproved},
};
use jp_attachment::{ApprovalScope, Declared, McpUri, Place, Reach, Source};
use jp_storage::Trust;

/// What a user approves of a declaration.
#[derive(Debug)]
struct Approval {
    /// What is remembered: if any of it changes, the user is asked again.
    text: String,
    /// The files of the workspace that the command runs.
    scripts: Vec<Script>,
}

impl Approval {
    fn new(declared: &Declared, place: &Place) -> Self {
        let scripts = find_scripts(declared, place);
        let declaration = declared.declaration.as_deref().unwrap_or(&declared.input);
        Self {
            text: format!("{declaration}{}", as_they_are(&scripts)),
            scripts,
        }
    }

    /// Returns the declaration as the user's own, if they made or approved it before, as it is now.
    fn apply(&self, declared: Declared, trust: &Trust, place: &Place) -> Declared {
        // The approvals are on disk: they are read only if one can make a difference.
        let approvals = Approvals {
            is_remembered: matters_to_trust(&declared, place) && trust.contains(&self.text),
            ..Approvals::default()
        };
        // It makes no difference here whose server it is.
        let effect = Effect::ResolveAsUser(find_reached(&declared, None, place));
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
    words.scripts(
        &place.root,
        env::var_os("PATH").as_deref().map(SearchPath::Any),
    )
}

/// Returns a declaration that came with the workspace or its history, or runs a script of the workspace, if it may be
/// resolved.
///
/// A program is run, and a server of the person's own is read from, only if the person made the declaration themself,
/// agrees now, or said `--yes`; a script has to be as it was then.
pub fn agreed(
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
    let servers = reading::configured(setup)?;
    let effect = Effect::Resolve {
        reached: find_reached(&declared, servers, place),
        occasion: Occasion::Attach,
    };
    let origin = find_origin(&declared);
    if decide_unapproved(origin, effect) == Decision::Allowed {
        return Ok(Some(declared));
    }
    if decide(origin, effect, yes_of(session)) == Decision::Allowed {
        return Ok(Some(Declared {
            is_trusted: true,
            ..declared
        }));
    }
    let Some(asking) = Asking::new(&declared) else {
        return Ok(None);
    };
    let question = asking.question(&approval.scripts);
    let is_approved = session.confirm(None, &[], &question)?;
    if !is_approved.ok_or_else(|| asking.nobody_to_ask(&approval.scripts))? {
        session
            .person
            .tell(Notice::AttachmentNotApproved { what: asking.what });
        return Ok(None);
    }
    session.remember_agreed([approval.text.as_str()]);
    Ok(Some(Declared {
        is_trusted: true,
        ..declared
    }))
}

/// What takes the person's word.
struct Asking {
    what: String,
    act: &'static str,
}

impl Asking {
    /// Words the question about a declaration; only commands and resources of servers are asked about.
    fn new(declared: &Declared) -> Option<Self> {
        match &declared.source {
            Source::Command(line) => {
                let what = format!("the output of `{}`", shown(&line.name()));
                Some(Self { what, act: "Run" })
            }
            Source::Mcp(McpUri { server, uri }) => {
                let what = format!("`{}` of your MCP server `{server}`", shown(uri));
                Some(Self { what, act: "Read" })
            }
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

    fn nobody_to_ask(&self, scripts: &[Script]) -> SessionError {
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

/// Says why a declaration is not resolved without asking, and what the user can do.
pub(crate) fn why_asked(declared: &Declared, place: &Place) -> (String, &'static str) {
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

/// Says of a command which files of the workspace it runs that take the user's approval.
pub(crate) fn runs_unapproved(scripts: &[Script]) -> String {
    format!(
        "runs {}, whose current content you have not approved",
        shown(&scripts::names(scripts))
    )
}

fn is_persons(servers: Option<&Arc<Servers>>, server: &str) -> bool {
    servers.is_some_and(|servers| servers.check(server).is_ok() && !servers.is_workspaces(server))
}

/// Returns a declaration if it may be resolved again without asking: it stays in the workspace, or the person made it
/// themself or agreed to it; a program runs with `--yes`, too.
pub(crate) fn unasked(
    session: &Session,
    servers: Option<&Arc<Servers>>,
    declared: Declared,
    place: &Place,
) -> Option<Declared> {
    let declared = known(declared, &session.workspace.trust(), place);
    let reached = find_reached(&declared, servers, place);
    let effect = Effect::Resolve {
        reached,
        occasion: Occasion::Check,
    };
    let decision = decide(find_origin(&declared), effect, yes_of(session));
    (decision == Decision::Allowed).then(|| Declared {
        is_trusted: declared.is_trusted || reached == Reached::Command,
        ..declared
    })
}

/// Returns a declaration as the person's own, where they made it or agreed to it before, with its scripts as they are.
pub(crate) fn known(declared: Declared, trust: &Trust, place: &Place) -> Declared {
    match declared.is_trusted {
        true => declared,
        false => Approval::new(&declared, place).apply(declared, trust, place),
    }
}

/// Returns whether a declaration that is not the person's reaches for files outside the workspace.
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
        (Reach::Server, Source::Mcp(uri)) if is_persons(servers, &uri.server) => {
            Reached::UsersServer
        }
        (Reach::Server, _) => Reached::OtherServer,
    }
}

fn yes_of(session: &Session) -> Approvals {
    Approvals {
        is_yes: session.options.yes,
        ..Approvals::default()
    }
}

/// Returns a command line as a question may show it: on one line, with nothing in it that is not seen.
fn shown(line: &str) -> String {
    const SHOWN: usize = 300;
    let visible = |character: char| match character {
        ' ' => " ".to_owned(),
        character if character.is_ascii_graphic() || character.is_alphanumeric() => {
            character.to_string()
        }
        character => character.escape_unicode().to_string(),
    };
    let text: String = line.chars().take(SHOWN).map(visible).collect();
    match line.chars().count() {
        count if count > SHOWN => format!("{text}… ({} more characters)", count - SHOWN),
        _ => text,
    }
}

/// Returns whether it makes a difference who made a declaration.
pub(crate) fn matters_to_trust(declared: &Declared, place: &Place) -> bool {
    declared.source.approval_scope(place) == ApprovalScope::Resolving
}

/// Returns what to remember of declarations that are the person's own, where that makes a difference another time: to
/// whether they are resolved, or to whether `jp mcp serve` gives a file that a walk would leave out.
///
/// Scripts are approved as they are when this is called, so it is called before anything runs.
pub fn to_remember(declared: &[Declared], place: &Place) -> Vec<String> {
    let matter = declared
        .iter()
        .filter(|one| matters_to_trust(one, place) || is_workspace_file(one, place));
    let stored = matter.filter(|one| one.declaration.is_some());
    stored.map(|one| Approval::new(one, place).text).collect()
}

fn is_workspace_file(declared: &Declared, place: &Place) -> bool {
    let is_file = matches!(&declared.source, Source::Path(path) if path.is_file());
    is_file && declared.source.reach(place) == Reach::Workspace
}

/// Says that a file outside the workspace is not attached because of what came with the workspace.
pub fn refused(session: &Session, declaration: &str) {
    session.person.tell(Notice::OutsideWorkspace {
        declaration: declaration.to_owned(),
    });
}
