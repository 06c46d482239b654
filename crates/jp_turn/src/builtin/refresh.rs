//! What `refresh_resource` needs of the application: new snapshots of attached resources.

use std::{fmt, sync::atomic::AtomicBool};

use jp_resource::Resource;

/// Takes new snapshots of what is attached to a conversation.
///
/// A toolbox has it of whoever knows what was declared, and whose word it takes to reach there.
pub trait Refresh: fmt::Debug + Send + Sync {
    /// Finds out what a new snapshot of a resource takes, named by its URI, its path or its name; reads nothing of it yet.
    ///
    /// Refuses what the conversation does not hold, and what can't be read again. The error is a sentence for the model.
    fn plan(&self, name: &str) -> Result<Refreshing<'_>, String>;

    /// Returns the MCP server of a resource, named as for [`Self::plan`]; nothing is planned.
    fn server(&self, name: &str) -> Option<String>;
}

/// What a new snapshot takes.
pub struct Refreshing<'a> {
    /// What is meant, by the URI that the conversation has for it.
    pub uri: String,
    /// What is reached for, for the person who is asked: a file's name, a URL, a command line.
    pub from: String,
    /// Whether they are asked.
    pub consent: Consent,
    /// Takes it, and ends early once the flag is set. The error is a sentence for the model.
    pub take: Take<'a>,
}

type Take<'a> = Box<dyn Fn(&AtomicBool) -> Result<Refreshed, String> + 'a>;

/// Whether the person is asked before a resource is refreshed, though the tool runs unattended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// They are not.
    Unneeded,
    /// They are, until they say that it holds for the rest of the turn.
    OncePerTurn,
    /// They are, each time.
    EachTime,
}

/// A new snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Refreshed {
    /// The resource, under the URI that the conversation has for it.
    pub resource: Resource,
    /// What the person should know, as fragments.
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
