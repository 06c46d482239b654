//! The rules for attachments.

use super::{ASKED, Origin, REMEMBERED, Requirement};

/// The kind of source that resolving a declaration reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Files of the workspace, or nothing.
    Workspace,
    /// A page of the web, at a public address.
    Page,
    /// Files outside the workspace, and other things of the user's: the clipboard, stdin, notes.
    Outside,
    /// A program, which may do anything.
    Command,
    /// An MCP server that the user alone configures.
    UsersServer,
    /// An MCP server that the workspace has a part in, or that isn't configured. What it gives is the
    /// workspace's; starting it takes an approval of its own.
    OtherServer,
}

/// The reason why jp resolves a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A command attaches it.
    Attach,
    /// jp checks whether an attached source has changed. It asks nothing for that.
    Check,
    /// The model asks for a new snapshot.
    Refresh,
}

/// Returns the approval that resolving needs.
pub(super) fn requirement(origin: Origin, reached: Reached, occasion: Occasion) -> Requirement {
    if origin.is_own(false) {
        return Requirement::Nothing;
    }
    match (occasion, reached) {
        (_, Reached::Workspace) => Requirement::Nothing,
        (_, Reached::Outside) => Requirement::Impossible,
        (Occasion::Attach, Reached::Page | Reached::OtherServer) => Requirement::Nothing,
        (Occasion::Attach, Reached::Command | Reached::UsersServer) => ASKED,
        (Occasion::Check, Reached::OtherServer) => Requirement::Nothing,
        // jp checks before every message, so a page that a stranger attached could track the user.
        (Occasion::Check, Reached::Page) => REMEMBERED,
        (Occasion::Check, Reached::Command | Reached::UsersServer) => Requirement::Approval {
            is_asked: false,
            takes_yes: true,
        },
        // `--yes` answers the question where the call asks it, so that the call's record says so.
        (Occasion::Refresh, _) => Requirement::Approval {
            is_asked: true,
            takes_yes: false,
        },
    }
}

/// Returns the approval that resolving with the rights of the user's own declarations needs.
///
/// No approval counts for files: those outside the workspace are never approved afterwards, and those
/// inside need none.
pub(super) fn requirement_as_user(origin: Origin, reached: Reached) -> Requirement {
    if origin.is_own(false) {
        return Requirement::Nothing;
    }
    match reached {
        Reached::Workspace | Reached::Outside => Requirement::Impossible,
        Reached::Page | Reached::Command | Reached::UsersServer | Reached::OtherServer => {
            REMEMBERED
        }
    }
}
