//! The rules for providers: where requests go, and which key goes with them.

use super::{Effect, Origin, Requirement, forbid_to_history};

/// The facts about a new base URL of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// The user defines a provider whose name differs only in case.
    pub(crate) has_users_namesake: bool,
    /// jp knows a provider of that name, or of one that differs only in case.
    pub(crate) is_built_in: bool,
    /// It is a provider that runs on this machine.
    pub(crate) is_local: bool,
    /// The user says where the provider is or which key it gets.
    pub(crate) is_users: bool,
    /// The base URL is on this machine.
    pub(crate) is_loopback: bool,
    /// The one who chose the model.
    pub(crate) model: ModelChoice,
}

/// The one who chose the model that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelChoice {
    /// No one chose a model, so jp looks for a local server.
    NotChosen,
    /// The workspace alone chose a model of this provider.
    Workspace,
    /// Someone else chose it, or it is of another provider.
    Other,
}

/// Returns the approval that an effect on a provider needs. There is none that jp asks for: the user
/// sets it in their own configuration.
pub(super) fn requirement(origin: Origin, effect: Effect) -> Requirement {
    if let Effect::NameModel {
        is_taken,
        has_slash,
    } = effect
    {
        // `PROVIDER/NAME` always means that provider, no matter who names a model so.
        let is_allowed = !has_slash && (origin != Origin::History || !is_taken);
        return allow_if(is_allowed);
    }
    if origin != Origin::Workspace {
        return forbid_to_history(origin, Requirement::Nothing);
    }
    match effect {
        Effect::Redirect(redirect) => allow_if(redirect.may_workspace_set()),
        Effect::ChooseKey { is_usual } => allow_if(is_usual),
        Effect::SendVariable {
            is_api_key,
            is_of_other,
        } => allow_if(is_api_key && !is_of_other),
        // Only the user sends their keys and runs commands.
        _ => Requirement::Impossible,
    }
}

fn allow_if(is_allowed: bool) -> Requirement {
    if is_allowed {
        Requirement::Nothing
    } else {
        Requirement::Impossible
    }
}

impl Redirect {
    /// Returns whether the workspace may set the base URL: that of a provider that it defines itself,
    /// or of the model that it chooses itself. A local server may also be at another port of this
    /// machine.
    fn may_workspace_set(self) -> bool {
        if self.has_users_namesake {
            return false;
        }
        if !self.is_built_in {
            return true;
        }
        match self.model {
            ModelChoice::Workspace => true,
            ModelChoice::NotChosen if self.is_local => true,
            _ => self.is_local && !self.is_users && self.is_loopback,
        }
    }
}
