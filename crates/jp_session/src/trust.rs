//! Decides what may happen without the user's approval.
//!
//! A workspace can be a clone of a stranger's repository, and a conversation's history can come with
//! it. So it matters who asks for an effect. [`decide`] is the only place with rules about that: a
//! pure function of the [`Origin`], the [`Effect`] and the [`Approvals`]. Callers gather the facts,
//! ask the user, remember the answer and word the outcome. `tests.rs` lists the decision for each
//! configuration key and each kind of event.

mod attaching;
pub(crate) mod history;
mod provider;
#[cfg(test)]
mod tests;

use jp_config::Layer;
use jp_turn::Permission;

pub(crate) use self::{
    attaching::{Occasion, Reached},
    provider::{ModelChoice, Redirect},
};

/// Who asks for an effect. Later variants are trusted more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The history of a conversation.
    History,
    /// The workspace's `.jp/config.toml`.
    Workspace,
    /// The model, when it calls a tool.
    Model,
    /// The defaults of jp.
    Default,
    /// The user's own configuration file, which may be older than the workspace.
    UsersFile,
    /// A variable of the user's environment.
    Environment,
    /// The command line, or a file that it names.
    CommandLine,
}

/// Something that needs a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Sets what a conversation is about: the model, the system prompt, how content is delivered.
    ShapeConversation,
    /// Sets limits, describes providers or defines tools.
    Configure,
    /// Resolves a declaration of an attachment.
    Resolve {
        /// The kind of source that it reaches.
        reached: Reached,
        /// The reason why jp resolves it.
        occasion: Occasion,
    },
    /// Resolves a declaration as if the user had made it: jp also reaches private addresses for it, and
    /// follows links out of the workspace.
    ResolveAsUser(Reached),
    /// Starts an MCP server or connects to it.
    StartServer {
        /// Its command runs a file of the workspace.
        runs_script: bool,
    },
    /// Calls a tool that has this permission.
    CallTool(Permission),
    /// Lets a tool run without asking, though it would ask by default.
    RunUnattended {
        /// The workspace sets a part of the tool, or has a file that its command runs.
        is_shaped_by_workspace: bool,
    },
    /// Answers a tool's question instead of the user, or has the model answer it.
    AnswerQuestion,
    /// Offers a tool to models.
    SwitchToolOn,
    /// Allows one tool what the user's own configuration refuses to all tools.
    OverrideUsersRefusal,
    /// Sets the base URL of a provider.
    Redirect(Redirect),
    /// Chooses the variable that holds the key of a provider that the user or jp defines.
    ChooseKey {
        /// It is the variable that jp reads by default.
        is_usual: bool,
    },
    /// Sends the content of a variable as a key.
    SendVariable {
        /// Its name is that of an API key.
        is_api_key: bool,
        /// It holds the key of another provider.
        is_of_other: bool,
    },
    /// Sends the user's key to the base URL.
    SendKey,
    /// Runs a command that prints a key.
    RunKeyCommand,
    /// Gives a model a short name.
    NameModel {
        /// A configuration file gives that name to a model.
        is_taken: bool,
        /// The name contains a `/`, as `PROVIDER/NAME` does.
        has_slash: bool,
    },
}

/// The approvals of the user so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Approvals {
    /// `jp_storage::Trust` holds the approval of exactly this effect.
    pub(crate) is_remembered: bool,
    /// The user passed `--yes`.
    pub(crate) is_yes: bool,
    /// The user's answer, if this command has asked already.
    pub(crate) answer: Option<bool>,
}

impl Approvals {
    /// Returns approvals that only depend on `--yes`.
    pub(crate) fn with_yes(is_yes: bool) -> Self {
        Self {
            is_yes,
            ..Self::default()
        }
    }

    /// Returns approvals that only depend on what jp remembers.
    pub(crate) fn with_remembered(is_remembered: bool) -> Self {
        Self {
            is_remembered,
            ..Self::default()
        }
    }
}

/// The decision about an effect. Later variants are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    /// The effect may happen.
    Allowed,
    /// The effect may happen if the user approves it now.
    Ask,
    /// The effect may not happen, and jp does not ask.
    Refused,
}

/// The approval that an effect needs.
#[derive(Debug, Clone, Copy)]
enum Requirement {
    /// None.
    Nothing,
    /// The user's approval.
    Approval {
        /// jp asks for it. If not, only an earlier approval counts.
        is_asked: bool,
        /// `--yes` approves it.
        takes_yes: bool,
    },
    /// No approval is enough.
    Impossible,
}

/// jp asks, unless `--yes` answers.
const ASKED: Requirement = Requirement::Approval {
    is_asked: true,
    takes_yes: true,
};

/// Only an approval of an earlier command counts.
const REMEMBERED: Requirement = Requirement::Approval {
    is_asked: false,
    takes_yes: false,
};

/// Decides whether `origin` may cause `effect`, given what the user has approved.
pub(crate) fn decide(origin: Origin, effect: Effect, approvals: Approvals) -> Decision {
    match requirement(origin, effect) {
        Requirement::Nothing => Decision::Allowed,
        Requirement::Impossible => Decision::Refused,
        Requirement::Approval {
            is_asked,
            takes_yes,
        } => match approvals.answer {
            // An answer of this command overrides older approvals.
            Some(true) => Decision::Allowed,
            Some(false) => Decision::Refused,
            None if approvals.is_remembered => Decision::Allowed,
            None if approvals.is_yes && takes_yes => Decision::Allowed,
            None if is_asked => Decision::Ask,
            None => Decision::Refused,
        },
    }
}

/// Decides as [`decide`] does if the user has approved nothing.
pub(crate) fn decide_unapproved(origin: Origin, effect: Effect) -> Decision {
    decide(origin, effect, Approvals::default())
}

fn requirement(origin: Origin, effect: Effect) -> Requirement {
    match effect {
        Effect::ShapeConversation => Requirement::Nothing,
        Effect::Configure => forbid_to_history(origin, Requirement::Nothing),
        Effect::Resolve { reached, occasion } => attaching::requirement(origin, reached, occasion),
        Effect::ResolveAsUser(reached) => attaching::requirement_as_user(origin, reached),
        Effect::StartServer { runs_script } => approval_unless_own(origin, runs_script),
        Effect::CallTool(permission) => call_requirement(permission),
        Effect::RunUnattended {
            is_shaped_by_workspace,
        } => approval_unless_own(origin, is_shaped_by_workspace),
        Effect::AnswerQuestion => approval_unless_own(origin, false),
        Effect::SwitchToolOn => match origin {
            Origin::History => REMEMBERED,
            _ => Requirement::Nothing,
        },
        Effect::OverrideUsersRefusal => match origin {
            Origin::Workspace => Requirement::Impossible,
            _ => Requirement::Nothing,
        },
        Effect::Redirect(_)
        | Effect::ChooseKey { .. }
        | Effect::SendVariable { .. }
        | Effect::SendKey
        | Effect::RunKeyCommand
        | Effect::NameModel { .. } => provider::requirement(origin, effect),
    }
}

/// Returns what starting servers and running tools needs: the user's approval, unless it is their own.
fn approval_unless_own(origin: Origin, is_shaped_by_workspace: bool) -> Requirement {
    if origin.is_own(is_shaped_by_workspace) {
        return Requirement::Nothing;
    }
    forbid_to_history(origin, ASKED)
}

/// Forbids an effect to a conversation's history, which sets only what [`history`] keeps.
fn forbid_to_history(origin: Origin, otherwise: Requirement) -> Requirement {
    match origin {
        Origin::History => Requirement::Impossible,
        _ => otherwise,
    }
}

/// Returns what a call needs. It's the model that calls, so only the tool's permission counts.
fn call_requirement(permission: Permission) -> Requirement {
    match permission {
        Permission::Unattended => Requirement::Nothing,
        Permission::Ask => ASKED,
        Permission::Deny => Requirement::Impossible,
    }
}

impl Origin {
    /// Returns the origin that is trusted least, as all layers together make up a table.
    pub(crate) fn least_trusted<'l>(layers: impl IntoIterator<Item = &'l Layer>) -> Self {
        let origins = layers.into_iter().map(Self::from);
        origins.min().unwrap_or(Self::Default)
    }

    /// Returns whether what the origin says may be older than the user's knowledge of the workspace.
    ///
    /// A command in the user's file can name a file of the workspace by accident. What they type or have
    /// in their environment is about this workspace.
    pub(crate) fn predates_workspace(self) -> bool {
        matches!(self, Self::Default | Self::UsersFile)
    }

    /// Returns whether an effect is the user's own; it isn't if the workspace shapes what their file
    /// merely names.
    pub(crate) fn is_own(self, is_shaped_by_workspace: bool) -> bool {
        match self {
            Self::History | Self::Workspace | Self::Model => false,
            Self::Default | Self::UsersFile => !is_shaped_by_workspace,
            Self::Environment | Self::CommandLine => true,
        }
    }
}

impl From<&Layer> for Origin {
    fn from(layer: &Layer) -> Self {
        match layer {
            Layer::Default => Self::Default,
            Layer::Workspace { .. } => Self::Workspace,
            Layer::User { .. } => Self::UsersFile,
            Layer::Conversation => Self::History,
            Layer::Environment { .. } => Self::Environment,
            Layer::File { .. } | Layer::Argument { .. } | Layer::Flag { .. } => Self::CommandLine,
        }
    }
}
