use std::collections::HashSet;

use jp_attachment::{Place, Secrets};
use jp_conversation::Declaration;
use jp_storage::{ConversationId, Sessions, Workspace};

/// What to offer, from the command line and the configuration.
#[derive(Debug)]
pub struct Settings {
    /// The workspace.
    pub workspace: Workspace,
    /// The workspace's root, and how paths are read.
    pub place: Place,
    /// The attachments that configuration files declare, in stored form.
    pub configured: Vec<Declaration>,
    /// Those of them that the user's own configuration declares. A file that one of them names is given
    /// with its secrets. So is one that the user attached by a command ([`jp_storage::Trust`]).
    pub own: HashSet<Declaration>,
    /// How large a file may be, and how much a declaration may give.
    pub limits: jp_attachment::Limits,
    /// What happens to files that seem to hold a secret.
    pub secrets: Secrets,
    /// The conversation whose attachments are listed.
    pub chosen: Chosen,
}

/// Chooses the conversation whose attachments are listed.
#[derive(Debug)]
pub enum Chosen {
    /// The conversation that is current at the time. A local one, outside the workspace, is not offered.
    Current(Sessions),
    /// This conversation, even if it is local.
    Named(ConversationId),
}
