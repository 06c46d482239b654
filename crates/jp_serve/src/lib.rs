//! Offers a workspace to MCP clients, to read: `jp mcp serve`.
//!
//! [`Offer::open`] takes what the command line and the configuration say ([`Settings`]) and gives an [`Offer`], whose
//! [`server`](Offer::server) speaks MCP. What is offered, each in a module of its own:
//!
//! | | |
//! |---|---|
//! | what is attached to a conversation, and its snapshots | in the list (`listing`, kept up to date by `follow`) |
//! | `file:///…/{+path}` | the workspace's files, as a walk would attach them (`files`) |
//! | `jp://conversation/{id}`, `jp://conversation/{id}/turn/{n}` | as `jp conversation print` writes them (`conversations`) |
//! | `jp://blob/{sha256}` | content that a conversation keeps (`blobs`) |
//!
//! Nothing is written, no lock is held, nothing is fetched and no program is run. Listings and errors say of no file
//! where it is on the machine, but for the workspace's root. What is attached keeps its name, though, and a command line
//! (`cmd:`) may have a path in its arguments; what is read holds what it holds, and a conversation has command lines and
//! the output of tools.
//!
//! Of configuration and history, the workspace's are not trusted: a file that they attach is given as a walk would give
//! it. One that the person attached themself is given as it is, with its secrets.

mod blobs;
mod conversations;
mod files;
mod follow;
mod listing;
mod stamps;

use std::{collections::HashSet, io, path::PathBuf, sync::Arc};

use jp_attachment::{AttachError, Place, Secrets};
use jp_conversation::Declaration;
use jp_storage::{ConversationId, ReadError, Sessions, Workspace};
use mcp_resources::{Bundle, FileWatch, Limits, RegisterError, Registry, Server, WatchError};

use self::{
    conversations::Conversations,
    files::Files,
    follow::Following,
    listing::{Lister, Persons},
};

/// What is offered.
#[derive(Debug)]
pub struct Settings {
    /// The workspace.
    pub workspace: Workspace,
    /// Its root, and how paths are read.
    pub place: Place,
    /// What configuration files declare as attached, in stored form.
    pub configured: Vec<Declaration>,
    /// Those of them that the person's own configuration makes. A file that one of them names is given with its secrets,
    /// as is one that the person attached by a command ([`jp_storage::Trust`]).
    pub own: HashSet<Declaration>,
    /// How large a file may be, and how much a declaration may give.
    pub limits: jp_attachment::Limits,
    /// What happens to files that hold what looks like a secret.
    pub secrets: Secrets,
    /// The conversation whose attachments are listed.
    pub chosen: Chosen,
}

/// A conversation whose attachments are listed.
#[derive(Debug)]
pub enum Chosen {
    /// The current one, whichever that is at the time. One that the person keeps for themself is not offered.
    Current(Sessions),
    /// This one, also if the person keeps it for themself.
    Named(ConversationId),
}

/// A workspace that is offered, for as long as this lives.
#[derive(Debug)]
pub struct Offer {
    registry: Registry,
    root_uri: String,
    _following: Following,
    _watch: Option<FileWatch>,
}

/// Whom to tell of what clients don't see.
type Report = Arc<dyn Fn(Warning) + Send + Sync>;

/// Why a workspace can't be offered.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The root can't be opened.
    #[error("open the workspace at {path:?}")]
    Root {
        /// The root.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The root has no URI.
    #[error("offer the workspace at {path:?}: its path is no part of a URI")]
    Uri {
        /// The root.
        path: PathBuf,
    },
    /// The root makes a template that can't be matched.
    #[error("offer the workspace's files")]
    Register(#[from] RegisterError),
}

/// What keeps clients from seeing all that there is, or from hearing of it.
#[derive(Debug, thiserror::Error)]
pub enum Warning {
    /// Changes of files are not seen.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A file or declaration is not in the list.
    #[error("not all that is attached is in the list: failed to {0}")]
    Attachment(#[source] AttachError),
    /// The conversation can't be read; it is tried again.
    #[error("for now nothing new of conversation {id} is in the list: failed to {source}")]
    Conversation {
        /// It.
        id: ConversationId,
        /// Why not.
        source: ReadError,
    },
    /// A file that the workspace or its history attaches is none that a walk would give.
    #[error(
        "not all that is attached is in the list: {path} is attached by the workspace or its history, and a walk would leave it out; \
         `jp attachment add` with that path has it offered all the same"
    )]
    NotWalked {
        /// Its path from the root.
        path: String,
    },
    /// A file has a name by which no client could ask for it.
    #[error(
        "not all that is attached is in the list: the path {path:?} has a backslash or what looks like a drive letter, \
         so no client can name it; rename the file"
    )]
    Name {
        /// Its path from the root.
        path: String,
    },
    /// The list stays as it is, whatever happens to the conversation and what is attached to it.
    #[error(
        "the list stays as it is now: no thread could be started that follows the conversation: {0}"
    )]
    NotFollowed(#[source] io::Error),
    /// Looking for what is new did not come to an end.
    #[error(
        "for now nothing new is in the list: looking for it met a defect of jp; it is tried again"
    )]
    Defect,
    /// Something attached has a URI that is none, as some servers have; its snapshot is listed all the same.
    #[error("not all that is attached is in the list under its own URI: {0}")]
    Uri(#[source] RegisterError),
}

impl Offer {
    /// Opens the workspace; reads the one conversation whose attachments are listed, and no other.
    ///
    /// `report` is told what keeps clients from seeing things, as long as the value lives.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(
        settings: Settings,
        report: impl Fn(Warning) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        let Settings {
            workspace,
            place,
            configured,
            own,
            limits: attachable,
            secrets,
            chosen,
        } = settings;
        let max_bytes = attachable.max_bytes;
        let files = Arc::new(Files::open(place, max_bytes, secrets)?);
        let mut limits = Limits::default();
        limits.bytes = limits
            .bytes
            .max(usize::try_from(max_bytes).unwrap_or(usize::MAX));
        let max_given = limits.bytes as u64;
        let conversations = Arc::new(Conversations::new(&workspace, chosen, max_given));
        let registry = Registry::with_limits(limits);
        let templates = Bundle::new()
            .template(files::template(&files))
            .templates(conversations::templates(&conversations))
            .template(blobs::template(&conversations, max_given));
        registry.register_server("workspace", templates)?;
        let root_uri = files.root_uri().to_owned();
        let report: Report = Arc::new(report);
        let report_later = Arc::clone(&report);
        let watch = FileWatch::start(&registry, move |error| report_later(error.into()))
            .map_err(|error| report(error.into()));
        let persons = Persons {
            configured: own,
            trust: workspace.trust(),
        };
        let lister = Lister {
            files,
            configured,
            persons,
            limits: attachable,
            max_given,
        };
        let following = Following::start(registry.clone(), conversations, lister, report);
        Ok(Self {
            registry,
            root_uri,
            _following: following,
            _watch: watch.ok(),
        })
    }

    /// Makes the server; it serves as long as the offer lives.
    #[must_use]
    pub fn server(&self) -> Server {
        Server::new("jp", env!("CARGO_PKG_VERSION"), self.registry.clone())
            .title("A workspace of jp")
            .instructions(self.instructions())
    }

    fn instructions(&self) -> String {
        format!(
            "This server offers a workspace, to read. The list has what is attached to the person's conversation, and \
             the snapshots of it that a model was shown. Read {root}PATH for a file of the workspace, with PATH relative \
             to its root. Files that the workspace ignores, and files that look like they hold secrets, are not offered. \
             Read jp://conversation/ID for a conversation that took place here, and jp://conversation/ID/turn/N for one \
             turn of it; completion of the templates offers the values that there are.",
            root = self.root_uri
        )
    }
}
