use std::collections::HashSet;

use jp_attachment::{Place, Secrets};
use jp_conversation::Declaration;
use jp_storage::{ConversationId, Sessions, Workspace};

/// The settings of an offer, from the command line and the configuration.
#[derive(Debug)]
pub struct Settings {
    /// The workspace.
    pub workspace: Workspace,
    /// The workspace's root, and the base of relative paths.
    pub place: Place,
    /// The attachments that configuration files declare, in stored form.
    pub configured: Vec<Declaration>,
    /// The declarations in the user's configuration. Clients can read their files even if they have secrets,
    /// like files that the user attached with a command ([`jp_storage::Trust`]).
    pub own: HashSet<Declaration>,
    /// The limits of files and declarations.
    pub limits: jp_attachment::Limits,
    /// The reaction to files that look like secrets.
    pub secrets: Secrets,
    /// The conversation whose attachments are listed.
    pub chosen: Chosen,
}

/// The choice of the conversation whose attachments are listed.
#[derive(Debug)]
pub enum Chosen {
    /// The current conversation. A local one is not offered.
    Current(Sessions),
    /// This conversation, even if it is local.
    Named(ConversationId),
}
