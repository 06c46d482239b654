//! The interface of `refresh_resource` to the application, which takes the snapshots.

use std::{fmt, sync::atomic::AtomicBool};

use jp_resource::Resource;

/// Takes new snapshots of a conversation's attachments.
///
/// The application implements it, because it knows the declarations and the approvals that they
/// need.
pub trait Refresh: fmt::Debug + Send + Sync {
    /// Plans a new snapshot of a resource, named by its URI, its path or its name. Reads nothing
    /// yet.
    ///
    /// Refuses resources that the conversation does not hold or that can't be read again. The error
    /// is a sentence for the model.
    fn plan(&self, name: &str) -> Result<Refreshing<'_>, String>;

    /// Returns the MCP server of a resource, named as for [`Self::plan`]; nothing is planned.
    fn server(&self, name: &str) -> Option<String>;
}

/// The plan of a new snapshot.
pub struct Refreshing<'a> {
    /// The resource's URI in the conversation.
    pub uri: String,
    /// The source for the prompt: a file's name, a URL or a command line.
    pub from: String,
    /// The approval that it needs.
    pub consent: Consent,
    /// Takes the snapshot, and ends early once the flag is set. The error is a sentence for the
    /// model.
    pub take: Take<'a>,
}

type Take<'a> = Box<dyn Fn(&AtomicBool) -> Result<Refreshed, String> + 'a>;

/// The approval that a refresh needs even if the tool runs unattended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// None.
    Unneeded,
    /// The user's, unless they gave it for the rest of the turn.
    OncePerTurn,
    /// The user's, each time.
    EachTime,
}

/// A new snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Refreshed {
    /// The resource, with its URI in the conversation.
    pub resource: Resource,
    /// Notices for the user, as fragments.
    pub notices: Vec<String>,
}

impl fmt::Debug for Refreshing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            uri, from, consent, ..
        } = self;
        f.debug_struct("Refreshing")
            .field("uri", uri)
            .field("from", from)
            .field("consent", consent)
            .finish_non_exhaustive()
    }
}
